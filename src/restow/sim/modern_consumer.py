"""A member of a group by the protocol `consumer` (KIP-848), beside classic members or alone.

    join with epoch 0 ──▶ fetch, commit, heartbeat …

The broker assigns, in the answers to heartbeats. A member that is fenced, or that the coordinator does not
know, gives up everything and joins again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.sim.consumer import AGAIN, VERSIONS, AgainError, SimConsumer
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import ConsumerGroupHeartbeatRequest, MetadataRequest, OffsetCommitRequest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

_JOINING, _LEAVING = 0, -1
_REBALANCE_MS = 6_000
_BEGIN_ANEW = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.STALE_MEMBER_EPOCH,
)


class ModernConsumer(SimConsumer):
    """One member, which brings its own id."""

    versions: Mapping[type, int] = {**VERSIONS, OffsetCommitRequest: 9, ConsumerGroupHeartbeatRequest: 1}

    def name_itself(self, member_id: str) -> None:
        """Set the member's id, which no other process ever has."""
        self._member = member_id

    async def _join(self) -> None:
        self._record.joins(self._member)
        self._positions.clear()
        self._generation = _JOINING
        await self._heartbeat()
        self._must_join = False

    async def _beat(self) -> None:
        await self._heartbeat()

    async def _heartbeat(self) -> None:
        """Send a heartbeat with everything, and take up the answer: give up first, then begin anew."""
        topic_id = await self._topic_id()
        doubts = self._record.doubts(self._member)
        request = ConsumerGroupHeartbeatRequest
        held = request.TopicPartitions(topic_id=topic_id, partitions=sorted(self._positions))
        answer = await self._ask(
            request(
                group_id=self._record.group,
                member_id=self._member,
                member_epoch=self._generation,
                rebalance_timeout_ms=_REBALANCE_MS,
                subscribed_topic_names=[self._topic],
                topic_partitions=[held] if self._positions else [],
            )
        )
        if answer.error_code in _BEGIN_ANEW:
            self._begin_anew()
        self._check(answer.error_code)
        if self._generation != _JOINING:
            self._record.stayed(self._member, doubts)
        self._generation = answer.member_epoch
        if answer.assignment is None:
            return
        now = frozenset(n for each in answer.assignment.topic_partitions for n in each.partitions)
        self._record.synced(self._member, self._generation, now, self._coordinator)
        await self._commit({each: at for each, at in self._positions.items() if each not in now})
        self._positions = {each: at for each, at in self._positions.items() if each in now}
        await self._find_positions(now - self._positions.keys())

    async def _leave(self) -> None:
        request = ConsumerGroupHeartbeatRequest
        try:
            await self._commit(self._positions)
            await self._ask(
                request(group_id=self._record.group, member_id=self._member, member_epoch=_LEAVING)
            )
        except AgainError:
            pass

    async def _commit(self, positions: Mapping[int, int]) -> None:
        for code in await self._send_commit(positions, self._generation):
            if code in _BEGIN_ANEW:
                self._begin_anew()
            if code in AGAIN:
                self._check(code)

    def _begin_anew(self) -> None:
        self._positions.clear()
        self._must_join = True
        raise AgainError

    async def _topic_id(self) -> UUID:
        answer = await self._ask_any(MetadataRequest(topics=None))
        for topic in () if answer is None else answer.topics:
            if topic.name == self._topic and topic.partitions:
                self._know_leaders(topic)
                found: UUID = topic.topic_id
                return found
        raise AgainError

    def _check(self, code: int) -> None:
        """Begin anew where the answer demands it; the id stays."""
        mine = self._member
        try:
            super()._check(code)
        finally:
            self._member = mine
