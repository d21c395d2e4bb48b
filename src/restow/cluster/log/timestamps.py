"""Which record is the first of a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from restow.wire.batches import CorruptBatch
from restow.wire.compression import UnsupportedCompression
from restow.wire.records import each_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.log.segment import Segment
    from restow.wire.batches import BatchHeader


class TimedOffset(NamedTuple):
    """A record's offset, its timestamp, and the epoch of the leader that wrote it."""

    offset: int
    timestamp: int
    leader_epoch: int


def first_at_or_after(segments: Iterable[Segment], timestamp: int, start_offset: int) -> TimedOffset | None:
    """The first record from `start_offset` on that is not earlier than the timestamp, or None."""
    for segment in segments:
        if segment.max_timestamp < timestamp or segment.next_offset <= start_offset:
            continue
        begin = segment.position_of(max(segment.offset_before_timestamp(timestamp), start_offset))
        if begin is None:
            continue
        for _, header, batch in segment.batches(begin):
            if header.max_timestamp >= timestamp:
                found = _first_in_batch(header, batch, timestamp, start_offset)
                if found is not None:
                    return found
    return None


def latest(segments: Iterable[Segment], start_offset: int) -> TimedOffset | None:
    """The first record of the highest timestamp, or None if no record has one."""
    highest = max((segment.max_timestamp for segment in segments), default=-1)
    return None if highest < 0 else first_at_or_after(segments, highest, start_offset)


def _first_in_batch(header: BatchHeader, batch: bytes, timestamp: int, start: int) -> TimedOffset | None:
    """A batch that cannot be opened answers with its first offset: no record of the time comes before."""
    try:
        for record in each_record(batch):
            if record.timestamp >= timestamp and record.offset >= start:
                return TimedOffset(record.offset, record.timestamp, header.leader_epoch)
    except (CorruptBatch, UnsupportedCompression):
        return TimedOffset(max(header.base_offset, start), header.max_timestamp, header.leader_epoch)
    return None
