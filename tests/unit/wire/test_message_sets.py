"""Message sets of the formats before Kafka 0.11, made by kafka-python, become batches."""

from __future__ import annotations

import struct

import cramjam
import pytest

from restow.wire.batches import MAGIC, NO_TIMESTAMP, CorruptBatch, check
from restow.wire.compression import LZ4, NAMES, compress
from restow.wire.message_sets import magic_of, up_converted, with_header_checksum
from restow.wire.records import Record, build, parse
from tests.old_messages import message_set

MESSAGES = ((b"k", b"v" * 100), (None, b"w"), (b"tombstone", None), (b"", b""))
BASE_MS = 5_000


@pytest.mark.parametrize("compression", [0, 1, 2, 3], ids=NAMES[:4])
@pytest.mark.parametrize("magic", [0, 1])
def test_message_set_becomes_a_batch(magic: int, compression: int) -> None:
    given = message_set(MESSAGES, magic, compression, base_ms=BASE_MS)
    batch = up_converted(given)
    assert magic_of(given) == magic
    ((_, header),) = check(batch)
    assert (header.magic, header.compression) == (MAGIC, compression)
    assert parse(batch) == tuple(
        Record(offset, BASE_MS + offset if magic else NO_TIMESTAMP, key, value)
        for offset, (key, value) in enumerate(MESSAGES)
    )


def test_checksum_of_lz4_headers_is_that_of_its_library() -> None:
    for frame in (compress(b"x" * 100, LZ4), bytes(cramjam.lz4.compress(b"y" * 9_000))):
        assert with_header_checksum(frame) == frame


def test_incomplete_last_message_is_skipped() -> None:
    given = message_set(MESSAGES, 1, 0)
    assert len(parse(up_converted(given[:-1]))) == len(MESSAGES) - 1


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (message_set(MESSAGES, 1, 0)[:20], "no complete message"),
        (b"\0" * 8 + struct.pack(">i", -1) + b"\0" * 20, "a message of -1 bytes"),
        (b"\0" * 8 + struct.pack(">i", 2) + b"\0" * 20, "cannot be read"),
        (message_set(MESSAGES, 1, 0)[:-1] + b"!", "CRC"),
        (build([Record(0, 0, None, b"")]), "magic 2"),
        (message_set(MESSAGES, 1, 0) + build([Record(0, 0, None, b"")]), "magic 2"),
    ],
)
def test_damaged_message_set_is_refused(given: bytes, complaint: str) -> None:
    with pytest.raises(CorruptBatch, match=complaint):
        up_converted(given)


def test_every_bit_of_a_message_counts() -> None:
    """The CRC covers all of a message but its offset and size."""
    given = message_set(MESSAGES, 1, 1)
    for position in range(12, len(given)):
        damaged = bytearray(given)
        damaged[position] ^= 0x10
        with pytest.raises(CorruptBatch):
            up_converted(bytes(damaged))
