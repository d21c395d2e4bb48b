"""One stretch of a log: a file of batches as they came, with its two indexes.

The files are Kafka's: `00000000000000000042.log`, `.index` and `.timeindex`, named by the first offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.log.index import OffsetIndex, TimeIndex
from restow.wire.batches import HEADER_BYTES, LENGTH_ENDS, MAGIC, CorruptBatch, check, header_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from restow.runtime.disk import Disk, File, Part
    from restow.wire.batches import BatchHeader

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"

_WALK_BYTES = 4096
_SCAN_BYTES = 1 << 20
_MOST_BOUNDARIES = 32


def file_name(base_offset: int, suffix: str) -> str:
    """The name Kafka gives to such a file."""
    return f"{base_offset:020d}{suffix}"


class _NoFileYet:
    """The file of a segment that has had nothing appended: making thousands of topics makes no files."""

    size = 0

    def append(self, *parts: Part) -> int:
        raise AssertionError(f"{len(parts)} parts cannot be written before there is a file")

    def read(self, position: int, size: int) -> bytes:
        raise AssertionError(f"there are no {size} bytes at {position} before there is a file")

    def truncate(self, size: int) -> None:
        """It has no bytes to lose."""

    def sync(self) -> None:
        """It has no bytes to keep."""

    def close(self) -> None:
        """It holds nothing."""


_NO_FILE_YET = _NoFileYet()


class Segment:
    """Batches from `base_offset` on. Only the last segment of a log is appended to.

    With `create` its file is made, with `create_later` only when something is appended.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        *,
        create: bool = False,
        create_later: bool = False,
    ) -> None:
        self.base_offset = base_offset
        self.path = f"{directory}/{file_name(base_offset, LOG_SUFFIX)}"
        self._disk = disk
        self._directory = directory
        self._file: File = _NO_FILE_YET if create_later else disk.open(self.path, create=create)
        self.size = self._file.size
        self._reset()
        self._loaded = not self.size
        self._has_index_files = bool(self.size)
        """Whether there may be files of the indexes, with something in them that is true no more."""

    def _reset(self) -> None:
        self._index = OffsetIndex(self.base_offset)
        self._times = TimeIndex(self.base_offset)
        self._next_offset = self.base_offset
        self._max_timestamp = -1
        self._max_timestamp_offset = self.base_offset
        self.first_timestamp = -1
        self._since_index = 0
        self._boundaries: dict[int, int] = {}

    @property
    def next_offset(self) -> int:
        """The offset behind the last batch."""
        if not self._loaded:
            self.load()
        return self._next_offset

    @property
    def max_timestamp(self) -> int:
        """The highest timestamp of any batch, or -1."""
        if not self._loaded:
            self.load()
        return self._max_timestamp

    @property
    def max_timestamp_offset(self) -> int:
        """The last offset of the first batch with the highest timestamp."""
        if not self._loaded:
            self.load()
        return self._max_timestamp_offset

    def offset_before_timestamp(self, timestamp: int) -> int:
        """An offset that no record of this timestamp or a later one comes before."""
        if not self._loaded:
            self.load()
        return self._times.before(timestamp)

    def append(
        self, parts: Sequence[Part], headers: Sequence[BatchHeader], index_interval_bytes: int
    ) -> None:
        """Write batches and note what they are. `headers` are as they stand in the parts."""
        if not self._loaded:
            self.load()
        if self._file is _NO_FILE_YET:
            self.make_file()
        position = self._file.append(*parts)
        for header in headers:
            position = self._note(position, header, index_interval_bytes)
        self.size = position

    def make_file(self) -> None:
        """Make the file if that was left for later."""
        if self._file is _NO_FILE_YET:
            self._file = self._disk.open(self.path, create=True)

    def _note(self, position: int, header: BatchHeader, index_interval_bytes: int) -> int:
        last_offset = header.base_offset + header.last_offset_delta
        timestamp = header.max_timestamp
        if timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
            self._max_timestamp_offset = last_offset
        if self.first_timestamp < 0:
            self.first_timestamp = timestamp
        if self._since_index > index_interval_bytes:
            self._index.add(last_offset, position)
            self._times.add(self._max_timestamp, self._max_timestamp_offset)
            self._since_index = 0
        size = header.length + LENGTH_ENDS
        self._since_index += size
        self._next_offset = last_offset + 1
        return position + size

    def read(self, offset: int, max_bytes: int, upto_offset: int, *, min_one: bool) -> bytes | None:
        """Whole batches from the one that has the offset, or None if none here reaches that far.

        None of them ends at `upto_offset` or later, and together they are no more than `max_bytes`,
        except that with `min_one` the first may be larger.
        """
        start = self.position_of(offset)
        if start is None:
            return None
        end = self._end_of_read(start, start + max_bytes, upto_offset)
        if end == start and min_one:
            _, header = next(self.headers(start))
            if header.last_offset < upto_offset:
                end = start + header.size
        return self._file.read(start, end - start) if end > start else b""

    def position_of(self, offset: int) -> int | None:
        """Where the batch begins that has the offset, or the first one behind it; None if there is none."""
        if not self._loaded:
            self.load()
        position = self._boundaries.get(offset)
        if position is not None:
            return position if position < self.size else None
        if offset >= self._next_offset:
            return None
        for position, header in self.headers(self._index.before(offset)):
            if header.last_offset >= offset:
                return position
        return None

    def _end_of_read(self, start: int, limit: int, upto_offset: int) -> int:
        if self.size <= limit and self._next_offset <= upto_offset:
            self._remember(self._next_offset, self.size)
            return self.size
        known = start
        if limit - start > _WALK_BYTES:
            known = max(start, self._index.within(limit, upto_offset))
        for position, header in self.headers(known):
            last_offset = header.base_offset + header.last_offset_delta
            if position + LENGTH_ENDS + header.length > limit or last_offset >= upto_offset:
                self._remember(header.base_offset, position)
                return position
        return self.size

    def _remember(self, offset: int, position: int) -> None:
        """Who reads to here will go on from here: the next read finds its place without a walk."""
        if len(self._boundaries) >= _MOST_BOUNDARIES:
            self._boundaries.clear()
        self._boundaries[offset] = position

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """The batches from a position on at which one begins, without their payload."""
        chunk = b""
        chunk_at = position
        while position < self.size:
            at = position - chunk_at
            if at + HEADER_BYTES > len(chunk):
                chunk, chunk_at, at = self._file.read(position, _WALK_BYTES), position, 0
            if len(chunk) - at < HEADER_BYTES:
                raise CorruptBatch(f"{self.path} is cut off in the header at position {position}")
            header = header_at(chunk, at)
            following = position + LENGTH_ENDS + header.length
            if header.magic != MAGIC or following > self.size or header.length < 0:
                raise CorruptBatch(f"{self.path} has no batch at position {position}")
            yield position, header
            position = following

    def batches(self, position: int = 0) -> Iterator[tuple[int, BatchHeader, bytes]]:
        """The same with all their bytes, which are not checked."""
        for start, header in self.headers(position):
            yield start, header, self.batch_at(start, header)

    def batch_at(self, position: int, header: BatchHeader) -> bytes:
        """All bytes of the batch of that header."""
        return self._file.read(position, header.size)

    def load(self) -> None:
        """Take the indexes from their files and the rest from the log behind their last entries.

        Indexes that are missing or cannot be true are made anew.
        """
        self._reset()
        self._loaded = True
        index = self._stored(INDEX_SUFFIX)
        times = self._stored(TIME_INDEX_SUFFIX)
        self._has_index_files = index is not None or times is not None
        if index is None or times is None:
            return self._rebuild()
        if not (self._index.decode(index, self.size) and self._times.decode(times)):
            return self._rebuild()
        self._max_timestamp, self._max_timestamp_offset = self._times.last
        try:
            for _, header in self.headers(0):
                self.first_timestamp = header.max_timestamp
                break
            for _, header in self.headers(self._index.before(2**62)):
                self._note_unindexed(header)
        except CorruptBatch:
            return self._rebuild()
        return None

    def _note_unindexed(self, header: BatchHeader) -> None:
        self._next_offset = header.next_offset
        self._since_index += header.size
        if header.max_timestamp > self._max_timestamp:
            self._max_timestamp = header.max_timestamp
            self._max_timestamp_offset = header.last_offset

    def _rebuild(self) -> None:
        self._reset()
        for position, header in self.headers():
            self._note(position, header, _WALK_BYTES)

    def recover(self, index_interval_bytes: int) -> int:
        """Check every batch, make the indexes anew and cut off what is not whole. Says how much was cut."""
        self._reset()
        self._loaded = True
        end = 0
        found = self._file.size
        while end < found and (batch := self._whole_batch_at(end, found)) is not None:
            end = self._note(end, batch, index_interval_bytes)
        if end < found:
            self._file.truncate(end)
        self.size = end
        return found - end

    def _whole_batch_at(self, position: int, found: int) -> BatchHeader | None:
        start = self._file.read(position, HEADER_BYTES)
        if len(start) < HEADER_BYTES:
            return None
        header = header_at(start)
        if header.length < 0 or position + header.size > found or header.base_offset < self._next_offset:
            return None
        try:
            check(self._file.read(position, header.size))
        except CorruptBatch:
            return None
        return header

    def truncate(self, position: int) -> None:
        """Cut the file off where a batch begins."""
        self._file.truncate(position)
        self.size = position
        self._boundaries.clear()
        self._index.truncate(position)
        self._next_offset = self.base_offset
        self._since_index = 0
        unindexed = [header for _, header in self.headers(self._index.before(2**62))]
        self._times.truncate(unindexed[-1].next_offset if unindexed else self.base_offset)
        self._max_timestamp, self._max_timestamp_offset = self._times.last
        for header in unindexed:
            self._note_unindexed(header)
        if not position:
            self.first_timestamp = -1

    def finish(self) -> None:
        """No more will be appended: note the highest timestamp and write the indexes.

        Empty ones are not worth a file each: what they would save is one look into a short log.
        """
        if not self._loaded or self._file is _NO_FILE_YET:
            return
        if not (len(self._index) or self._has_index_files):
            return
        self._has_index_files = True
        if self._max_timestamp >= 0:
            self._times.add(self._max_timestamp, self._max_timestamp_offset)
        for suffix, data in ((INDEX_SUFFIX, self._index.encode()), (TIME_INDEX_SUFFIX, self._times.encode())):
            self._disk.write_atomically(self._beside(suffix), data, durable=False)

    def sync(self) -> None:
        """Return when all batches would survive a loss of power."""
        self._file.sync()

    def close(self) -> None:
        """Give back the file."""
        self._file.close()

    def remove(self) -> None:
        """Close and remove all files of the segment."""
        self._file.close()
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            if self._disk.exists(self._beside(suffix)):
                self._disk.remove(self._beside(suffix))
        if self._file is not _NO_FILE_YET:
            self._disk.remove(self.path)

    def _stored(self, suffix: str) -> bytes | None:
        path = self._beside(suffix)
        return self._disk.read_bytes(path) if self._disk.exists(path) else None

    def _beside(self, suffix: str) -> str:
        return f"{self._directory}/{file_name(self.base_offset, suffix)}"
