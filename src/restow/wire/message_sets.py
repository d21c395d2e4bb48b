"""Message sets, the formats (magic 0 and 1) of records before Kafka 0.11, which Produce 0 to 2 may carry.

    message   offset int64, size int32, CRC-32 uint32, magic int8, attributes int8,
              [timestamp int64 if magic 1], key (its length int32, its bytes), value (the same)

A compressed message is a wrapper: its value is a message set. Brokers convert them to one batch of today's
format, as Kafka 3.9 does, and store nothing else.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

from restow.wire.batches import COMPRESSION_MASK, MAGIC, NO_TIMESTAMP, TIMESTAMP_TYPE_BIT, CorruptBatch
from restow.wire.compression import LZ4, NONE, CannotDecompress, decompress
from restow.wire.records import MOST_RECORDS, Record, build

if TYPE_CHECKING:
    from collections.abc import Iterator

_START = struct.Struct(">qiIbb")
_OFFSET_AND_SIZE = struct.Struct(">qi")
_LONG = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_CRC_AT = 12
_CRC_BEGINS = 16
_MAGIC_AT = 16
_NULL = -1
_LZ4_MAGIC_BYTES = 4
_LZ4_SHORT_HEADER, _LZ4_LONG_HEADER = 2, 10
_HAS_SIZE = 0x08
_32_BITS = 0xFFFFFFFF
_PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
"""Of xxHash."""


class _Message(NamedTuple):
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def magic_of(records: bytes) -> int:
    """Return the magic of the first message or batch, which both have at the same place."""
    return records[_MAGIC_AT] if len(records) > _MAGIC_AT else MAGIC


def up_converted(message_set: bytes) -> bytes:
    """Return the messages as one batch, in their compression. Raises CorruptBatch."""
    records: list[Record] = []
    compression = NONE
    for message in _messages(message_set):
        if inner := message.attributes & COMPRESSION_MASK:
            compression = inner
        for each in _unwrapped(message):
            records.append(Record(len(records), each.timestamp, each.key, each.value))
            if len(records) > MOST_RECORDS:
                raise CorruptBatch(
                    f"a message set has more than {MOST_RECORDS} messages, which are opened at most"
                )
    if not records:
        raise CorruptBatch("a message set has no complete message")
    return build(records, compression=compression)


def _unwrapped(message: _Message) -> Iterator[_Message]:
    compression = message.attributes & COMPRESSION_MASK
    if compression == NONE:
        yield message
        return
    if compression > LZ4:
        raise CorruptBatch(f"messages of magic {message.magic} have no compression {compression}")
    packed = message.value or b""
    try:
        # Before Kafka 0.10 lz4 frames had a wrong checksum in their header.
        inside = decompress(with_header_checksum(packed) if compression == LZ4 else packed, compression)
    except CannotDecompress as error:
        raise CorruptBatch(f"a message cannot be opened: {error}") from error
    for each in _messages(inside):
        if each.attributes & COMPRESSION_MASK or each.magic != message.magic:
            raise CorruptBatch("a compressed message holds a compressed one, or one of another format")
        yield each


def with_header_checksum(frame: bytes) -> bytes:
    """Return an lz4 frame with the right checksum in its header: the second byte of an xxHash of the rest."""
    if len(frame) <= _LZ4_MAGIC_BYTES:
        return frame
    end = _LZ4_MAGIC_BYTES + (_LZ4_LONG_HEADER if frame[_LZ4_MAGIC_BYTES] & _HAS_SIZE else _LZ4_SHORT_HEADER)
    checksum = _short_xxhash(frame[_LZ4_MAGIC_BYTES:end]) >> 8 & 0xFF
    return frame[:end] + bytes((checksum,)) + frame[end + 1 :]


def _short_xxhash(data: bytes) -> int:
    """Return the 32-bit xxHash of fewer than 16 bytes."""
    value = _PRIMES[4] + len(data)
    whole = len(data) & ~3
    for position in range(0, whole, 4):
        value += int.from_bytes(data[position : position + 4], "little") * _PRIMES[2]
        value = _rotated(value, 17) * _PRIMES[3]
    for byte in data[whole:]:
        value = _rotated(value + byte * _PRIMES[4], 11) * _PRIMES[0]
    value &= _32_BITS
    for shift, prime in ((15, _PRIMES[1]), (13, _PRIMES[2]), (16, 1)):
        value = (value ^ value >> shift) * prime & _32_BITS
    return value


def _rotated(value: int, bits: int) -> int:
    value &= _32_BITS
    return (value << bits | value >> 32 - bits) & _32_BITS


def _messages(data: bytes) -> Iterator[_Message]:
    """Yield the messages. An incomplete last one is skipped, as Kafka does."""
    position = 0
    while position + _OFFSET_AND_SIZE.size <= len(data):
        _, size = _OFFSET_AND_SIZE.unpack_from(data, position)
        end = position + _OFFSET_AND_SIZE.size + size
        if size < 0:
            raise CorruptBatch(f"a message of {size} bytes")
        if end > len(data):
            return
        try:
            yield _message(data[position:end])
        except (struct.error, IndexError) as error:
            raise CorruptBatch(f"a message of {size} bytes cannot be read: {error}") from error
        position = end


def _message(data: bytes) -> _Message:
    _, _, crc, magic, attributes = _START.unpack_from(data)
    if magic not in (0, 1):
        raise CorruptBatch(f"a message set has a message of magic {magic}")
    if zlib.crc32(data[_CRC_BEGINS:]) != crc:
        raise CorruptBatch("a message's CRC does not match its bytes")
    position = _START.size
    timestamp = NO_TIMESTAMP
    if magic == 1:
        (timestamp,) = _LONG.unpack_from(data, position)
        position += _LONG.size
        if attributes & TIMESTAMP_TYPE_BIT:
            raise CorruptBatch("clients may not send times of appending")
    key, position = _field(data, position)
    value, position = _field(data, position)
    if position != len(data):
        raise CorruptBatch(f"{len(data) - position} bytes are left behind a message")
    return _Message(magic, attributes, timestamp, key, value)


def _field(data: bytes, position: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(data, position)
    position += _LENGTH.size
    if length == _NULL:
        return None, position
    end = position + length
    if length < 0 or end > len(data):
        raise IndexError(f"a field of {length} bytes where {len(data) - position} are left")
    return data[position:end], end
