"""A leader's checks of batches before it appends them, and what it changes in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from restow.cluster.log.config import FOREVER
from restow.cluster.log.errors import BatchTooLarge, InvalidRecord, InvalidTimestamp
from restow.wire.batches import (
    CONTROL_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    CorruptBatch,
    check,
    header_at,
    scan,
    stamp_append_time,
)
from restow.wire.records import MOST_RECORDS, SMALLEST_RECORD_BYTES, each_record, in_compression

if TYPE_CHECKING:
    from restow.cluster.log.config import LogConfig
    from restow.runtime.disk import Part
    from restow.wire.batches import BatchHeader

    Headers: TypeAlias = list[tuple[int, BatchHeader]]

_NOT_FROM_CLIENTS = CONTROL_BIT | TIMESTAMP_TYPE_BIT
_HIGHEST_COMPRESSION = 4


def checked(batches: bytes, config: LogConfig, now_ms: int, *, from_client: bool = True) -> Headers:
    """Return the batches and their positions, if a client may send them all.

    Those of a coordinator may also be control batches, and have no sequence.
    """
    found = check(batches)
    if not found:
        raise InvalidRecord("there is no batch to append")
    if len(found) > 1 and from_client:
        raise InvalidRecord(f"a producer sends one batch for a partition at a time, not {len(found)}")
    for position, header in found:
        _check_batch(header, config, now_ms, from_client=from_client)
        if config.cleanup_compact and from_client:
            _check_keys(batches, position, header)
    return found


def recompressed(batches: bytes, found: Headers, config: LogConfig) -> tuple[bytes, Headers]:
    """Return the batches in the topic's compression, and their headers. End markers stay as they are.

    Raises BatchTooLarge if a batch grows too large for the topic, and InvalidRecord.
    """
    compression = config.compression
    if compression is None or all(compression == header.compression for _, header in found):
        return batches, found
    parts = []
    for position, header in found:
        batch = batches[position : position + header.size]
        if not header.is_control and header.compression != compression:
            batch = _compressed(batch, compression)
            _check_size(len(batch), config)
        parts.append(batch)
    stored = b"".join(parts)
    return stored, list(scan(stored))


def _compressed(batch: bytes, compression: int) -> bytes:
    try:
        return in_compression(batch, compression)
    except CorruptBatch as error:
        raise InvalidRecord(str(error)) from error


def with_append_time(batches: Part, found: Headers, now_ms: int) -> tuple[bytearray, Headers]:
    """Return the batches with the broker's time as that of all their records, and their headers."""
    stamped = bytearray(batches)
    for position, _ in found:
        stamp_append_time(stamped, position, now_ms)
    return stamped, [(position, header_at(stamped, position)) for position, _ in found]


def _check_size(size: int, config: LogConfig) -> None:
    if size > config.max_message_bytes:
        raise BatchTooLarge(
            f"a batch of {size} bytes is above max.message.bytes, which is {config.max_message_bytes}"
        )


def _check_keys(batches: bytes, position: int, header: BatchHeader) -> None:
    """Refuse records without a key, which compaction could not tell from each other."""
    batch = memoryview(batches)[position : position + header.size]
    try:
        without = [number for number, record in enumerate(each_record(batch)) if record.key is None]
    except CorruptBatch as error:
        raise InvalidRecord(str(error)) from error
    if without:
        raise InvalidRecord(
            f"{len(without)} of {header.count} records have no key, which a compacted topic needs",
            refused=tuple((number, "a compacted topic needs a key") for number in without),
        )


def _check_batch(header: BatchHeader, config: LogConfig, now_ms: int, *, from_client: bool) -> None:
    _check_size(header.size, config)
    if header.count < 1 or header.count != header.last_offset_delta + 1:
        raise InvalidRecord(
            f"a batch says it has {header.count} records and {header.last_offset_delta + 1} offsets"
        )
    _check_count(header)
    if header.attributes & _NOT_FROM_CLIENTS and from_client:
        raise InvalidRecord("clients may send neither control batches nor times of appending")
    if header.compression > _HIGHEST_COMPRESSION:
        raise InvalidRecord(f"there is no compression {header.compression}")
    if header.producer_id >= 0:
        if from_client and (header.producer_epoch < 0 or header.base_sequence < 0):
            raise InvalidRecord(f"producer {header.producer_id} sent a batch without epoch or sequence")
    elif header.attributes & TRANSACTIONAL_BIT:
        raise InvalidRecord("a transactional batch needs a producer id")
    if config.timestamp_type != LOG_APPEND_TIME:
        _check_time(header, config, now_ms)


def _check_count(header: BatchHeader) -> None:
    """Refuse more records than the bytes can hold, without opening compressed batches."""
    room = header.size - HEADER_BYTES
    if not header.compression:
        if header.count * SMALLEST_RECORD_BYTES > room:
            raise InvalidRecord(f"a batch says it has {header.count} records, in {room} bytes")
    elif header.count > MOST_RECORDS:
        raise InvalidRecord(
            f"a compressed batch says it has {header.count} records; {MOST_RECORDS} are allowed at most"
        )


def _check_time(header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    """Check timestamps by the header, so that compressed batches need not be opened."""
    before, after = config.timestamp_before_max_ms, config.timestamp_after_max_ms
    if before == FOREVER and after == FOREVER:
        return
    earliest, latest = header.first_timestamp, header.max_timestamp
    if earliest != NO_TIMESTAMP and now_ms - earliest > before:
        raise InvalidTimestamp(f"a record's time {earliest} is more than {before} ms before {now_ms}")
    if latest != NO_TIMESTAMP and latest - now_ms > after:
        raise InvalidTimestamp(f"a record's time {latest} is more than {after} ms after {now_ms}")
