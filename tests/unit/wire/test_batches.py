"""Batch headers are read, checked and stamped; incomplete batches are detected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from restow.wire.batches import (
    CRC_BEGINS,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL_BIT,
    CorruptBatch,
    check,
    header_at,
    prefix,
    scan,
    stamp,
    stamp_append_time,
)
from restow.wire.records import Record, build, parse


def theirs(values: list[bytes], *, transactional: bool = False) -> bytes:
    """Return a batch made by kafka-python's producer."""
    builder = DefaultRecordBatchBuilder(2, 0, transactional, 77, 3, 41, 1 << 20)
    for offset, value in enumerate(values):
        builder.append(offset, 1000 + offset, b"key", value, [])
    return bytes(builder.build())


BATCH = build([Record(i, 1000 - i, b"k", b"v" * i) for i in range(4)])


def test_header_reads_batch_of_kafka_python() -> None:
    batch = theirs([b"a", b"bb", b"ccc"], transactional=True)
    header = header_at(batch)
    assert header.size == len(batch)
    assert (header.base_offset, header.last_offset, header.next_offset, header.count) == (0, 2, 3, 3)
    assert (header.first_timestamp, header.max_timestamp) == (1000, 1002)
    assert (header.producer_id, header.producer_epoch) == (77, 3)
    assert (header.base_sequence, header.last_sequence) == (41, 43)
    assert header.attributes & TRANSACTIONAL_BIT
    assert not header.is_control
    assert header.compression == 0
    assert header.delete_horizon is None
    assert check(batch) == [(0, header)]


def test_last_sequence_wraps_after_the_highest() -> None:
    batch = build([Record(i, 0, None, b"") for i in range(5)], producer_id=1, base_sequence=2**31 - 2)
    assert header_at(batch).last_sequence == 2
    assert header_at(BATCH).last_sequence == -1


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_scan_reads_several_batches_in_any_buffer(kind: type) -> None:
    second = build([Record(4, 7, None, b"x")])
    buffer = kind(BATCH + second)
    expected = [(0, header_at(BATCH)), (len(BATCH), header_at(second))]
    assert list(scan(buffer)) == expected
    assert check(buffer) == expected


def test_empty_buffer_has_no_batches() -> None:
    assert check(b"") == []
    assert list(scan(b"")) == []


@pytest.mark.parametrize("size", range(1, len(BATCH)))
def test_check_detects_truncation_anywhere(size: int) -> None:
    with pytest.raises(CorruptBatch, match="cut off"):
        check(BATCH + BATCH[:size])
    assert [position for position, _ in scan(BATCH + BATCH[:size])] == [0]


@pytest.mark.parametrize("position", range(8, len(BATCH)))
def test_check_detects_a_changed_byte(position: int) -> None:
    damaged = bytearray(BATCH)
    damaged[position] ^= 0x41
    if position in range(12, 16):
        assert check(damaged)[0][1].leader_epoch != -1
    else:
        with pytest.raises(CorruptBatch):
            check(damaged)


@given(st.binary(max_size=200))
def test_check_raises_only_corrupt_batch_for_random_bytes(data: bytes) -> None:
    if data:
        with pytest.raises(CorruptBatch):
            check(data)


def test_check_refuses_negative_counts_with_valid_crc() -> None:
    import struct

    damaged = bytearray(BATCH)
    struct.pack_into(">i", damaged, 23, -5)
    stamp_append_time(damaged, 0, 5)
    with pytest.raises(CorruptBatch, match="below zero"):
        check(damaged)


def test_stamp_does_not_change_the_crc() -> None:
    buffer = bytearray(BATCH + BATCH)
    stamp(buffer, len(BATCH), 2**40, 9)
    (_, first), (_, second) = check(buffer)
    assert first == header_at(BATCH)
    assert (second.base_offset, second.leader_epoch) == (2**40, 9)
    assert buffer[len(BATCH) :] == prefix(2**40, second.length, 9) + BATCH[16:]


def test_stamp_append_time_applies_to_every_record() -> None:
    buffer = bytearray(BATCH)
    stamp_append_time(buffer, 0, 123_456)
    ((_, header),) = check(buffer)
    assert header.timestamp_type == LOG_APPEND_TIME
    assert header.max_timestamp == 123_456
    assert [record.timestamp for record in parse(buffer)] == [123_456] * 4
    other = DefaultRecordBatch(bytes(buffer))
    assert other.validate_crc()
    assert {record.timestamp for record in other} == {123_456}


def test_header_has_the_layout_of_kafka() -> None:
    assert (HEADER_BYTES, CRC_BEGINS) == (61, 21)
