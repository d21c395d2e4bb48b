"""The records inside a batch, for the few places where a broker reads or writes them.

These are committed offsets, compaction, and the search for a timestamp. Elsewhere, producers' batches pass
through unopened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from restow.wire.batches import (
    COMPRESSION_MASK,
    CRC,
    CRC_AT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LENGTH_ENDS,
    LOG_APPEND_TIME,
    MAGIC,
    NO_PRODUCER,
    NO_SEQUENCE,
    CorruptBatch,
    crc_of,
    header_at,
)
from restow.wire.compression import NONE, CannotDecompress, compress, decompress
from restow.wire.primitives import varint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from restow.wire.batches import BatchHeader
    from restow.wire.primitives import Buffer

MOST_RECORDS = 1_000_000
"""A megabyte of zstd can hold ten times as many empty records, which would take gigabytes as objects."""
SMALLEST_RECORD_BYTES = 7

_NULL = -1
_NO_EPOCH = -1
_LONGEST_VARINT_BITS = 63
_ONE_BYTE = tuple((byte >> 1) ^ -(byte & 1) if byte < 0x80 else None for byte in range(0x100))
"""The number that a varint's first byte means, or None if more bytes follow."""
_AS_ONE_BYTE = {number: bytes((byte,)) for byte, number in enumerate(_ONE_BYTE) if number is not None}
_new = tuple.__new__


