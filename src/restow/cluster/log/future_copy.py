"""Copies a log step by step. The copy is always a prefix of the log, whatever happens to it.

Meanwhile the log may grow, be truncated by a new leader, lose its start or be compacted. Epoch and offset
identify a record for good, so the copy's last epoch shows whether it is still a prefix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.log.epochs import EpochEndOffset
from restow.cluster.log.errors import UnexpectedOffset
from restow.wire.batches import header_at

if TYPE_CHECKING:
    from restow.cluster.log.log import PartitionLog


def copy_some(present: PartitionLog, future: PartitionLog, most_bytes: int) -> int:
    """Copy up to that many bytes, but at least one batch. Return the copied bytes; 0 after catching up."""
    align(present, future)
    batches = present.read(future.end_offset, most_bytes)
    if batches:
        append_copied(future, batches)
        align(present, future)
    future.high_watermark = present.high_watermark
    return len(batches)


def append_copied(log: PartitionLog, batches: bytes) -> None:
    """Append another log's batches; the first may start before this log does.

    Records may be deleted up to the middle of a batch, and reads still return the whole batch. An empty log
    takes it whole and sets its start.
    """
    try:
        log.append_as_follower(batches)
    except UnexpectedOffset:
        begins_at = log.start_offset
        if log.end_offset > begins_at:
            raise
        log.truncate_fully_and_start_at(header_at(batches).base_offset)
        log.append_as_follower(batches)
        _begin_at(log, begins_at)


def _begin_at(log: PartitionLog, offset: int) -> None:
    log.high_watermark = max(log.high_watermark, offset)
    log.delete_records_before(offset)


def align(present: PartitionLog, future: PartitionLog) -> None:
    """Cut off what the current log does not have, or no longer has, at either end."""
    if future.end_offset < present.start_offset:
        future.truncate_fully_and_start_at(present.start_offset)
        return
    while (end := _common_end(present, future)) < future.end_offset:
        future.truncate_to(end)
    if future.end_offset < present.start_offset:
        future.truncate_fully_and_start_at(present.start_offset)
    elif future.start_offset < present.start_offset:
        _begin_at(future, present.start_offset)


def _common_end(present: PartitionLog, future: PartitionLog) -> int:
    """Return an upper bound of the common part. Callers ask again after cutting there."""
    last = future.epochs.latest
    if last < 0:
        return min(future.end_offset, present.end_offset)
    if last > present.epochs.latest:
        found = EpochEndOffset(present.epochs.latest, present.end_offset)
    else:
        found = present.epochs.end_offset_for(last, present.end_offset)
    own = future.epochs.end_offset_for(found.epoch, future.end_offset)
    known = (own.end_offset,) if own.end_offset >= 0 else ()
    return min(future.end_offset, found.end_offset, *known)
