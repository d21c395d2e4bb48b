"""Record batches (magic 2) as brokers see them: a header of 61 bytes, and an unopened payload.

    position  0  base offset    int64     outside the CRC
              8  length         int32     of what follows
             12  leader epoch   int32     outside the CRC
             16  magic          int8
             17  CRC-32C        uint32    of everything from position 21
             21  attributes     int16     compression 0–2, timestamp type 3, transactional 4, control 5,
                                          delete horizon 6
             23  last offset delta int32, first timestamp int64, max timestamp int64,
             43  producer id int64, producer epoch int16, base sequence int32, record count int32

The base offset and the leader epoch lie outside the CRC, so the leader sets them without touching the rest.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import google_crc32c

from restow.errors import RestowError
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.wire.primitives import Buffer

MAGIC = 2
HEADER_BYTES = 61
LENGTH_ENDS = 12
"""Number of bytes before those that the length counts."""
CRC_BEGINS = 21
"""Position of the first byte that the CRC covers."""
PREFIX_BYTES = 16
"""The bytes before the magic, which a leader sets."""

NO_PRODUCER = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
CREATE_TIME = 0
LOG_APPEND_TIME = 1

COMPRESSION_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

HEADER = struct.Struct(">qiibIhiqqqhii")
_PREFIX = struct.Struct(">qii")
_LENGTH = struct.Struct(">i")
_OFFSET = struct.Struct(">q")
CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_LENGTH_AT = 8
_EPOCH_AT = 12
CRC_AT = 17
_ATTRIBUTES_AT = 21
_MAX_TIMESTAMP_AT = 35
_SMALLEST_LENGTH = HEADER_BYTES - LENGTH_ENDS


class CorruptBatch(RestowError):
    """Bytes that are not valid record batches."""

    code = ErrorCode.CORRUPT_MESSAGE


class IncompleteBatch(CorruptBatch):
    """Bytes that end within a batch."""

    code = ErrorCode.INVALID_RECORD


class BatchHeader(NamedTuple):
    """A batch's header. A tuple, because one is made for every batch."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    first_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not used here

    @property
    def size(self) -> int:
        """All bytes of the batch, header included."""
        return self.length + LENGTH_ENDS

    @property
    def last_offset(self) -> int:
        """The offset of its last record, even if compaction removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after it."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence number of its last record, which wraps to 0 after 2³¹ - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def compression(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & COMPRESSION_MASK

    @property
    def timestamp_type(self) -> int:
        """CREATE_TIME or LOG_APPEND_TIME."""
        return LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_BIT else CREATE_TIME

    @property
    def is_control(self) -> bool:
        """Whether it marks a transaction's end instead of holding user records."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def delete_horizon(self) -> int | None:
        """When its tombstones may be removed, if compaction has seen them; stored as first timestamp."""
        return self.first_timestamp if self.attributes & DELETE_HORIZON_BIT else None


def header_at(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Return the header at the position, unchecked."""
    # Not _make, which checks the number of fields again: this runs for every batch.
    return tuple.__new__(BatchHeader, HEADER.unpack_from(buffer, position))


def scan(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yield the batches and their positions. An incomplete last one is skipped.

    CRCs are not checked; an impossible length or magic raises CorruptBatch.
    """
    position = 0
    end = len(buffer)
    while position + HEADER_BYTES <= end:
        header = header_at(buffer, position)
        if header.magic != MAGIC or header.length < _SMALLEST_LENGTH:
            raise CorruptBatch(_what_is_wrong(header, position))
        following = position + LENGTH_ENDS + header.length
        if following > end:
            return
        yield position, header
        position = following


def whole_bytes(buffer: Buffer) -> int:
    """Return where an incomplete last batch begins, or the end. Nothing is checked but lengths.

    Kafka's leaders fill a response up to its limit and cut the last batch, but never the first.
    """
    position = 0
    end = len(buffer)
    while position + LENGTH_ENDS <= end:
        (length,) = _LENGTH.unpack_from(buffer, position + _LENGTH_AT)
        following = position + LENGTH_ENDS + length
        if length < _SMALLEST_LENGTH or following > end:
            return end if length < _SMALLEST_LENGTH else position or end
        position = following
    return position or end


def check(buffer: Buffer) -> list[tuple[int, BatchHeader]]:
    """Return the batches and their positions, if every byte belongs to a complete batch with a valid CRC."""
    found = []
    position = 0
    end = len(buffer)
    while position < end:
        if position + HEADER_BYTES > end:
            raise IncompleteBatch(
                f"a batch is cut off at position {position}: {end - position} bytes are left"
            )
        header = header_at(buffer, position)
        length = header.length
        if header.magic != MAGIC or length < _SMALLEST_LENGTH:
            raise CorruptBatch(_what_is_wrong(header, position))
        following = position + LENGTH_ENDS + length
        if following > end:
            raise IncompleteBatch(
                f"the batch at position {position} is cut off: "
                f"it has {end - position} of its {LENGTH_ENDS + length} bytes"
            )
        if crc_of(buffer, position, following) != header.crc:
            raise CorruptBatch(f"the batch at position {position} has not the CRC its header says")
        if header.last_offset_delta < 0 or header.count < 0:
            raise CorruptBatch(f"the batch at position {position} counts its records or offsets below zero")
        found.append((position, header))
        position = following
    return found


def crc_of(buffer: Buffer, position: int, end: int) -> int:
    """Return the CRC-32C of the batch from `position` to `end`."""
    value: int = google_crc32c.value(bytes(buffer[position + CRC_BEGINS : end]))
    return value


def prefix(base_offset: int, length: int, leader_epoch: int) -> bytes:
    """Return the first 16 bytes of a batch, to be written before the others without copying them."""
    return _PREFIX.pack(base_offset, length, leader_epoch)


def stamp(buffer: bytearray, position: int, base_offset: int, leader_epoch: int) -> None:
    """Set the base offset and the leader epoch in place."""
    _OFFSET.pack_into(buffer, position, base_offset)
    _LENGTH.pack_into(buffer, position + _EPOCH_AT, leader_epoch)


def stamp_append_time(buffer: bytearray, position: int, timestamp_ms: int) -> None:
    """Set the log append time of the batch, and update its CRC."""
    (length,) = _LENGTH.unpack_from(buffer, position + _LENGTH_AT)
    (attributes,) = _ATTRIBUTES.unpack_from(buffer, position + _ATTRIBUTES_AT)
    _ATTRIBUTES.pack_into(buffer, position + _ATTRIBUTES_AT, attributes | TIMESTAMP_TYPE_BIT)
    _OFFSET.pack_into(buffer, position + _MAX_TIMESTAMP_AT, timestamp_ms)
    CRC.pack_into(buffer, position + CRC_AT, crc_of(buffer, position, position + LENGTH_ENDS + length))


def _what_is_wrong(header: BatchHeader, position: int) -> str:
    if header.magic != MAGIC:
        return f"the batch at position {position} has magic {header.magic}; only {MAGIC} is known"
    return f"the batch at position {position} has an impossible length of {header.length}"
