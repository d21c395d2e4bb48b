"""One segment of a log: a file of batches as they came, with its two indexes.

The files are Kafka's: `00000000000000000042.log`, `.index` and `.timeindex`, named by the first offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.log.index import OffsetIndex, TimeIndex
from restow.cluster.log.transactions import TXN_INDEX_SUFFIX, TransactionIndex
from restow.wire.batches import HEADER_BYTES, LENGTH_ENDS, MAGIC, CorruptBatch, check, header_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from restow.runtime.disk import Disk, File, Part
    from restow.wire.batches import BatchHeader

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"

_WALK_BYTES = 4096
_MOST_BOUNDARIES = 32


def file_name(base_offset: int, suffix: str) -> str:
    """Return Kafka's name for such a file."""
    return f"{base_offset:020d}{suffix}"


class _NoFileYet:
    """Stands for the file of an empty segment, so that creating thousands of topics makes no files."""

    size = 0

    def append(self, *parts: Part) -> int:
        raise AssertionError(f"{len(parts)} parts cannot be written before there is a file")

    def read(self, position: int, size: int) -> bytes:
        raise AssertionError(f"there are no {size} bytes at {position} before there is a file")

    def truncate(self, size: int) -> None:
        """Do nothing, because there are no bytes."""

    def sync(self) -> None:
        """Do nothing, because there are no bytes."""

    def close(self) -> None:
        """Do nothing."""


_NO_FILE_YET = _NoFileYet()


class Segment:
    """Batches from `base_offset` on. Only a log's last segment is appended to.

    With `create` its file is made now, with `create_later` at the first append.
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
        self.aborted = TransactionIndex(disk, self._beside(TXN_INDEX_SUFFIX), is_new=not self.size)
        """Aborted transactions whose end marker is in this segment."""
        self._reset()
        self._loaded = not self.size
        self._has_index_files = bool(self.size)
        """Whether index files with outdated content may exist."""

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
        """The offset after the last batch."""
        if not self._loaded:
            self.load()
        return self._next_offset

    @property
    def max_timestamp(self) -> int:
        """The highest timestamp of any batch, or -1."""
        if not self._loaded:
            self.load()
        return self._max_timestamp

    def offset_before_timestamp(self, timestamp: int) -> int:
        """Return an offset before which no record has this timestamp or a later one."""
        if not self._loaded:
            self.load()
        return self._times.before(timestamp)

    def append(
        self, parts: Sequence[Part], headers: Sequence[BatchHeader], index_interval_bytes: int
    ) -> None:
        """Write batches and index them. `headers` match the bytes of `parts`."""
        if not self._loaded:
            self.load()
        if self._file is _NO_FILE_YET:
            self.make_file()
        position = self._file.append(*parts)
        for header in headers:
            position = self._note(position, header, index_interval_bytes)
        self.size = position

    def make_file(self) -> None:
        """Make the file if it was postponed."""
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
        """Return whole batches from the one with the offset, or None if the segment ends before it.

        They end before `upto_offset` and have at most `max_bytes`, except that with `min_one` the first may
        be larger.
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
        """Return the position of the batch with the offset, or the first one after it; None without one."""
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
        """Remember where a read ended, so that the next read starts there without a scan."""
        if len(self._boundaries) >= _MOST_BOUNDARIES:
            self._boundaries.clear()
        self._boundaries[offset] = position

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Yield the batches' headers from a batch's position on."""
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
        """Yield the batches with all their bytes, unchecked."""
        for start, header in self.headers(position):
            yield start, header, self.batch_at(start, header)

    def batch_at(self, position: int, header: BatchHeader) -> bytes:
        """Return all bytes of the batch with that header."""
        return self._file.read(position, header.size)

    def load(self) -> None:
        """Load the indexes from their files and the rest from the log after their last entries.

        Missing or impossible indexes are rebuilt.
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
        """Check every batch, rebuild the indexes and cut off incomplete data. Return the bytes cut."""
        self._reset()
        self._loaded = True
        end = 0
        found = self._file.size
        while end < found and (batch := self._whole_batch_at(end, found)) is not None:
            end = self._note(end, batch, index_interval_bytes)
        if end < found:
            self._file.truncate(end)
        self.size = end
        self.aborted.cut(self._next_offset)
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
        """Cut the file off at a batch's position."""
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
        self.aborted.cut(self._next_offset)
        if not position:
            self.first_timestamp = -1

    def finish(self) -> None:
        """Close the segment for appends: add the highest timestamp and write the indexes.

        Empty indexes get no file, because reading a short log is quick anyway.
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
        """Sync all batches to disk."""
        self._file.sync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def remove(self) -> None:
        """Close and remove all files of the segment."""
        self._file.close()
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            if self._disk.exists(self._beside(suffix)):
                self._disk.remove(self._beside(suffix))
        self.aborted.remove()
        if self._file is not _NO_FILE_YET:
            self._disk.remove(self.path)

    def _stored(self, suffix: str) -> bytes | None:
        path = self._beside(suffix)
        return self._disk.read_bytes(path) if self._disk.exists(path) else None

    def _beside(self, suffix: str) -> str:
        return f"{self._directory}/{file_name(self.base_offset, suffix)}"
