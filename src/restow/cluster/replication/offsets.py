"""Offset lookups by timestamp and by leader epoch, and record deletion."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.cluster.log.errors import LogError
from restow.cluster.log.timestamps import first_at_or_after, latest
from restow.cluster.replication.values import CONSUMER, FoundOffset, PartitionRefused
from restow.wire.batches import CorruptBatch
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Generator

    from restow.cluster.replication.partition import HostedPartition
    from restow.cluster.replication.values import EpochQuestion, OffsetQuestion
    from restow.runtime.clock import Clock

LATEST = -1
EARLIEST = -2
OF_MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
HIGH_WATERMARK = -1
"""Stands for the high watermark in a record deletion."""


class OffsetSearches:
    """Runs the timestamp searches of one broker.

    Searches that read a log run one at a time and in small steps: they do not block other requests, and at
    most one batch is in memory.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turn = asyncio.Lock()

    async def finish(self, search: Generator[None, None, FoundOffset]) -> FoundOffset:
        """Return the result. Cancelling the caller ends the search."""
        try:
            next(search)
            async with self._turn:
                while True:
                    await self._clock.sleep(0)
                    next(search)
        except StopIteration as done:
            found: FoundOffset = done.value
            return found


def offset_at(
    found: HostedPartition | ErrorCode, question: OffsetQuestion, replica_id: int, *, committed_only: bool
) -> Generator[None, None, FoundOffset]:
    """Return the offset for the timestamp, -1 if there is none; with `committed_only` among stable ones."""
    if isinstance(found, ErrorCode):
        return FoundOffset(found)
    try:
        found.require_leader(question.leader_epoch)
        answer = yield from _offset_at(found, question.timestamp, replica_id, committed_only)
        found.require_leader(question.leader_epoch)
    except (PartitionRefused, LogError, CorruptBatch) as error:
        return FoundOffset(error.code)
    return answer


def _offset_at(
    partition: HostedPartition, timestamp: int, replica_id: int, committed_only: bool
) -> Generator[None, None, FoundOffset]:
    log = partition.log
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return FoundOffset(0, log.start_offset, leader_epoch=log.epochs.epoch_of(log.start_offset))
    if timestamp == LATEST_TIERED:
        return FoundOffset()
    end = partition.readable_end(replica_id, committed_only=committed_only)
    if timestamp == LATEST:
        _require_settled(partition, replica_id)
        return FoundOffset(0, end, leader_epoch=partition.leader_epoch)
    yield
    timed = yield from latest(log) if timestamp == OF_MAX_TIMESTAMP else first_at_or_after(log, timestamp)
    if timed is None or timed.offset >= end:
        _require_settled(partition, replica_id)
        return FoundOffset()
    return FoundOffset(0, timed.offset, timed.timestamp, timed.leader_epoch)


def _require_settled(partition: HostedPartition, replica_id: int) -> None:
    """Raise while a new leader's high watermark is behind its epoch's start: its end could go back."""
    if replica_id == CONSUMER and partition.log.high_watermark < partition.epoch_start_offset:
        raise PartitionRefused(ErrorCode.OFFSET_NOT_AVAILABLE)


def end_of_epoch(found: HostedPartition | ErrorCode, question: EpochQuestion) -> FoundOffset:
    """Return the largest epoch up to the requested one, and the offset after its last record."""
    if isinstance(found, ErrorCode):
        return FoundOffset(found)
    try:
        found.require_leader(question.leader_epoch)
    except PartitionRefused as refused:
        return FoundOffset(refused.code)
    end = found.log.epochs.end_offset_for(question.epoch, found.log.end_offset)
    return FoundOffset(0, end.end_offset, leader_epoch=end.epoch)


def begin_deletion(
    found: HostedPartition | ErrorCode, offset: int
) -> tuple[HostedPartition, int] | ErrorCode:
    """Delete the leader's records before the offset. Return the partition and the resolved offset."""
    if isinstance(found, ErrorCode):
        return found
    try:
        if offset == HIGH_WATERMARK:
            offset = found.log.high_watermark
        if offset < 0:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        found.delete_records_before(offset)
    except (PartitionRefused, LogError) as error:
        return error.code
    return found, offset
