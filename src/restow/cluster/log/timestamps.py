"""Finds the first record with a timestamp.

A search is a generator that yields often, so that other work can run. A producer can hide a million records
in a hundred bytes, so at most two batches are opened, and records are not made into objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from restow.wire.batches import CorruptBatch
from restow.wire.compression import UnsupportedCompression
from restow.wire.records import each_time

if TYPE_CHECKING:
    from collections.abc import Generator

    from restow.cluster.log.log import PartitionLog
    from restow.wire.batches import BatchHeader

_RECORDS_PER_TURN = 2_000
_HEADERS_PER_TURN = 500


class TimedOffset(NamedTuple):
    """A record's offset, timestamp and leader epoch."""

    offset: int
    timestamp: int
    leader_epoch: int


def first_at_or_after(log: PartitionLog, timestamp: int) -> Generator[None, None, TimedOffset | None]:
    """Find the first record that is not earlier than the timestamp, or None.

    In the batch at the log's start all such records may be deleted; then the next batch has it. A header
    whose timestamp no record has is handled like an unreadable batch.
    """
    start_offset = log.start_offset
    while True:
        candidate = yield from _batch_with(log, timestamp, start_offset)
        if candidate is None:
            return None
        header, batch = candidate
        found = yield from _first_in_batch(header, batch, timestamp, start_offset)
        if found is not None:
            return found
        if header.base_offset >= start_offset:
            return _beginning_of(header, start_offset)
        start_offset = header.next_offset


def latest(log: PartitionLog) -> Generator[None, None, TimedOffset | None]:
    """Find the first record with the highest timestamp, or None if no record has one."""
    highest = max((segment.max_timestamp for segment in log.segments), default=-1)
    if highest < 0:
        return None
    return (yield from first_at_or_after(log, highest))


def _batch_with(
    log: PartitionLog, timestamp: int, start_offset: int
) -> Generator[None, None, tuple[BatchHeader, bytes] | None]:
    """Find the first batch whose header has the timestamp. Start again if the log changes."""
    seen = 0
    for segment in log.segments:
        if segment.max_timestamp < timestamp or segment.next_offset <= start_offset:
            continue
        begin = segment.position_of(max(segment.offset_before_timestamp(timestamp), start_offset))
        if begin is None:
            continue
        for position, header in segment.headers(begin):
            if header.max_timestamp >= timestamp and header.count and header.last_offset >= start_offset:
                return header, segment.batch_at(position, header)
            seen += 1
            if seen % _HEADERS_PER_TURN == 0:
                yield
                if log.closed:
                    return None
                if not log.holds((segment,)):
                    return (yield from _batch_with(log, timestamp, max(start_offset, log.start_offset)))
    return None


def _first_in_batch(
    header: BatchHeader, batch: bytes, timestamp: int, start_offset: int
) -> Generator[None, None, TimedOffset | None]:
    """Find the record in a batch. For an unreadable batch return its first offset, a lower bound."""
    try:
        for number, (offset, at_ms) in enumerate(each_time(batch), start=1):
            if at_ms >= timestamp and offset >= start_offset:
                return TimedOffset(offset, at_ms, header.leader_epoch)
            if number % _RECORDS_PER_TURN == 0:
                yield
    except (CorruptBatch, UnsupportedCompression):
        return _beginning_of(header, start_offset)
    return None


def _beginning_of(header: BatchHeader, start_offset: int) -> TimedOffset:
    return TimedOffset(max(header.base_offset, start_offset), header.max_timestamp, header.leader_epoch)
