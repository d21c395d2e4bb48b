"""A leader's checks of batches before it appends them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.log.config import FOREVER
from restow.cluster.log.errors import BatchTooLarge, InvalidRecord, InvalidTimestamp
from restow.wire.batches import (
    CONTROL_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    check,
)
from restow.wire.records import MOST_RECORDS, SMALLEST_RECORD_BYTES

if TYPE_CHECKING:
    from restow.cluster.log.config import LogConfig
    from restow.wire.batches import BatchHeader

_NOT_FROM_CLIENTS = CONTROL_BIT | TIMESTAMP_TYPE_BIT
_HIGHEST_COMPRESSION = 4


def checked(
    batches: bytes, config: LogConfig, now_ms: int, *, from_client: bool = True
) -> list[tuple[int, BatchHeader]]:
    """Return the batches and their positions, if a client may send them all.

    Those of a coordinator may also be control batches, and have no sequence.
    """
    found = check(batches)
    if not found:
        raise InvalidRecord("there is no batch to append")
    for _, header in found:
        _check_batch(header, config, now_ms, from_client=from_client)
        if header.producer_id >= 0 and len(found) > 1:
            raise InvalidRecord("an idempotent producer appends one batch at a time")
    return found


def _check_batch(header: BatchHeader, config: LogConfig, now_ms: int, *, from_client: bool) -> None:
    if header.size > config.max_message_bytes:
        raise BatchTooLarge(
            f"a batch of {header.size} bytes is above max.message.bytes, which is {config.max_message_bytes}"
        )
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
