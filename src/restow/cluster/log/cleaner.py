"""Compaction: keep only the last record of every key (cleanup.policy=compact).

It reads all segments up to the last stable offset except the active one, leaves out superseded records and
those of aborted transactions, and merges small neighbours. Offsets, epochs and producers stay as they are. A
tombstone stays for delete.retention.ms after the first compaction that saw it, so that readers get it; its
batch stores the deadline. The end marker of a transaction stays as long after its last record is gone.

A batch may hold a million records, and a log more keys than fit into memory. So the work pauses after every
few records, and a log with too many keys is compacted in several runs.

The new segment is written as `.cleaned`, synced, renamed to `.swap`, and then replaces the old ones. A crash
at any point leaves either the old segments or the new one.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from restow.cluster.log.cleaned_transactions import TransactionsSoFar
from restow.cluster.log.config import FOREVER
from restow.cluster.log.index import LARGEST_RELATIVE
from restow.cluster.log.loading import CLEANED_SUFFIX, SWAP_SUFFIX, finish_swap, swap_name
from restow.cluster.log.segment import Segment
from restow.wire.batches import CorruptBatch
from restow.wire.compression import UnsupportedCompression
from restow.wire.records import each_record, encode_for, rebuild

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from restow.cluster.log.log import PartitionLog
    from restow.runtime.disk import Disk
    from restow.wire.batches import BatchHeader
    from restow.wire.records import Record

_RECORDS_PER_TURN = 1_000
_MOST_KEYS = 1_000_000
"""Kafka's default buffer holds five million keys in a quarter of the memory that this takes."""


def cleanable(log: PartitionLog, now_ms: int) -> list[Segment]:
    """Return the segments that may be compacted: inactive, below the last stable offset, and old enough."""
    found = []
    stable = log.last_stable_offset
    youngest = now_ms - log.config.min_compaction_lag_ms
    segments = log.segments
    for segment, following in pairwise(segments):
        if following.base_offset > stable:
            break
        if log.config.min_compaction_lag_ms and segment.max_timestamp > youngest:
            break
        found.append(segment)
    return found


def dirty_ratio(log: PartitionLog, first_dirty_offset: int, now_ms: int) -> float:
    """Return the part of the compactable bytes that is dirty."""
    segments = cleanable(log, now_ms)
    total = sum(segment.size for segment in segments)
    dirty = sum(segment.size for segment in segments if segment.next_offset > first_dirty_offset)
    return dirty / total if total else 0.0


def is_due(log: PartitionLog, first_dirty_offset: int, now_ms: int) -> bool:
    """Return whether enough of the log is dirty, or any of it for longer than max.compaction.lag.ms."""
    ratio = dirty_ratio(log, first_dirty_offset, now_ms)
    overdue = ratio > 0 and _overdue_ms(log, first_dirty_offset) <= now_ms
    return overdue or ratio > log.config.min_cleanable_dirty_ratio


def next_due_ms(log: PartitionLog, first_dirty_offset: int, now_ms: int) -> int | None:
    """Return when to check the log again without an append; None if the answer cannot change."""
    dirty = _dirty(log, first_dirty_offset)
    if not dirty:
        return None
    if is_due(log, first_dirty_offset, now_ms) or log.segments[-1].base_offset > log.last_stable_offset:
        return now_ms
    old_enough = [each.max_timestamp + log.config.min_compaction_lag_ms for each in dirty]
    due = min([_overdue_ms(log, first_dirty_offset), *(at_ms for at_ms in old_enough if at_ms > now_ms)])
    return due if due < FOREVER else None


def _overdue_ms(log: PartitionLog, first_dirty_offset: int) -> int:
    """Return when the oldest dirty segment exceeds max.compaction.lag.ms."""
    began = [each.first_timestamp for each in _dirty(log, first_dirty_offset) if each.first_timestamp > 0]
    return min(began) + log.config.max_compaction_lag_ms + 1 if began else FOREVER


def _dirty(log: PartitionLog, first_dirty_offset: int) -> list[Segment]:
    """Return the inactive segments that are not compacted yet, even if they are too young."""
    return [each for each in log.segments[:-1] if each.size and each.next_offset > first_dirty_offset]


def clean(log: PartitionLog, disk: Disk, first_dirty_offset: int, now_ms: int) -> Generator[None, None, int]:
    """Compact a log now, whatever its dirty ratio, and return the start of the part that is not compacted.

    Yields often, so that other work can run. If the log is closed or loses a segment under compaction, it
    stops and leaves the log as it is.
    """
    segments = cleanable(log, now_ms)
    latest: dict[bytes, int] = {}
    aborted = tuple(log.aborted_in(log.start_offset, log.end_offset))
    work = _Work(log, disk, latest, now_ms, TransactionsSoFar(aborted))
    read = TransactionsSoFar(aborted)
    for number, segment in enumerate(segments):
        if segment.next_offset > first_dirty_offset:
            if len(latest) >= _MOST_KEYS:
                del segments[number:]
                break
            for _, header, batch in segment.batches():
                records: Sequence[Record] = ()
                if header.is_control:
                    read.is_empty_end(header, batch)
                elif not read.is_aborted(header):
                    records = (yield from _opened(batch)) or ()
                latest.update((record.key, record.offset) for record in records if record.key is not None)
                yield
                if not log.holds(segments):
                    return first_dirty_offset
    behind = segments[-1].next_offset if segments else first_dirty_offset
    for group in _groups(segments, log.config.segment_bytes):
        if not (yield from work.clean_group(group)):
            return first_dirty_offset
    return max(behind, first_dirty_offset)


