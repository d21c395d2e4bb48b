"""Records round trip, also between us and kafka-python."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from restow.wire.batches import CorruptBatch, check, header_at, stamp_append_time
from restow.wire.compression import GZIP, NAMES, UnsupportedCompression
from restow.wire.records import Record, build, parse, rebuild

data = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=5), data), max_size=3).map(tuple)
times = st.integers(0, 2**41)


@st.composite
def batches(draw: st.DrawFn) -> list[Record]:
    offsets = sorted(draw(st.sets(st.integers(0, 2**31 - 1), min_size=1, max_size=6)))
    base = draw(st.integers(0, 2**40))
    return [Record(base + o, draw(times), draw(data), draw(data), draw(headers)) for o in offsets]


@given(batches(), st.sampled_from(range(len(NAMES))))
def test_parse_reads_built_batches(records: list[Record], compression: int) -> None:
    batch = build(records, compression=compression, leader_epoch=4)
    ((_, header),) = check(batch)
    assert (header.leader_epoch, header.compression, header.count) == (4, compression, len(records))
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert parse(batch) == tuple(records)


@given(batches(), st.sampled_from(range(len(NAMES))))
def test_kafka_python_reads_our_batches(records: list[Record], compression: int) -> None:
    batch = DefaultRecordBatch(build(records, compression=compression))
    assert batch.validate_crc()
    found = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    assert found == records


@given(st.lists(st.tuples(data, data, headers), min_size=1, max_size=5), st.sampled_from(range(len(NAMES))))
def test_parse_reads_batches_of_kafka_python(content: list[tuple], compression: int) -> None:
    builder = DefaultRecordBatchBuilder(2, compression, False, -1, -1, -1, 1 << 20)
    for offset, (key, value, extra) in enumerate(content):
        builder.append(offset, 1000 + offset, key, value, list(extra))
    expected = tuple(Record(i, 1000 + i, *fields) for i, fields in enumerate(content))
    assert parse(bytes(builder.build())) == expected


@given(batches(), st.data())
def test_damaged_records_raise_corrupt_batch(records: list[Record], draws: st.DataObject) -> None:
    batch = bytearray(build(records))
    at = draws.draw(st.integers(61, len(batch) - 1))
    batch[at] = draws.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptBatch):
        parse(batch)


@given(st.binary(max_size=40), st.integers(0, 5), st.sampled_from(range(len(NAMES))))
def test_random_payloads_parse_or_raise_corrupt_batch(payload: bytes, count: int, compression: int) -> None:
    head = build([Record(0, 0, None, None)], compression=compression)[:61]
    batch = bytearray(head + payload)
    batch[8:12] = (49 + len(payload)).to_bytes(4)
    batch[57:61] = count.to_bytes(4)
    with contextlib.suppress(CorruptBatch):
        assert len(parse(batch)) == count


def test_build_refuses_a_batch_without_records() -> None:
    with pytest.raises(ValueError, match="at least one"):
        build([])


def test_rebuild_keeps_fewer_records_in_the_batch() -> None:
    records = [Record(10 + i, 1000 + i, b"k%d" % i, b"v") for i in range(5)]
    header = header_at(build(records, producer_id=8, producer_epoch=1, base_sequence=6, compression=GZIP))
    smaller = rebuild(header, records[1:3])
    ((_, kept),) = check(smaller)
    assert parse(smaller) == tuple(records[1:3])
    assert (kept.base_offset, kept.last_offset, kept.count) == (10, 14, 2)
    assert (kept.producer_id, kept.base_sequence, kept.last_sequence) == (8, 6, 10)
    assert kept.max_timestamp == 1002


def test_rebuild_keeps_an_empty_batch() -> None:
    header = header_at(build([Record(3, 50, b"k", b"v")], compression=GZIP))
    empty = rebuild(header, [])
    assert parse(empty) == ()
    assert check(empty)[0][1].next_offset == 4


def test_delete_horizon_does_not_change_timestamps() -> None:
    records = [Record(0, 1000, b"k", None), Record(1, 900, b"l", None)]
    header = header_at(build(records))
    marked = rebuild(header, records, delete_horizon=5_000_000)
    assert header_at(marked).delete_horizon == 5_000_000
    assert parse(marked) == tuple(records)
    assert [r.timestamp for r in DefaultRecordBatch(marked)] == [1000, 900]


def test_log_append_time_overrides_record_timestamps() -> None:
    batch = bytearray(build([Record(0, 1, b"k", b"v")]))
    stamp_append_time(batch, 0, 77)
    assert parse(batch)[0].timestamp == 77


def test_parse_refuses_unknown_compression() -> None:
    batch = bytearray(build([Record(0, 1, b"k", b"v")]))
    batch[22] = 7
    with pytest.raises(UnsupportedCompression, match="7"):
        parse(batch)
