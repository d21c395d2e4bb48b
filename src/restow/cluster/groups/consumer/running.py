"""Runs a group of the protocol `consumer`: writes its records, keeps its timers and offsets.

A heartbeat is answered when its records are written. If a write fails, the log lacks what the group already
knows; so the next heartbeat, whatever it says, writes everything again.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from restow.cluster.groups.consumer.requests import ConsumerGroupState, HeartbeatReply
from restow.cluster.groups.effects import Arm
from restow.cluster.groups.journal import group_error
from restow.cluster.groups.offsets import due_since_commit
from restow.cluster.groups.requests import JoinReply, LeaveReply, SyncReply
from restow.cluster.groups.stored_offsets import StoredOffsets
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from restow.cluster.groups.consumer.mixed import MixedGroup
    from restow.cluster.groups.consumer.requests import HeartbeatRequest
    from restow.cluster.groups.effects import TimerKey
    from restow.cluster.groups.journal import JournalWriter
    from restow.cluster.groups.records import OffsetValue
    from restow.cluster.groups.requests import CommitRequest, JoinRequest, LeavingMember, SyncRequest
    from restow.model import TopicPartition
    from restow.runtime.clock import Clock, Timer

    BecomeClassic: TypeAlias = "Callable[[RunningConsumerGroup], asyncio.Future[ErrorCode]]"


class RunningConsumerGroup:
    """One group with the coordinator's clock and journal."""

    type_name = "consumer"
    protocol_type = "consumer"

    def __init__(
        self, group: MixedGroup, clock: Clock, writer: JournalWriter, become_classic: BecomeClassic
    ) -> None:
        self.group = group
        self._become_classic = become_classic
        self.stored = StoredOffsets(group.id, writer)
        group.committed = lambda: {each: value.offset for each, value in self.offsets.items()}
        self.is_stopped = False
        self._clock = clock
        self._writer = writer
        self._timers: dict[TimerKey, Timer] = {}
        self._is_behind = False
        """Whether the log lacks records, because a write failed."""

    # What it is like

    @property
    def state_name(self) -> str:
        return self.group.state.value

    @property
    def is_empty(self) -> bool:
        return self.group.state is ConsumerGroupState.EMPTY

    @property
    def offsets(self) -> dict[TopicPartition, OffsetValue]:
        return self.stored.by_partition

    def topics_in_use(self) -> frozenset[str]:
        """Return the topics whose offsets must stay, because a member subscribes to them."""
        return self.group.subscribed_topics()

    def expired(self, now_ms: int, retention_ms: int) -> tuple[TopicPartition, ...]:
        """Return the partitions whose offsets have expired, counted from their commit."""
        reads = self.group.subscribed_topics()
        return tuple(
            partition
            for partition, value in self.offsets.items()
            if partition.topic not in reads and due_since_commit(value, now_ms, retention_ms)
        )

    @property
    def may_end(self) -> bool:
        """Whether the group may go when it has no offsets left."""
        return self.is_empty

    # Events

    def resume(self) -> None:
        """Start to coordinate the group here."""
        self.group.resume(self._clock.now_ms())
        self._set_timers()

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatReply:
        """Answer a heartbeat when what follows from it is written."""
        return await self.settled(self.group.heartbeat(request, self._clock.now_ms()))

    async def settled(self, reply: HeartbeatReply) -> HeartbeatReply:
        """Return the reply when what the group has decided is written."""
        error = await self._settle()
        return reply if error is ErrorCode.NONE else HeartbeatReply(error=error)

    async def join(self, request: JoinRequest, make_id: Callable[[], str]) -> JoinReply:
        """Let a classic member join."""
        reply = self.group.join(request, make_id, self._clock.now_ms())
        error = await self._settle()
        return reply if error is ErrorCode.NONE else JoinReply(error=error, member_id=request.member_id)

    async def sync(self, request: SyncRequest) -> SyncReply:
        """Tell a classic member its partitions."""
        reply = self.group.sync(request, self._clock.now_ms())
        error = await self._settle()
        return reply if error is ErrorCode.NONE else SyncReply(error=error)

    async def classic_heartbeat(self, generation: int, member_id: str, instance_id: str | None) -> ErrorCode:
        """Answer the heartbeat of a classic member."""
        reply = self.group.classic_heartbeat(generation, member_id, instance_id, self._clock.now_ms())
        error = await self._settle()
        return reply if error is ErrorCode.NONE else error

    async def leave(self, members: Sequence[LeavingMember]) -> LeaveReply:
        """Remove members at the request of a classic one, or of an administrator."""
        results = self.group.classic_leave(members, self._clock.now_ms())
        error = await self._settle()
        if error is not ErrorCode.NONE:
            return LeaveReply(error)
        return LeaveReply(ErrorCode.NONE, tuple(zip(members, results, strict=True)))

    async def _settle(self) -> ErrorCode:
        self._set_timers()
        return group_error(await self._write())

    def stop(self) -> None:
        """Stop coordinating the group."""
        self.is_stopped = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _fire(self, timer: TimerKey) -> None:
        self._timers.pop(timer, None)
        self.group.fired(timer, self._clock.now_ms())
        self._set_timers()
        self._write_pending()

    def _set_timers(self) -> None:
        """Carry out the group's timers, unless another coordinator has it by now."""
        changes, self.group.timers = self.group.timers, []
        for change in () if self.is_stopped else changes:
            if isinstance(change, Arm) and change.only_if_absent and change.timer in self._timers:
                continue
            if armed := self._timers.pop(change.timer, None):
                armed.cancel()
            if isinstance(change, Arm):
                self._timers[change.timer] = self._clock.call_later(
                    change.delay_ms / 1000, partial(self._fire, change.timer)
                )

    async def _write(self) -> ErrorCode:
        written = self._write_pending()
        return ErrorCode.NONE if written is None else await asyncio.shield(written)

    def _write_pending(self) -> asyncio.Future[ErrorCode] | None:
        if self.group.should_downgrade and not self.is_stopped:
            return self._become_classic(self)
        records = self.group.records.take()
        if self._is_behind:
            self._is_behind = False
            records += self.group.all_records()
        return self._writer.write(records, self.written) if records else None

    def written(self, error: ErrorCode) -> None:
        """Write everything again at the next chance, if a write has failed."""
        if error is not ErrorCode.NONE:
            self._is_behind = True

    # Offsets

    async def commit(self, request: CommitRequest, metadata_limit: int) -> dict[TopicPartition, ErrorCode]:
        """Write the offsets that the member may commit in its epoch."""
        in_transaction = request.producer is not None
        if in_transaction and request.generation < 0 and not request.member_id:
            return await self.stored.commit(request, self._clock.now_ms(), metadata_limit)
        error = self.group.commit_error(request.member_id, request.generation)
        member = self.group.members.get(request.member_id)
        needs_epoch = member is not None and member.classic is None
        if needs_epoch and not request.has_member_epoch:
            error = ErrorCode.UNSUPPORTED_VERSION
        if error is not ErrorCode.NONE:
            return dict.fromkeys(request.offsets, error)
        checked = {
            partition: self.group.partition_error(request.member_id, request.generation, partition)
            for partition in request.offsets
        }
        stale = {partition: error for partition, error in checked.items() if error is not ErrorCode.NONE}
        allowed = request.only(request.offsets.keys() - stale.keys()) if stale else request
        return stale | await self.stored.commit(allowed, self._clock.now_ms(), metadata_limit)

    async def forget(self, partitions: Iterable[TopicPartition]) -> ErrorCode:
        """Drop offsets at once and write tombstones, also for a stopped, empty group itself."""
        return await self.stored.forget(partitions, self.group.last_records() if self.is_stopped else ())
