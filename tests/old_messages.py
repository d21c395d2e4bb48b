"""Message sets of the formats before Kafka 0.11, made by kafka-python."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from kafka.record.legacy_records import LegacyRecordBatchBuilder

from restow.wire.compression import LZ4, NONE, compress

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEADER_CHECKSUM_AT = 6


def message_set(
    messages: Iterable[tuple[bytes | None, bytes | None]],
    magic: int,
    compression: int,
    *,
    base_ms: int = 5_000,
) -> bytes:
    """Return the messages, whose times are a millisecond apart, if their format has times.

    Before Kafka 0.10 lz4 frames had a wrong checksum. kafka-python needs another package for that.
    """
    wrapped = (magic, compression) == (0, LZ4)
    builder = LegacyRecordBatchBuilder(
        magic=magic, compression_type=NONE if wrapped else compression, batch_size=1 << 20
    )
    count = 0
    for key, value in messages:
        builder.append(count, base_ms + count if magic else None, key, value)
        count += 1
    made = bytes(builder.build())
    if not wrapped:
        return made
    frame = bytearray(compress(made, LZ4))
    frame[_HEADER_CHECKSUM_AT] ^= 0xFF
    body = struct.pack(">bbii", 0, LZ4, -1, len(frame)) + frame
    return struct.pack(">qiI", count - 1, len(body) + 4, zlib.crc32(body)) + body
