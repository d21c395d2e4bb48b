"""The log of one partition on one broker: its segments and offsets.

Batches are stored as they came. A leader assigns offsets and its epoch, a follower keeps both. Nothing here
waits or reads a clock; callers pass the time.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.log.checkpoint import LEADER_EPOCHS, encode_epochs
from restow.cluster.log.epochs import LeaderEpochs
from restow.cluster.log.errors import LogError, OffsetOutOfRange, UnexpectedOffset
from restow.cluster.log.index import LARGEST_RELATIVE
from restow.cluster.log.loading import (
    load_epochs,
    load_producers,
    load_segments,
    write_snapshot,
)
from restow.cluster.log.producer_batches import check_producer, note_producers
from restow.cluster.log.producers import ProducerStates
from restow.cluster.log.segment import Segment
from restow.cluster.log.transactions import aborted_in
from restow.cluster.log.validate import checked, recompressed, with_append_time
from restow.wire.batches import (
    LENGTH_ENDS,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    PREFIX_BYTES,
    BatchHeader,
    check,
    prefix,
    scan,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from restow.cluster.log.config import LogConfig
    from restow.cluster.log.producers import Verification
    from restow.cluster.log.transactions import AbortedTransaction
    from restow.model import TopicPartition
    from restow.runtime.disk import Disk, Part


_READ_AT_ONCE_BYTES = 64 * 1024
"""A log of this size is read faster than a file is made that says it has no producers."""


class AppendInfo(NamedTuple):
    """Offsets of appended batches; for a duplicate, those of the original."""

    first_offset: int
    last_offset: int
    log_append_time: int = NO_TIMESTAMP
    """The log append time, if the topic uses it."""
    size_bytes: int = 0
    """The bytes that were written."""
    duplicate: bool = False


def _nobody(log: PartitionLog) -> None:
    """Ignore the append."""


class PartitionLog:
    """One partition's records from `start_offset` to before `end_offset`."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        partition: TopicPartition,
        config: LogConfig,
        *,
        fresh: bool = False,
        recovery_point: int | None = None,
        start_offset: int = 0,
        high_watermark: int = 0,
        on_append: Callable[[PartitionLog], None] = _nobody,
    ) -> None:
        """Load the directory, which must exist; a `fresh` one is known to be empty.

        `recovery_point` is None after a clean close; otherwise everything from that offset on is checked.
        """
        self.partition = partition
        self.directory = directory
        self.config = config
        self.attended = False
        """Whether maintenance is scheduled; otherwise an append calls `on_append`."""
        self.closed = False
        self._epochs_changed = False
        self._disk = disk
        self._on_append = on_append
        if fresh:
            self._segments = [Segment(disk, directory, 0, create_later=True)]
        else:
            self._segments = load_segments(disk, directory, config, recovery_point)
        self._bases = [segment.base_offset for segment in self._segments]
        self._active = self._segments[-1]
        self._size = sum(segment.size for segment in self._segments)
        self.end_offset = self._active.next_offset
        self.start_offset = min(max(start_offset, self._bases[0]), self.end_offset)
        self._high_watermark = min(max(high_watermark, self.start_offset), self.end_offset)
        clean = recovery_point is None
        self.recovery_point = self.end_offset if clean else min(recovery_point or 0, self.end_offset)
        self.epochs, self.producers = LeaderEpochs(), ProducerStates()
        if fresh:
            return
        self.epochs, completed = load_epochs(disk, directory, self._segments, clean=clean)
        if self.epochs.truncate_from_end(self.end_offset) or completed:
            self._write_epochs()
        self.producers = load_producers(disk, directory, self._segments, self.end_offset, recovery_point)
        self.producers.transactions.replicated_to(self._high_watermark)

    @property
    def size_bytes(self) -> int:
        """The bytes of all batches, without indexes."""
        return self._size

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The oldest first; the last one is active."""
        return tuple(self._segments)

    @property
    def high_watermark(self) -> int:
        """The offset up to which consumers may read."""
        return self._high_watermark

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None:
        self._high_watermark = min(max(offset, self.start_offset), self.end_offset)
        self.producers.transactions.replicated_to(self._high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which all transactions have ended."""
        unstable = self.producers.transactions.first_offset
        if unstable is None or unstable >= self._high_watermark:
            return self._high_watermark
        return max(unstable, self.start_offset)

    def append_as_leader(
        self,
        batches: bytes,
        leader_epoch: int,
        now_ms: int,
        *,
        from_client: bool = True,
        verification: Verification | None = None,
    ) -> AppendInfo:
        """Assign offsets and our epoch to a producer's batches, and write them.

        A batch that begins a transaction needs a verification. Coordinators may also append end markers, and
        do not number their records. Raises CorruptBatch or InvalidAppend without having written anything.
        """
        config = self.config
        found = checked(batches, config, now_ms, from_client=from_client)
        producer = found[0][1]
        if producer.producer_id >= 0:
            known = check_producer(self.producers, producer, batches, verification, from_client=from_client)
            if known is not None:
                return AppendInfo(known.base_offset, known.last_offset, duplicate=True)
        append_time = NO_TIMESTAMP
        source: Part = batches
        if config.compression is not None:
            source, found = recompressed(batches, found, config)
        if config.timestamp_type == LOG_APPEND_TIME:
            append_time = now_ms
            source, found = with_append_time(source, found, now_ms)
        first_offset = next_offset = self.end_offset
        view = memoryview(source)
        parts: list[Part] = []
        headers = []
        for position, header in found:
            length = header.length
            parts += (
                prefix(next_offset, length, leader_epoch),
                view[position + PREFIX_BYTES : position + LENGTH_ENDS + length],
            )
            headers.append(BatchHeader._make((next_offset, length, leader_epoch, *header[3:])))
            next_offset += header.last_offset_delta + 1
        if leader_epoch > self.epochs.latest:
            self.begin_epoch(leader_epoch)
        self._write(parts, headers, len(source))
        note_producers(self.producers, self._active, headers, found, source)
        return AppendInfo(first_offset, next_offset - 1, append_time, len(source))

    def append_as_follower(self, batches: bytes) -> None:
        """Write the leader's batches as they are. They must start at this log's end or later."""
        found = check(batches)
        if not found:
            return
        next_offset = self.end_offset
        for _, header in found:
            if header.base_offset < next_offset:
                raise UnexpectedOffset(
                    f"{self.partition} goes on at offset {next_offset}, "
                    f"but the leader sent a batch of offset {header.base_offset}"
                )
            next_offset = header.next_offset
        headers = [header for _, header in found]
        for header in headers:
            if header.leader_epoch > self.epochs.latest:
                self._epochs_changed |= self.epochs.assign(header.leader_epoch, header.base_offset)
        self._write((batches,), headers, len(batches))
        note_producers(self.producers, self._active, headers, found, batches)

    def begin_epoch(self, leader_epoch: int) -> None:
        """Start an epoch as leader. Later appends get this epoch."""
        self._epochs_changed |= self.epochs.assign(leader_epoch, self.end_offset)

    def _write(self, parts: Sequence[Part], headers: list[BatchHeader], size: int) -> None:
        if self._epochs_changed:
            # Not earlier: after a restart an epoch without a record is useless.
            self._write_epochs()
        first, last = headers[0], headers[-1]
        if self._must_roll(size, last):
            self.roll(first.base_offset)
        self._active.append(parts, headers, self.config.index_interval_bytes)
        self._size += size
        self.end_offset = last.base_offset + last.last_offset_delta + 1
        if self.end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush()
        if not self.attended:
            self._on_append(self)

    def _must_roll(self, size: int, last: BatchHeader) -> bool:
        """Return whether the segment is full, too old, or its base too far from the new offsets."""
        active, config = self._active, self.config
        if last.last_offset - active.base_offset > LARGEST_RELATIVE:
            return True
        began = active.first_timestamp
        too_old = began >= 0 and last.max_timestamp - began > config.roll_ms
        return active.size > 0 and (too_old or active.size + size > config.segment_bytes)

    def roll(self, base_offset: int | None = None) -> None:
        """Finish the active segment and start another one."""
        base = self.end_offset if base_offset is None else base_offset
        if base > self._active.base_offset:
            self._active.make_file()
            self._active.finish()
            self._write_snapshot()
            self._begin_segment(base)

    def _begin_segment(self, base_offset: int) -> None:
        self._active = Segment(self._disk, self.directory, base_offset, create=True)
        self._segments.append(self._active)
        self._bases.append(base_offset)

    def read(
        self, offset: int, max_bytes: int, upto_offset: int | None = None, *, min_one: bool = True
    ) -> bytes:
        """Return whole batches of one segment, from the one with the offset, that end before `upto_offset`.

        At most `max_bytes`, except that with `min_one` a larger first batch is returned whole. The first
        batch may start before the offset.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(
                f"{self.partition} has offsets {self.start_offset} to {self.end_offset}, not {offset}"
            )
        upto = self.end_offset if upto_offset is None else upto_offset
        if offset >= upto:
            return b""
        for number in range(bisect_right(self._bases, offset) - 1, len(self._segments)):
            found = self._segments[number].read(offset, max_bytes, upto, min_one=min_one)
            if found is not None:
                return found
        return b""

    def aborted_in(self, offset: int, end_offset: int) -> Iterator[AbortedTransaction]:
        """Yield the aborted transactions that have offsets in this range, in the order of their markers."""
        since = max(0, bisect_right(self._bases, offset) - 1)
        return aborted_in((each.aborted for each in self._segments[since:]), offset, end_offset)

    def aborted_with(self, offset: int, batches: bytes) -> list[tuple[int, int]]:
        """Return producers and first offsets of the aborted transactions in batches read from the offset."""
        if not batches or next(self.aborted_in(offset, self.end_offset), None) is None:
            return []
        end_offset = max(header.next_offset for _, header in scan(batches))
        return [(each.producer_id, each.first_offset) for each in self.aborted_in(offset, end_offset)]

    def truncate_to(self, offset: int) -> None:
        """Truncate the log to end at the offset, or before it if a batch spans it."""
        if offset >= self.end_offset:
            return
        if offset < self._bases[0]:
            self.truncate_fully_and_start_at(offset)
            return
        while self._bases[-1] > offset:
            self._drop_segment(-1)
        self._active = active = self._segments[-1]
        position = active.position_of(offset)
        end = offset
        if position is not None:
            _, header = next(active.headers(position))
            end = min(offset, header.base_offset)
            self._size -= active.size - position
            active.truncate(position)
        self._ends_at(end)
        if active.next_offset < end:
            # The end lies in a gap: an empty segment of that name keeps it over a restart.
            self.roll()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and continue as an empty log at the offset."""
        while self._segments:
            self._drop_segment(-1)
        self._begin_segment(offset)
        self.start_offset = offset
        self._ends_at(offset)
        self._high_watermark = offset

    def _ends_at(self, offset: int) -> None:
        """Forget epochs and producers after the log's new end."""
        self.end_offset = offset
        self.start_offset = min(self.start_offset, offset)
        self.recovery_point = min(self.recovery_point, offset)
        if self.epochs.truncate_from_end(offset):
            self._write_epochs()
        self.producers = load_producers(self._disk, self.directory, self._segments, offset)
        self.high_watermark = min(self._high_watermark, offset)

    def delete_records_before(self, offset: int) -> None:
        """Start at the offset, at most the high watermark; whole segments before it are removed."""
        if offset > self._high_watermark:
            raise OffsetOutOfRange(
                f"{self.partition} can begin at {self._high_watermark} at most, not at {offset}"
            )
        if offset > self.start_offset:
            self.start_offset = offset
            self.drop_segments(sum(base <= offset for base in self._bases[1:]))

    def drop_segments(self, count: int) -> None:
        """Remove that many of the oldest segments. If all go, the log continues empty at its end."""
        if count >= len(self._segments):
            self._active.finish()
            if self._active.base_offset == self.end_offset:
                raise LogError(f"{self.partition} has only the segment it is about to write to")
            self._begin_segment(self.end_offset)
        for _ in range(min(count, len(self._segments) - 1)):
            self._drop_segment(0)
        self.start_offset = max(self.start_offset, self._bases[0])
        self._high_watermark = max(self._high_watermark, self.start_offset)
        self.recovery_point = max(self.recovery_point, self.start_offset)
        if self.epochs.truncate_from_start(self.start_offset):
            self._write_epochs()

    def _drop_segment(self, number: int) -> None:
        segment = self._segments.pop(number)
        self._bases.pop(number)
        self._size -= segment.size
        segment.remove()

    def holds(self, segments: Sequence[Segment]) -> bool:
        """Return whether these are still segments of an open log."""
        return not self.closed and all(segment in self._segments for segment in segments)

    def replace_segments(self, count: int, replaced: Segment) -> None:
        """Put a compacted segment in the place of that many, which are already gone from disk.

        They are counted from the segment with the same base offset.
        """
        first = self._bases.index(replaced.base_offset)
        old = self._segments[first : first + count]
        self._size += replaced.size - sum(segment.size for segment in old)
        self._segments[first : first + count] = [replaced]
        self._bases[first : first + count] = [replaced.base_offset]

    def adopt(self, other: PartitionLog) -> None:
        """Adopt the epochs and producers of the copied log, including those of deleted records."""
        self.epochs, self.producers = LeaderEpochs(other.epochs.entries), other.producers
        self.producers.transactions.replicated_to(self._high_watermark)
        self._write_epochs()

    def flush(self) -> None:
        """Sync everything written so far to disk."""
        if self.recovery_point < self.end_offset:
            for segment in self._segments[max(0, bisect_right(self._bases, self.recovery_point) - 1) :]:
                segment.sync()
        self.recovery_point = self.end_offset

    def was_synced(self) -> None:
        """Note that all files of the disk were synced."""
        self.recovery_point = self.end_offset

    def close(self, *, durable: bool = True) -> None:
        """Write indexes and snapshots for a quick start, synced if `durable`, and close the files."""
        self._active.finish()
        if len(self.producers) or self._size > _READ_AT_ONCE_BYTES:
            self._write_snapshot()
        if durable:
            self.flush()
        self.release()

    def release(self) -> None:
        """Close the files without writing, after a disk failure or before a deletion."""
        self.closed = True
        for segment in self._segments:
            segment.close()

    def _write_epochs(self) -> None:
        path = f"{self.directory}/{LEADER_EPOCHS}"
        self._disk.write_atomically(path, encode_epochs(self.epochs.entries), durable=False)
        self._epochs_changed = False

    def _write_snapshot(self) -> None:
        """Write a producer snapshot at the log's end. Two are kept, in case the newer one is lost."""
        write_snapshot(self._disk, self.directory, self.end_offset, self.producers)
