"""Timestamp searches do little work and yield often, whatever a producer has written."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from restow.cluster.log import LogConfig, timestamps
from restow.cluster.log.timestamps import TimedOffset, first_at_or_after
from restow.wire import records
from restow.wire.batches import HEADER_BYTES, CorruptBatch, crc_of
from restow.wire.compression import NONE, ZSTD, compress
from restow.wire.records import Record, build, each_time, parse
from tests.unit.log.making import batch_of, offset_of, open_log, result_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from restow.wire.primitives import Buffer

LARGE = LogConfig()
EMPTY_RECORD = bytes([12, 0, 0, 0, 1, 1, 0])


def tiny_records(count: int, compression: int = ZSTD, *, said: int | None = None) -> bytes:
    """Return a batch of empty records of time 1000, whose header claims time 9000."""
    payload = compress(EMPTY_RECORD * count, compression)
    batch = bytearray(build([Record(0, 1000, None, None)])[:HEADER_BYTES] + payload)
    said = count if said is None else said
    for at, layout, value in (
        (8, "i", len(batch) - 12),
        (21, "h", compression),
        (23, "i", said - 1),
        (35, "q", 9000),
        (57, "i", said),
    ):
        struct.pack_into(f">{layout}", batch, at, value)
    struct.pack_into(">I", batch, 17, crc_of(bytes(batch), 0, len(batch)))
    return bytes(batch)


def test_search_opens_one_batch_when_all_headers_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def counted(batch: Buffer) -> Iterator[tuple[int, int]]:
        opened.append(len(batch))
        return each_time(batch)

    monkeypatch.setattr(timestamps, "each_time", counted)
    log = open_log(tmp_path, LARGE)
    for _ in range(20):
        log.append_as_leader(tiny_records(10_000), 3, 0)
    assert offset_of(log, 5000) == TimedOffset(0, 9000, 3)
    assert len(opened) == 1
    log.release()


def test_search_yields_within_many_records(tmp_path: Path) -> None:
    log = open_log(tmp_path, LARGE)
    log.append_as_leader(tiny_records(100_000), 0, 0)
    search = first_at_or_after(log, 5000)
    assert sum(1 for _ in search) >= 50
    log.release()


def test_search_yields_within_many_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(index_interval_bytes=1 << 30))
    for _ in range(3000):
        log.append_as_leader(batch_of(b"v", time=1000), 0, 0)
    log.append_as_leader(batch_of(b"v", time=2000), 0, 0)
    assert sum(1 for _ in first_at_or_after(log, 1500)) >= 5
    assert offset_of(log, 1500) == TimedOffset(3000, 2000, 0)
    log.release()


def test_search_restarts_when_its_segment_is_removed(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(index_interval_bytes=1 << 30))
    for _ in range(2000):
        log.append_as_leader(batch_of(b"v", time=1000), 0, 0)
    log.append_as_leader(batch_of(b"v", time=2000), 0, 0)
    log.roll()
    log.append_as_leader(batch_of(b"w", time=3000), 0, 0)
    log.high_watermark = log.end_offset
    search = first_at_or_after(log, 1500)
    next(search)
    log.delete_records_before(2001)
    assert result_of(search) == TimedOffset(2001, 3000, 0)
    log.release()


def test_search_ends_without_reading_when_the_log_is_closed(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(index_interval_bytes=1 << 30))
    for _ in range(2000):
        log.append_as_leader(batch_of(b"v", time=1000), 0, 0)
    log.append_as_leader(batch_of(b"v", time=2000), 0, 0)
    search = first_at_or_after(log, 1500)
    next(search)
    log.release()
    assert result_of(search) is None


def test_search_continues_after_batch_whose_matching_records_are_deleted(tmp_path: Path) -> None:
    log = open_log(tmp_path, LARGE)
    late_first = [Record(0, 5000, b"k", b"a"), Record(1, 1000, b"k", b"b"), Record(2, 1000, b"k", b"c")]
    log.append_as_leader(build(late_first), 0, 0)
    log.append_as_leader(batch_of(b"d", time=6000), 0, 0)
    log.high_watermark = log.end_offset
    assert offset_of(log, 4000) == TimedOffset(0, 5000, 0)
    log.delete_records_before(1)
    assert offset_of(log, 4000) == TimedOffset(3, 6000, 0)
    log.release()


@pytest.mark.parametrize("compression", [NONE, ZSTD])
def test_batch_with_more_records_than_bytes_is_refused_unread(
    monkeypatch: pytest.MonkeyPatch, compression: int
) -> None:
    monkeypatch.setattr(records, "_parse_record", None)
    batch = tiny_records(10, compression, said=11)
    for read in (parse, each_time):
        with pytest.raises(CorruptBatch, match="11 records, in 70 bytes"):
            list(read(batch))


def test_each_time_returns_timestamps_of_the_records() -> None:
    expected = [
        Record(7 + i, 1000 + 300 * i % 7, b"k" * (i % 3), b"v" * i, (("h", b""),)) for i in range(200)
    ]
    batch = build(expected, compression=ZSTD)
    assert list(each_time(batch)) == [(each.offset, each.timestamp) for each in parse(batch)]


@pytest.mark.parametrize("length", [0, 1, 63, -1, -64])
def test_each_time_refuses_records_with_wrong_lengths(length: int) -> None:
    """The stated length is shorter than the record's start, or longer than the batch."""
    zigzag = (length << 1) ^ (length >> 63)
    damaged = bytearray(tiny_records(3, NONE))
    damaged[HEADER_BYTES] = zigzag & 0x7F
    with pytest.raises(CorruptBatch):
        list(each_time(bytes(damaged)))
