"""The two sparse indexes of a segment, in Kafka's file formats.

    .index      (last offset of a batch - base offset, position of the batch)     2 × int32
    .timeindex  (highest timestamp so far, offset of it - base offset)    int64 and int32

Both are kept in memory and written when their segment is done: an entry every few kilobytes would
otherwise cost as many calls as the batches themselves. After a crash they are made anew from the log.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise

LARGEST_RELATIVE = 2**31 - 1
"""The highest offset or position that fits, counted from the segment's base."""

_OFFSET_ENTRY_BYTES = 8
_TIME_ENTRY = struct.Struct(">qi")
_BIG_ENDIAN = sys.byteorder == "big"


class OffsetIndex:
    """Where some of the batches begin, so that the others are found with a short walk."""

    __slots__ = ("_base", "_offsets", "_positions")

    def __init__(self, base_offset: int) -> None:
        self._base = base_offset
        self._offsets = array("I")
        self._positions = array("I")

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, last_offset: int, position: int) -> None:
        """The batch that ends with this offset begins at this position."""
        self._offsets.append(last_offset - self._base)
        self._positions.append(position)

    def before(self, offset: int) -> int:
        """The position of the last known batch that ends before the offset, or 0."""
        found = bisect_left(self._offsets, max(0, offset - self._base))
        return self._positions[found - 1] if found else 0

    def within(self, position: int, offset: int) -> int:
        """The same, if it also begins at or before the position."""
        found = bisect_left(self._offsets, max(0, offset - self._base))
        found = min(found, bisect_right(self._positions, position))
        return self._positions[found - 1] if found else 0

    def truncate(self, position: int) -> None:
        """Forget the batches that begin there or later."""
        kept = bisect_left(self._positions, position)
        del self._offsets[kept:], self._positions[kept:]

    def encode(self) -> bytes:
        """As the file has it."""
        entries = array("I", bytes(_OFFSET_ENTRY_BYTES * len(self._offsets)))
        entries[0::2] = self._offsets
        entries[1::2] = self._positions
        return _swapped(entries).tobytes()

    def decode(self, data: bytes, log_bytes: int) -> bool:
        """Take the entries of a file, and tell whether they can be true of a log of that size.

        Kafka fills the file of a segment in use with zeros; they and what follows them do not count.
        """
        entries = array("I")
        entries.frombytes(data[: len(data) - len(data) % _OFFSET_ENTRY_BYTES])
        entries = _swapped(entries)
        offsets, positions = entries[0::2], entries[1::2]
        used = len(offsets)
        while used and not offsets[used - 1] and not positions[used - 1]:
            used -= 1
        self._offsets, self._positions = offsets[:used], positions[:used]
        return (
            len(data) % _OFFSET_ENTRY_BYTES == 0
            and (not used or positions[used - 1] < log_bytes)
            and all(offsets[i] < offsets[i + 1] for i in range(used - 1))
            and all(positions[i] < positions[i + 1] for i in range(used - 1))
        )


class TimeIndex:
    """At which offsets the highest timestamp so far was passed."""

    __slots__ = ("_base", "_offsets", "_timestamps")

    def __init__(self, base_offset: int) -> None:
        self._base = base_offset
        self._timestamps = array("q")
        self._offsets = array("I")

    def __len__(self) -> int:
        return len(self._timestamps)

    @property
    def last(self) -> tuple[int, int]:
        """The highest timestamp and its offset; a timestamp of -1 if there is none."""
        if not self._timestamps:
            return -1, self._base
        return self._timestamps[-1], self._base + self._offsets[-1]

    def add(self, timestamp: int, offset: int) -> None:
        """Up to this offset no timestamp is higher. Ignored unless it is higher than those before."""
        if timestamp > self.last[0]:
            self._timestamps.append(timestamp)
            self._offsets.append(offset - self._base)

    def before(self, timestamp: int) -> int:
        """An offset that no record of this timestamp or a higher one comes before."""
        found = bisect_left(self._timestamps, timestamp)
        return self._base + self._offsets[found - 1] if found else self._base

    def truncate(self, offset: int) -> None:
        """Forget what was said of this offset and later ones."""
        kept = bisect_left(self._offsets, max(0, offset - self._base))
        del self._offsets[kept:], self._timestamps[kept:]

    def encode(self) -> bytes:
        """As the file has it."""
        return b"".join(map(_TIME_ENTRY.pack, self._timestamps, self._offsets))

    def decode(self, data: bytes) -> bool:
        """Take the entries of a file, and tell whether they can be true. Zeros at the end do not count."""
        whole = len(data) - len(data) % _TIME_ENTRY.size
        entries = [*_TIME_ENTRY.iter_unpack(data[:whole])]
        while entries and entries[-1] == (0, 0):
            entries.pop()
        sound = whole == len(data) and all(
            earlier[0] < later[0] and 0 <= earlier[1] <= later[1] for earlier, later in pairwise(entries)
        )
        sound = sound and (not entries or entries[0][1] >= 0)
        self._timestamps = array("q", [timestamp for timestamp, _ in entries] if sound else [])
        self._offsets = array("I", [offset for _, offset in entries] if sound else [])
        return sound


def _swapped(entries: array[int]) -> array[int]:
    if not _BIG_ENDIAN:
        entries.byteswap()
    return entries
