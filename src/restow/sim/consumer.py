"""A member of a consumer group of the classic protocol, which reads one topic and commits what it has read.

    join ──▶ sync ──▶ fetch, commit, heartbeat ──▶ join …

Eager members give up all partitions before they join again. Cooperative ones keep theirs, give up only what
they lose, and then join once more. A member that the coordinator no longer knows begins anew.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

from restow.sim.reading import fetch, records_in
from restow.sim.subscription import COOPERATIVE, assigned, assignments, subscription
from restow.wire.batches import scan
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.sim.client import SimClient
    from restow.sim.group_record import GroupRecord
    from restow.wire.messages import Message

SESSION_S = 15.0
_REBALANCE_S = 6.0
"""Shorter than a session, so that a static member that stood still meets a newer generation."""
_ROUND_EVERY_S = 1.0
_COMMIT_ONE_IN = 3
_ASK_S = 5.0
_JOIN_S = SESSION_S
_PAUSE_S = 0.5
VERSIONS: Mapping[type, int] = {
    FindCoordinatorRequest: 3,
    HeartbeatRequest: 4,
    JoinGroupRequest: 7,
    LeaveGroupRequest: 4,
    OffsetCommitRequest: 8,
    OffsetFetchRequest: 7,
    SyncGroupRequest: 5,
}
_LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID)
_REFUSED = (*_LOST, ErrorCode.REBALANCE_IN_PROGRESS)
"""After another error, a commit may still be carried out."""
AGAIN = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


class AgainError(Exception):
    """The coordinator did not do it: look for it again, and begin where that leads."""


class SimConsumer:
    """One member, from its first join until it leaves or is killed."""

    versions = VERSIONS

    def __init__(
        self,
        client: SimClient,
        brokers: Iterable[int],
        record: GroupRecord,
        topic: str,
        assignor: str,
        instance_id: str | None = None,
    ) -> None:
        self._client, self._brokers, self._record = client, tuple(brokers), record
        self._topic, self._assignor, self._instance = topic, assignor, instance_id
        self._coordinator: int | None = None
        self._member, self._generation = "", -1
        self._leaders: dict[int, int] = {}
        self._epochs: dict[int, int] = {}
        """The leader epochs that came with the leaders."""
        self._positions: dict[int, int] = {}
        """The owned partitions, and the offset to read next."""
        self._owned_before: frozenset[int] = frozenset()
        self._must_join = True
        self.is_leaving = False

    @property
    def positions(self) -> Mapping[int, int]:
        """The owned partitions, and the offset to read next; none while the group rebalances."""
        return {} if self._must_join else self._positions

    async def run(self) -> None:
        """Work until told to leave."""
        turn = 0
        while not self.is_leaving:
            try:
                if self._must_join:
                    await self._join()
                await self._read()
                turn += 1
                if turn % _COMMIT_ONE_IN == 0:
                    await self._commit(self._moved())
                await self._beat()
            except AgainError:
                await self._client.clock.sleep(_PAUSE_S)
            await self._client.clock.sleep(_ROUND_EVERY_S)
        await self._leave()

    # Membership

    async def _join(self) -> None:
        """Join and sync, perhaps several times, until the assignment is known."""
        late = dict(self._positions)
        if self._assignor != COOPERATIVE and self._positions:
            await self._commit(self._positions)
            self._owned_before = frozenset(self._positions)
            self._positions.clear()
        old = self._generation
        joined = await self._ask_to_join()
        self._member, self._generation = joined.member_id, joined.generation_id
        synced = await self._sync(joined)
        now = assigned(bytes(synced.assignment))
        who = self._instance or self._member
        self._record.synced(who, self._generation, now, self._coordinator)
        if old >= 0:
            await self._send_commit(late, old)  # as a client's commit that was on its way; it must be refused
        gone = {each: at for each, at in self._positions.items() if each not in now}
        await self._commit(gone)
        self._positions = {each: at for each, at in self._positions.items() if each in now}
        self._owned_before = now
        await self._find_positions(now - self._positions.keys())
        self._must_join = bool(gone)

    async def _ask_to_join(self) -> Message:
        owned = self._positions if self._assignor == COOPERATIVE else self._owned_before
        said = subscription(self._assignor, self._topic, owned, self._generation)
        while True:
            joined = await self._ask(
                JoinGroupRequest(
                    group_id=self._record.group,
                    session_timeout_ms=int(SESSION_S * 1000),
                    rebalance_timeout_ms=int(_REBALANCE_S * 1000),
                    member_id=self._member,
                    group_instance_id=self._instance,
                    protocol_type="consumer",
                    protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=self._assignor, metadata=said)],
                ),
                timeout_s=_JOIN_S,
            )
            if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                self._check(joined.error_code)
                return joined
            self._member = joined.member_id

    async def _sync(self, joined: Message) -> Message:
        told: Mapping[str, bytes] = {}
        if joined.leader == joined.member_id:
            told = assignments(joined, self._topic, await self._count_partitions())
        assignment = SyncGroupRequest.SyncGroupRequestAssignment
        synced = await self._ask(
            SyncGroupRequest(
                group_id=self._record.group,
                generation_id=self._generation,
                member_id=self._member,
                group_instance_id=self._instance,
                protocol_type="consumer",
                protocol_name=self._assignor,
                assignments=[assignment(member_id=each, assignment=data) for each, data in told.items()],
            ),
            timeout_s=_JOIN_S,
        )
        self._check(synced.error_code)
        return synced

    async def _beat(self) -> None:
        generation, told = self._generation, self._record.told_by(self._coordinator)
        who = self._instance or self._member
        doubts = self._record.doubts(who)
        answer = await self._ask(
            HeartbeatRequest(
                group_id=self._record.group,
                generation_id=self._generation,
                member_id=self._member,
                group_instance_id=self._instance,
            )
        )
        self._check(answer.error_code)
        self._record.heard(self._coordinator, generation, told)
        self._record.stayed(who, doubts)

    async def _leave(self) -> None:
        """Leave without waiting for an answer that may never come."""
        identity = LeaveGroupRequest.MemberIdentity
        who = identity(member_id=self._member, group_instance_id=self._instance)
        try:
            await self._commit(self._positions)
            await self._ask(LeaveGroupRequest(group_id=self._record.group, members=[who]))
        except AgainError:
            pass

    def _check(self, code: int) -> None:
        """Begin anew where the answer of the coordinator demands it."""
        if code in _LOST:
            self._positions.clear()
            if code != ErrorCode.ILLEGAL_GENERATION:
                self._member = ""
            self._generation = -1
        if code in AGAIN:
            self._coordinator = None
        elif code:
            self._must_join = True
        if code:
            raise AgainError

    # Offsets

    async def _find_positions(self, partitions: frozenset[int] | set[int]) -> None:
        """Begin where the group has committed, or at the first record."""
        wanted = sorted(partitions)
        if not wanted:
            return
        known = {each: self._record.committed.get(each, 0) for each in wanted}
        topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=self._topic, partition_indexes=wanted)
        answer = await self._ask(OffsetFetchRequest(group_id=self._record.group, topics=[topic]))
        self._check(answer.error_code)
        for each in answer.topics[0].partitions:
            if each.error_code:
                self._must_join = True
                raise AgainError
            offset = max(each.committed_offset, 0)
            self._record.fetched(each.partition_index, offset, known[each.partition_index])
            self._positions[each.partition_index] = offset

    def _moved(self) -> dict[int, int]:
        """Return the positions that the group has not committed yet."""
        committed = self._record.committed
        return {each: at for each, at in self._positions.items() if at != committed.get(each, 0)}

    async def _commit(self, positions: Mapping[int, int]) -> None:
        """Commit; begin anew where the answer demands it."""
        for code in await self._send_commit(positions, self._generation):
            if code != ErrorCode.REBALANCE_IN_PROGRESS:
                self._check(code)

    async def _send_commit(self, positions: Mapping[int, int], generation: int) -> list[int]:
        """Send a commit and return the error codes of the partitions."""
        offsets, newest = dict(sorted(positions.items())), self._record.generation
        if not offsets:
            return []
        topic = OffsetCommitRequest.OffsetCommitRequestTopic
        partitions = [
            topic.OffsetCommitRequestPartition(
                partition_index=each, committed_offset=at, committed_leader_epoch=-1, committed_metadata=""
            )
            for each, at in offsets.items()
        ]
        request = OffsetCommitRequest(
            group_id=self._record.group,
            generation_id_or_member_epoch=generation,
            member_id=self._member,
            group_instance_id=self._instance,
            topics=[topic(name=self._topic, partitions=partitions)],
        )
        try:
            answer = await self._ask(request)
        except AgainError:
            self._record.unanswered(offsets)
            raise
        codes = {each.partition_index: each.error_code for each in answer.topics[0].partitions}
        done = {each: at for each, at in offsets.items() if not codes[each]}
        if done:
            self._record.accepted(done, generation, newest)
        unknown = {each: at for each, at in offsets.items() if codes[each] not in (0, *_REFUSED)}
        self._record.unanswered(unknown)
        return list(codes.values())

    # Reading

    async def _read(self) -> None:
        if any(self._leaders.get(each, -1) < 0 for each in self._positions):
            await self._find_leaders()
        by_leader: defaultdict[int, list[int]] = defaultdict(list)
        for partition in sorted(self._positions):
            by_leader[self._leaders.get(partition, -1)].append(partition)
        await asyncio.gather(*(self._fetch(*each) for each in sorted(by_leader.items()) if each[0] >= 0))

    async def _fetch(self, leader: int, partitions: list[int]) -> None:
        generation = self._generation
        offsets = {each: self._positions[each] for each in partitions}
        try:
            answer = await fetch(self._client, leader, self._topic, offsets, _ASK_S, self._epochs)
        except (ConnectionError, TimeoutError):
            self._leaders.clear()
            return
        for found in answer.responses[0].partitions if answer.responses else ():
            if generation == self._generation and found.partition_index in self._positions:
                self._take(found)

    def _take(self, found: Message) -> None:
        """Count the records as read, and go on behind them."""
        partition = found.partition_index
        if found.error_code:
            if found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self._record.broken.append(
                    f"{self._topic}-{partition} has no offset {self._positions[partition]}, up to which "
                    f"{self._record.group} has read"
                )
            self._leaders.clear()
            return
        offset = self._positions[partition]
        batches = bytes(found.records or b"")
        for position, header in scan(batches):
            records = records_in(batches[position : position + header.size])
            self._record.read[partition].update(
                each.value or b"" for each in records if each.offset >= offset
            )
            offset = header.base_offset + header.last_offset_delta + 1
        self._positions[partition] = offset

    async def _count_partitions(self) -> int:
        while not await self._find_leaders():
            await self._client.clock.sleep(_PAUSE_S)
        return max(self._leaders) + 1

    async def _find_leaders(self) -> bool:
        answer = await self._ask_any(MetadataRequest(topics=None))
        for topic in () if answer is None else answer.topics:
            if topic.name == self._topic and topic.partitions:
                self._know_leaders(topic)
                return True
        return False

    def _know_leaders(self, topic: Message) -> None:
        self._leaders = {each.partition_index: each.leader_id for each in topic.partitions}
        self._epochs = {each.partition_index: each.leader_epoch for each in topic.partitions}

    # Requests

    async def _ask(self, request: Message, timeout_s: float = _ASK_S) -> Message:
        """Ask the coordinator."""
        if self._coordinator is None:
            found = await self._ask_any(FindCoordinatorRequest(key=self._record.group, key_type=0))
            if found is None or found.error_code:
                raise AgainError
            self._coordinator = int(found.node_id)
        try:
            return await self._client.ask(
                request, self._coordinator, version=self.versions[type(request)], timeout_s=timeout_s
            )
        except (ConnectionError, TimeoutError):
            self._coordinator = None
            raise AgainError from None

    async def _ask_any(self, request: Message) -> Message | None:
        for broker in self._brokers:
            try:
                return await self._client.ask(
                    request, broker, version=self.versions.get(type(request)), timeout_s=_ASK_S
                )
            except (ConnectionError, TimeoutError):
                continue
        return None
