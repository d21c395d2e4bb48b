"""Segments that retention.ms and retention.bytes no longer keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.log.config import UNLIMITED

if TYPE_CHECKING:
    from restow.cluster.log.log import PartitionLog


def expired_segments(log: PartitionLog, now_ms: int) -> int:
    """Return how many of the oldest segments to delete.

    Nothing after the high watermark is deleted. A segment is as old as its latest record; one without
    timestamps never expires.
    """
    config = log.config
    segments = log.segments
    expired = 0
    size = log.size_bytes
    for number, segment in enumerate(segments):
        is_last = number == len(segments) - 1
        behind = log.end_offset if is_last else segments[number + 1].base_offset
        if (is_last and not segment.size) or behind > log.high_watermark:
            break
        passed = behind <= log.start_offset
        empty = not segment.size
        outdated = UNLIMITED < config.retention_ms < now_ms - segment.max_timestamp
        too_many = UNLIMITED < config.retention_bytes <= size - segment.size and not is_last
        too_old = outdated and segment.max_timestamp >= 0
        if not (passed or (config.cleanup_delete and (too_old or too_many or empty))):
            break
        expired += 1
        size -= segment.size
    return expired


def due_ms(log: PartitionLog) -> int | None:
    """Return when the oldest segment expires, or None if none will."""
    oldest = log.segments[0]
    config = log.config
    if not config.cleanup_delete or config.retention_ms <= UNLIMITED:
        return None
    if oldest.max_timestamp < 0:
        return None
    return oldest.max_timestamp + config.retention_ms + 1