def _opened(batch: bytes) -> Generator[None, None, list[Record] | None]:
    """Read a batch's records; None for an unreadable one."""
    records = []
    try:
        for record in each_record(batch):
            records.append(record)
            if len(records) % _RECORDS_PER_TURN == 0:
                yield
    except (CorruptBatch, UnsupportedCompression):
        return None
    return records


def _rebuilt(
    header: BatchHeader, records: list[Record], delete_horizon: int | None
) -> Generator[None, None, bytes]:
    """Write a batch with only these records."""
    parts = []
    for begin in range(0, len(records), _RECORDS_PER_TURN):
        parts.append(encode_for(header, records[begin : begin + _RECORDS_PER_TURN], delete_horizon))
        if len(records) > _RECORDS_PER_TURN:
            yield
    return rebuild(header, records, delete_horizon=delete_horizon, encoded=b"".join(parts))


def _groups(segments: list[Segment], segment_bytes: int) -> list[list[Segment]]:
    """Group neighbours that fit into one segment even if no record is left out."""
    groups: list[list[Segment]] = []
    for segment in segments:
        if groups:
            group = groups[-1]
            size = sum(each.size for each in group) + segment.size
            span = segment.next_offset - group[0].base_offset
            if size <= segment_bytes and span <= LARGEST_RELATIVE:
                group.append(segment)
                continue
        groups.append([segment])
    return groups


class _Work:
    """One compaction of one log."""

    def __init__(
        self,
        log: PartitionLog,
        disk: Disk,
        latest: dict[bytes, int],
        now_ms: int,
        transactions: TransactionsSoFar,
    ) -> None:
        self._log = log
        self._disk = disk
        self._latest = latest
        self._now_ms = now_ms
        self._transactions = transactions
        self._tombstones_may_go = True

    def clean_group(self, group: list[Segment]) -> Generator[None, None, bool]:
        """Replace several segments by one. Return False if they are gone meanwhile."""
        log, disk = self._log, self._disk
        first = group[0].base_offset
        behind = max(group[-1].next_offset, group[-1].base_offset + 1)
        swap = f"{log.directory}/{swap_name(first, behind)}"
        cleaned = swap.removesuffix(SWAP_SUFFIX) + CLEANED_SUFFIX
        if disk.exists(cleaned):
            disk.remove(cleaned)
        aborted = [each for segment in group for each in segment.aborted.entries]
        kept_markers = set()
        file = disk.open(cleaned, create=True)
        try:
            for segment in group:
                for _, header, batch in segment.batches():
                    kept = yield from self._left_of(header, batch)
                    if kept and header.is_control:
                        kept_markers.add(header.last_offset)
                    if not log.holds(group):
                        return False
                    if kept:
                        file.append(kept)
                    yield
                    if not log.holds(group):
                        return False
            file.sync()
        finally:
            file.close()
        disk.rename(cleaned, swap)
        for segment in group:
            segment.close()
        finish_swap(disk, log.directory, first, behind)
        replaced = Segment(disk, log.directory, first)
        replaced.load()
        replaced.finish()
        replaced.aborted.replace(each for each in aborted if each.last_offset in kept_markers)
        log.replace_segments(len(group), replaced)
        return True

    def _left_of(self, header: BatchHeader, batch: bytes) -> Generator[None, None, bytes]:
        """Return the rest of a batch: itself, a smaller one, or nothing.

        An unreadable batch stays, and so do all tombstones after it, because the records that they delete may
        be hidden in it. A producer's last batch stays as an empty one, because its sequence numbers are still
        needed.
        """
        if header.is_control:
            return (yield from self._left_of_control(header, batch))
        horizon = header.delete_horizon
        if self._transactions.is_aborted(header):
            return (yield from self._only(header, batch, header.count, [], None))
        records = yield from _opened(batch)
        if records is None:
            self._tombstones_may_go = False
            return batch
        tombstones_go = self._tombstones_may_go and horizon is not None and self._now_ms >= horizon
        kept = [record for record in records if self._stays(record, tombstones_go=tombstones_go)]
        new_horizon = None
        if horizon is None and any(record.value is None for record in kept):
            new_horizon = self._now_ms + self._log.config.delete_retention_ms
        return (yield from self._only(header, batch, len(records), kept, new_horizon))

    def _left_of_control(self, header: BatchHeader, batch: bytes) -> Generator[None, None, bytes]:
        """Return what is left of a marker: it goes some time after its transaction's last record has gone."""
        if not self._transactions.is_empty_end(header, batch):
            return batch
        horizon = header.delete_horizon
        if horizon is not None and self._now_ms >= horizon:
            return (yield from self._only(header, batch, 1, [], None))
        records = list(each_record(batch))
        new_horizon = None if horizon is not None else self._now_ms + self._log.config.delete_retention_ms
        return (yield from self._only(header, batch, len(records), records, new_horizon))

    def _only(
        self, header: BatchHeader, batch: bytes, count: int, kept: list[Record], new_horizon: int | None
    ) -> Generator[None, None, bytes]:
        """Return a batch of `count` records with only these."""
        if not kept and not self._log.producers.is_last_of(header):
            return b""
        if len(kept) == count and new_horizon is None:
            return batch
        return (yield from _rebuilt(header, kept, new_horizon))

    def _stays(self, record: Record, *, tombstones_go: bool) -> bool:
        """Return whether a record stays. Records without a key are dropped, as in Kafka."""
        if record.key is None or self._latest.get(record.key, -1) > record.offset:
            return False
        return not (tombstones_go and record.value is None)
