"""The two sparse indexes of a segment, in Kafka's file formats.

    .index      (last offset of a batch - base offset, position of the batch)     2 × int32
    .timeindex  (highest timestamp so far, offset of it - base offset)    int64 and int32

Both are kept in memory and written when the segment is finished: an entry every few kilobytes would otherwise
cost as many calls as the batches themselves. After a crash they are rebuilt from the log.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise

LARGEST_RELATIVE = 2**31 - 1
"""The highest relative offset or position that fits."""

_OFFSET_ENTRY_BYTES = 8
_TIME_ENTRY = struct.Struct(">qi")
_BIG_ENDIAN = sys.byteorder == "big"


class OffsetIndex:
    """Positions of some batches; the others are found with a short scan."""

    __slots__ = ("_base", "_offsets", "_positions")

    def __init__(self, base_offset: int) -> None:
        self._base = base_offset
        self._offsets = array("I")
        self._positions = array("I")

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, last_offset: int, position: int) -> None:
        """Add a batch by its last offset and its position."""
        self._offsets.append(last_offset - self._base)
        self._positions.append(position)

    def before(self, offset: int) -> int:
        """Return the position of the last indexed batch that ends before the offset, or 0."""
        found = bisect_left(self._offsets, max(0, offset - self._base))
        return self._positions[found - 1] if found else 0

    def within(self, position: int, offset: int) -> int:
        """Return the same, if it also starts at or before the position."""
        found = bisect_left(self._offsets, max(0, offset - self._base))
        found = min(found, bisect_right(self._positions, position))
        return self._positions[found - 1] if found else 0

    def truncate(self, position: int) -> None:
        """Remove the batches that start there or later."""
        kept = bisect_left(self._positions, position)
        del self._offsets[kept:], self._positions[kept:]

    def encode(self) -> bytes:
        """Encode as in the file."""
        entries = array("I", bytes(_OFFSET_ENTRY_BYTES * len(self._offsets)))
        entries[0::2] = self._offsets
        entries[1::2] = self._positions
        return _swapped(entries).tobytes()

    def decode(self, data: bytes, log_bytes: int) -> bool:
        """Read a file's entries, and return whether they can be right for a log of that size.

        Kafka fills the file of an active segment with zeros; they and anything after them are ignored.
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
    """Offsets at which the highest timestamp so far was exceeded."""

    __slots__ = ("_base", "_offsets", "_timestamps")

    def __init__(self, base_offset: int) -> None:
        self._base = base_offset
        self._timestamps = array("q")
        self._offsets = array("I")

    def __len__(self) -> int:
        return len(self._timestamps)

    @property
    def last(self) -> tuple[int, int]:
        """Return the highest timestamp and its offset; -1 as timestamp if there is none."""
        if not self._timestamps:
            return -1, self._base
        return self._timestamps[-1], self._base + self._offsets[-1]

    def add(self, timestamp: int, offset: int) -> None:
        """Add the highest timestamp up to this offset. Ignored unless higher than the earlier ones."""
        if timestamp > self.last[0]:
            self._timestamps.append(timestamp)
            self._offsets.append(offset - self._base)

    def before(self, timestamp: int) -> int:
        """Return an offset before which no record has this timestamp or a higher one."""
        found = bisect_left(self._timestamps, timestamp)
        return self._base + self._offsets[found - 1] if found else self._base

    def truncate(self, offset: int) -> None:
        """Remove the entries of this offset and later ones."""
        kept = bisect_left(self._offsets, max(0, offset - self._base))
        del self._offsets[kept:], self._timestamps[kept:]

    def encode(self) -> bytes:
        """Encode as in the file."""
        return b"".join(map(_TIME_ENTRY.pack, self._timestamps, self._offsets))

    def decode(self, data: bytes) -> bool:
        """Read a file's entries, and return whether they can be right. Trailing zeros are ignored."""
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