class Record(NamedTuple):
    """One record. A key or value of None is absent; a record without a value is a tombstone."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def build(
    records: Sequence[Record],
    *,
    leader_epoch: int = _NO_EPOCH,
    compression: int = NONE,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = _NO_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    attributes: int = 0,
) -> bytes:
    """Build a batch of at least one record, starting at the first one's offset.

    `attributes` are bits other than the compression, such as TRANSACTIONAL_BIT.
    """
    if not records:
        raise ValueError("a batch must have at least one record")
    first, last = records[0], records[-1]
    return _assemble(
        records,
        base_offset=first.offset,
        last_offset_delta=last.offset - first.offset,
        leader_epoch=leader_epoch,
        attributes=attributes | compression,
        base_timestamp=first.timestamp,
        max_timestamp=max(record.timestamp for record in records),
        producer=(producer_id, producer_epoch, base_sequence),
    )


def rebuild(
    header: BatchHeader,
    records: Sequence[Record],
    *,
    delete_horizon: int | None = None,
    encoded: bytes | None = None,
) -> bytes:
    """Rebuild a batch with only these records, or none; everything else stays.

    First and last offset, producer and sequence stay. A `delete_horizon` sets when its tombstones may be
    removed. `encoded` are the records from `encode_for`, if already encoded.
    """
    attributes = header.attributes if records else header.attributes & ~COMPRESSION_MASK
    base_timestamp = header.first_timestamp
    if delete_horizon is not None:
        attributes |= DELETE_HORIZON_BIT
        base_timestamp = delete_horizon
    if header.timestamp_type == LOG_APPEND_TIME or not records:
        max_timestamp = header.max_timestamp
    else:
        max_timestamp = max(record.timestamp for record in records)
    return _assemble(
        records,
        base_offset=header.base_offset,
        last_offset_delta=header.last_offset_delta,
        leader_epoch=header.leader_epoch,
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer=(header.producer_id, header.producer_epoch, header.base_sequence),
        encoded=encoded,
    )


def in_compression(batch: Buffer, compression: int) -> bytes:
    """Return the batch in another compression. Its records are not read. Raises CorruptBatch."""
    header = header_at(batch)
    payload = compress(_payload(batch, header), compression)
    attributes = header.attributes & ~COMPRESSION_MASK | compression
    return _finished(
        header._replace(length=HEADER_BYTES - LENGTH_ENDS + len(payload), attributes=attributes, crc=0),
        payload,
    )


def encode_for(header: BatchHeader, records: Sequence[Record], delete_horizon: int | None) -> bytes:
    """Encode some records of a batch that will be rebuilt with that horizon."""
    base_timestamp = header.first_timestamp if delete_horizon is None else delete_horizon
    return b"".join(_encode_record(record, header.base_offset, base_timestamp) for record in records)


def parse(batch: Buffer) -> tuple[Record, ...]:
    """Return the records of one batch. Raises CorruptBatch or UnsupportedCompression."""
    return tuple(each_record(batch))


def each_record(batch: Buffer) -> Iterator[Record]:
    """Yield the records one by one, for callers that may not need all. Raises when it gets to an error."""
    header = header_at(batch)
    payload = _payload(batch, header)
    append_time = header.max_timestamp if header.timestamp_type == LOG_APPEND_TIME else None
    base_offset, base_timestamp = header.base_offset, header.first_timestamp
    position = 0
    for number in range(header.count):
        try:
            delta, offset_delta, key, value, headers, position = _parse_record(payload, position)
        except (IndexError, UnicodeDecodeError) as error:
            raise CorruptBatch(f"record {number} of a batch cannot be read: {error}") from error
        timestamp = base_timestamp + delta if append_time is None else append_time
        yield _new(Record, (base_offset + offset_delta, timestamp, key, value, headers))
    if position != len(payload):
        raise CorruptBatch(f"{len(payload) - position} bytes are left behind the last record of a batch")


def each_time(batch: Buffer) -> Iterator[tuple[int, int]]:
    """Yield offset and timestamp of each record without reading the rest."""
    header = header_at(batch)
    payload = _payload(batch, header)
    base_offset, base_timestamp = header.base_offset, header.first_timestamp
    append_time = header.max_timestamp if header.timestamp_type == LOG_APPEND_TIME else None
    position = 0
    for number in range(header.count):
        try:
            length, position = _read_varint(payload, position)
            delta, after = _read_varint(payload, position + 1)
            offset_delta, after = _read_varint(payload, after)
        except IndexError as error:
            raise CorruptBatch(f"record {number} of a batch cannot be read: {error}") from error
        position += length
        if after > position:
            raise CorruptBatch(f"record {number} of a batch is shorter than its own beginning")
        yield base_offset + offset_delta, base_timestamp + delta if append_time is None else append_time


def _payload(batch: Buffer, header: BatchHeader) -> bytes:
    """Return the uncompressed records, if they can hold as many as the header says."""
    if header.count > MOST_RECORDS:
        raise CorruptBatch(f"a batch says it has {header.count} records; {MOST_RECORDS} are opened at most")
    try:
        payload = decompress(bytes(batch[HEADER_BYTES : LENGTH_ENDS + header.length]), header.compression)
    except CannotDecompress as error:
        raise CorruptBatch(f"a batch cannot be opened: {error}") from error
    if header.count * SMALLEST_RECORD_BYTES > len(payload):
        raise CorruptBatch(f"a batch says it has {header.count} records, in {len(payload)} bytes")
    return payload


def _assemble(
    records: Sequence[Record],
    *,
    base_offset: int,
    last_offset_delta: int,
    leader_epoch: int,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    producer: tuple[int, int, int],
    encoded: bytes | None = None,
) -> bytes:
    if encoded is None:
        encoded = b"".join(_encode_record(record, base_offset, base_timestamp) for record in records)
    payload = compress(encoded, attributes & COMPRESSION_MASK)
    fields = (
        base_offset,
        HEADER_BYTES - LENGTH_ENDS + len(payload),
        leader_epoch,
        MAGIC,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        *producer,
        len(records),
    )
    return _finished(fields, payload)


def _finished(header: tuple[int, ...], payload: bytes) -> bytes:
    """Return the batch with its CRC."""
    batch = bytearray(HEADER.pack(*header))
    batch += payload
    CRC.pack_into(batch, CRC_AT, crc_of(batch, 0, len(batch)))
    return bytes(batch)


def _encode_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    offset, timestamp, key, value, headers = record
    body = b"\0%b%b%b%b%b" % (
        _varint(timestamp - base_timestamp),
        _varint(offset - base_offset),
        _nullable(key),
        _nullable(value),
        _varint(len(headers)),
    )
    for name, content in headers:
        body += _nullable(name.encode()) + _nullable(content)
    return _varint(len(body)) + body


def _parse_record(
    data: bytes, position: int
) -> tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]:
    """Return the deltas of timestamp and offset, key, value and headers, and the end position.

    Most numbers have one byte. Those are read here, because a call per number takes most of the time.
    """
    if (length := _ONE_BYTE[data[position]]) is None:
        length, position = _read_varint(data, position)
    else:
        position += 1
    end = position + length
    if length < 1 or end > len(data):
        raise IndexError(f"a length of {length} where {len(data) - position} bytes are left")
    position += 1
    if (delta := _ONE_BYTE[data[position]]) is None:
        delta, position = _read_varint(data, position)
    else:
        position += 1
    if (offset_delta := _ONE_BYTE[data[position]]) is None:
        offset_delta, position = _read_varint(data, position)
    else:
        position += 1
    key, position = _read_nullable(data, position)
    value, position = _read_nullable(data, position)
    if (count := _ONE_BYTE[data[position]]) is None:
        count, position = _read_varint(data, position)
    else:
        position += 1
    headers: tuple[tuple[str, bytes | None], ...] = ()
    if count:
        headers, position = _read_headers(data, position, count)
    if position != end or count < 0:
        raise IndexError(f"its length says it ends at {end}, but it does at {position}")
    return delta, offset_delta, key, value, headers, end


def _read_headers(data: bytes, position: int, count: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    headers = []
    for _ in range(count):
        name, position = _read_nullable(data, position)
        content, position = _read_nullable(data, position)
        if name is None:
            raise IndexError("a header without a name")
        headers.append((name.decode(), content))
    return tuple(headers), position


def _nullable(data: bytes | None) -> bytes:
    return _varint(_NULL) if data is None else _varint(len(data)) + data


def _read_nullable(data: bytes, position: int) -> tuple[bytes | None, int]:
    if (length := _ONE_BYTE[data[position]]) is None:
        length, position = _read_varint(data, position)
    else:
        position += 1
    if length == _NULL:
        return None, position
    end = position + length
    if length < 0 or end > len(data):
        raise IndexError(f"a field of {length} bytes where {len(data) - position} are left")
    return data[position:end], end


def _varint(number: int) -> bytes:
    """Encode zigzag, then seven bits per byte, the lowest first."""
    if -64 <= number < 64:
        return _AS_ONE_BYTE[number]
    return varint(number << 1 if number >= 0 else (~number << 1) | 1)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    byte = data[position]
    position += 1
    rest = byte & 0x7F
    shift = 7
    while byte & 0x80:
        if shift > _LONGEST_VARINT_BITS:
            raise IndexError("a number of more than 64 bits")
        byte = data[position]
        position += 1
        rest |= (byte & 0x7F) << shift
        shift += 7
    return (rest >> 1) ^ -(rest & 1), position
