"""Runs a group of the protocol `consumer`: writes its records, keeps its timers and offsets.

A heartbeat is answered when its records are written. If a write fails, the log lacks what the group already
knows; so the next heartbeat, whatever it says, writes everything again.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from restow.cluster.groups.consumer.requests import ConsumerGroupState, HeartbeatReply
from restow.cluster.groups.effects import Arm
from restow.cluster.groups.journal import group_error
from restow.cluster.groups.offsets import due_since_commit
from restow.cluster.groups.stored_offsets import StoredOffsets
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.groups.consumer.group import ConsumerProtocolGroup
    from restow.cluster.groups.consumer.requests import HeartbeatRequest
    from restow.cluster.groups.effects import TimerKey
    from restow.cluster.groups.journal import JournalWriter, KeyAndValue
    from restow.cluster.groups.records import OffsetValue
    from restow.cluster.groups.requests import CommitRequest
    from restow.model import TopicPartition
    from restow.runtime.clock import Clock, Timer


class RunningConsumerGroup:
    """One group with the coordinator's clock and journal."""

    type_name = "consumer"
    protocol_type = "consumer"

    def __init__(self, group: ConsumerProtocolGroup, clock: Clock, writer: JournalWriter) -> None:
        self.group = group
        self.stored = StoredOffsets(group.id, writer)
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
        reply = self.group.heartbeat(request, self._clock.now_ms())
        self._set_timers()
        error = await self._write()
        if error is not ErrorCode.NONE:
            return HeartbeatReply(error=group_error(error))
        return reply

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
        records = self.group.records.take()
        if self._is_behind:
            self._is_behind = False
            records += self.group.all_records()
        return self._writer.write(records, self._written) if records else None

    def _written(self, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            self._is_behind = True

    # Offsets

    async def commit(self, request: CommitRequest, metadata_limit: int) -> dict[TopicPartition, ErrorCode]:
        """Write the offsets that the member may commit in its epoch."""
        error = self.group.commit_error(request.member_id, request.generation)
        if error is ErrorCode.NONE and self.group.members and not request.has_member_epoch:
            error = ErrorCode.UNSUPPORTED_VERSION
        if error is not ErrorCode.NONE:
            return dict.fromkeys(request.offsets, error)
        stale = {
            partition: ErrorCode.STALE_MEMBER_EPOCH
            for partition in request.offsets
            if not self.group.may_commit(request.member_id, request.generation, partition)
        }
        allowed = request.only(request.offsets.keys() - stale.keys()) if stale else request
        return stale | await self.stored.commit(allowed, self._clock.now_ms(), metadata_limit)

    async def forget(self, partitions: Iterable[TopicPartition]) -> ErrorCode:
        """Drop offsets at once and write tombstones, also for a stopped, empty group itself."""
        return await self.stored.forget(partitions, self.tombstones() if self.is_stopped else ())

    def tombstones(self) -> list[KeyAndValue]:
        """Return the last records of an empty group."""
        self.group.records.end()
        return self.group.records.take()
