"""Runs a group: carries out its effects, and keeps its waiting requests, timers and offsets."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, assert_never

from restow.cluster.groups.effects import Arm, Disarm, Reply, Save
from restow.cluster.groups.fields import InvalidGroupRecord
from restow.cluster.groups.journal import group_error
from restow.cluster.groups.offsets import CONSUMER_PROTOCOL_TYPE, expired, topics_read_by
from restow.cluster.groups.records import GroupKey, encode_group_key, encode_group_value
from restow.cluster.groups.states import GroupState
from restow.cluster.groups.stored_offsets import StoredOffsets
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from restow.cluster.groups.effects import Effect, Ticket, TimerKey
    from restow.cluster.groups.group import ClassicGroup
    from restow.cluster.groups.journal import JournalWriter, KeyAndValue
    from restow.cluster.groups.records import OffsetValue
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


class RunningGroup:
    """One group with the coordinator's clock and journal."""

    type_name = "classic"

    def __init__(self, group: ClassicGroup, clock: Clock, writer: JournalWriter) -> None:
        self.group = group
        self.stored = StoredOffsets(group.id, writer)
        self._clock = clock
        self._writer = writer
        self._timers: dict[TimerKey, Timer] = {}
        self._waiting: dict[Ticket, Callable[[JoinReply | SyncReply], None]] = {}
        self._tickets = 0

    # What it is like

    @property
    def protocol_type(self) -> str:
        return self.group.protocol_type or ""

    @property
    def state_name(self) -> str:
        return self.group.state.value

    @property
    def is_empty(self) -> bool:
        return self.group.state is GroupState.EMPTY

    def topics_in_use(self) -> frozenset[str] | ErrorCode | None:
        """Return the topics whose offsets must stay; None if unknown, an error if all must."""
        if self.is_empty:
            return frozenset()
        if self.group.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return ErrorCode.NON_EMPTY_GROUP
        return topics_read_by(self.group)

    def expired(self, now_ms: int, retention_ms: int) -> tuple[TopicPartition, ...]:
        """Return the partitions whose offsets have expired."""
        if self.group.state is GroupState.DEAD:
            return ()
        return expired(self.offsets, self.group, now_ms, retention_ms)

    @property
    def may_end(self) -> bool:
        """Whether the group may go when it has no offsets left."""
        return self.is_empty and not self.group.roster.pending

    def resume(self) -> None:
        """Start to coordinate the group here."""
        self.apply(self.group.resume(self._clock.now_ms()))

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

    def stop(self, error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        """Stop coordinating the group: answer waiting members and cancel the timers."""
        self.apply(self.group.unload(self._clock.now_ms(), error))
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

    @property
    def offsets(self) -> dict[TopicPartition, OffsetValue]:
        return self.stored.by_partition

    async def commit(self, request: CommitRequest, metadata_limit: int) -> dict[TopicPartition, ErrorCode]:
        """Write offsets, if the group allows it."""
        now_ms = self._clock.now_ms()
        error, effects = self.group.commit(request, now_ms)
        self.apply(effects)
        if error is not ErrorCode.NONE:
            return dict.fromkeys(request.offsets, error)
        return await self.stored.commit(request, now_ms, metadata_limit)

    async def forget(self, partitions: Iterable[TopicPartition]) -> ErrorCode:
        """Drop offsets at once and write tombstones, also for a dead group itself."""
        tombstones: list[KeyAndValue] = []
        if self.group.state is GroupState.DEAD and self.group.generation > 0:
            tombstones.append((encode_group_key(GroupKey(self.group.id)), None))
        return await self.stored.forget(partitions, tombstones)
