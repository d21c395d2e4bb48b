"""Runs a group: carries out its effects, and keeps its waiting requests, timers and offsets."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, assert_never

from restow.cluster.groups.effects import Arm, Disarm, Reply, Save
from restow.cluster.groups.fields import InvalidGroupRecord
from restow.cluster.groups.journal import group_error, offset_error
from restow.cluster.groups.records import (
    GroupKey,
    OffsetKey,
    OffsetValue,
    encode_group_key,
    encode_group_value,
    encode_offset_key,
    encode_offset_value,
)
from restow.cluster.groups.states import GroupState
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from restow.cluster.groups.effects import Effect, Ticket, TimerKey
    from restow.cluster.groups.group import ClassicGroup
    from restow.cluster.groups.journal import JournalWriter, KeyAndValue
    from restow.cluster.groups.requests import (
        CommitRequest,
        JoinReply,
        JoinRequest,
        SyncReply,
        SyncRequest,
    )
    from restow.model import TopicPartition
    from restow.runtime.clock import Clock, Timer

log = logging.getLogger(__name__)

_TOMBSTONES_AT_ONCE = 1_000
_LAST_MS = 2**63 - 1
"""The latest timestamp that an offset record can hold."""


class RunningGroup:
    """One group with the coordinator's clock and journal."""

    def __init__(self, group: ClassicGroup, clock: Clock, writer: JournalWriter) -> None:
        self.group = group
        self.offsets: dict[TopicPartition, OffsetValue] = {}
        self.commits_under_way = 0
        self._clock = clock
        self._writer = writer
        self._timers: dict[TimerKey, Timer] = {}
        self._waiting: dict[Ticket, Callable[[JoinReply | SyncReply], None]] = {}
        self._tickets = 0

    # Events that wait for a response

    async def join(self, request: JoinRequest) -> JoinReply:
        answered: asyncio.Future[JoinReply] = asyncio.get_running_loop().create_future()
        ticket = self._wait(answered)
        self.apply(self.group.join(request, ticket, self._clock.now_ms()))
        return await answered

    async def sync(self, request: SyncRequest) -> SyncReply:
        answered: asyncio.Future[SyncReply] = asyncio.get_running_loop().create_future()
        ticket = self._wait(answered)
        self.apply(self.group.sync(request, ticket, self._clock.now_ms()))
        return await answered

    def _wait(self, answered: asyncio.Future[JoinReply] | asyncio.Future[SyncReply]) -> Ticket:
        def answer(reply: JoinReply | SyncReply) -> None:
            if not answered.done():
                answered.set_result(reply)  # type: ignore[arg-type]

        self._tickets += 1
        self._waiting[self._tickets] = answer
        return self._tickets

    # Effects

    def apply(self, effects: Iterable[Effect]) -> None:
        """Carry out the group's effects."""
        for effect in effects:
            match effect:
                case Reply(ticket, reply):
                    self._waiting.pop(ticket)(reply)
                case Arm(timer, delay_ms):
                    self._disarm(timer)
                    self._timers[timer] = self._clock.call_later(delay_ms / 1000, partial(self._fire, timer))
                case Disarm(timer):
                    self._disarm(timer)
                case Save():
                    self._save(effect)
                case _:
                    assert_never(effect)

    def stop(self) -> None:
        """Stop coordinating the group: answer waiting members and cancel the timers."""
        self.apply(self.group.unload(self._clock.now_ms()))
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _fire(self, timer: TimerKey) -> None:
        self._timers.pop(timer, None)
        self.apply(self.group.fired(timer, self._clock.now_ms()))

    def _disarm(self, timer: TimerKey) -> None:
        if armed := self._timers.pop(timer, None):
            armed.cancel()

    def _save(self, save: Save) -> None:
        try:
            record = encode_group_key(GroupKey(self.group.id)), encode_group_value(save.value)
        except InvalidGroupRecord as error:
            log.warning("group %r cannot be written: %s", self.group.id, error)
            self._saved(save, ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            self._writer.write([record], partial(self._saved, save))

    def _saved(self, save: Save, error: ErrorCode) -> None:
        self.apply(self.group.saved(save, group_error(error), self._clock.now_ms()))

    # Offsets

    async def commit(self, request: CommitRequest, metadata_limit: int) -> dict[TopicPartition, ErrorCode]:
        """Write offsets. They are visible once written, even if the member has left meanwhile."""
        now_ms = self._clock.now_ms()
        error, effects = self.group.commit(request, now_ms)
        self.apply(effects)
        if error is not ErrorCode.NONE:
            return dict.fromkeys(request.offsets, error)
        retention_ms = request.retention_ms
        expires_at_ms = None if retention_ms is None else min(now_ms + retention_ms, _LAST_MS)
        results: dict[TopicPartition, ErrorCode] = {}
        values: dict[TopicPartition, OffsetValue] = {}
        records: list[KeyAndValue] = []
        for partition, (offset, leader_epoch, metadata) in request.offsets.items():
            if len(metadata) > metadata_limit:
                results[partition] = ErrorCode.OFFSET_METADATA_TOO_LARGE
                continue
            value = OffsetValue(offset, leader_epoch, metadata, now_ms, expires_at_ms)
            try:
                records.append((encode_offset_key(self._key(partition)), encode_offset_value(value)))
            except InvalidGroupRecord:
                results[partition] = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
                continue
            values[partition] = value
        if values:
            self.commits_under_way += 1
            written = self._writer.write(records, partial(self._committed, values))
            outcome = offset_error(await asyncio.shield(written))
            results |= dict.fromkeys(values, outcome)
        return {partition: results[partition] for partition in request.offsets}

    def _committed(self, values: dict[TopicPartition, OffsetValue], error: ErrorCode) -> None:
        self.commits_under_way -= 1
        if error is ErrorCode.NONE:
            self.offsets |= values

    async def forget(self, partitions: Iterable[TopicPartition]) -> ErrorCode:
        """Drop offsets at once and write tombstones, also for a dead group itself."""
        records: list[KeyAndValue] = [
            (encode_offset_key(self._key(partition)), None)
            for partition in partitions
            if self.offsets.pop(partition, None) is not None
        ]
        if self.group.state is GroupState.DEAD and self.group.generation > 0:
            records.append((encode_group_key(GroupKey(self.group.id)), None))
        writes = [
            self._writer.write(records[start : start + _TOMBSTONES_AT_ONCE], _nobody_waits)
            for start in range(0, len(records), _TOMBSTONES_AT_ONCE)
        ]
        errors = [offset_error(await asyncio.shield(write)) for write in writes]
        return next((error for error in errors if error is not ErrorCode.NONE), ErrorCode.NONE)

    def _key(self, partition: TopicPartition) -> OffsetKey:
        return OffsetKey(self.group.id, partition.topic, partition.partition)


def _nobody_waits(error: ErrorCode) -> None:
    """Ignore the result. Tombstones that failed are written again at the next expiry."""
