"""Appends and refusals of a leader, and when a segment rolls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.cluster.log import EpochEndOffset, EpochStart, LeaderEpochs, LogConfig
from restow.cluster.log.errors import (
    BatchTooLarge,
    InvalidAppend,
    InvalidRecord,
    InvalidTimestamp,
    OffsetOutOfRange,
    UnexpectedOffset,
)
from restow.cluster.log.timestamps import latest
from restow.wire.batches import CONTROL_BIT, LOG_APPEND_TIME, TIMESTAMP_TYPE_BIT, CorruptBatch, check, crc_of
from restow.wire.records import Record, build
from tests.unit.log.making import SMALL, batch_of, offset_of, open_log, read_all, result_of, values_of

if TYPE_CHECKING:
    from pathlib import Path


def with_attributes(batch: bytes, bits: int) -> bytes:
    changed = bytearray(batch)
    changed[22] |= bits
    changed[17:21] = crc_of(changed, 0, len(changed)).to_bytes(4)
    return bytes(changed)


REFUSED = {
    "nothing": (b"", InvalidRecord),
    "a control batch": (with_attributes(batch_of(b"v"), CONTROL_BIT), InvalidRecord),
    "an append time": (with_attributes(batch_of(b"v"), TIMESTAMP_TYPE_BIT), InvalidRecord),
    "an unknown compression": (with_attributes(batch_of(b"v"), 5), InvalidRecord),
    "a transaction of nobody": (with_attributes(batch_of(b"v"), 0x10), InvalidRecord),
    "a gap": (build([Record(0, 1, b"k", b"v"), Record(2, 1, b"k", b"v")]), InvalidRecord),
    "a producer without sequence": (batch_of(b"v", producer_id=3), InvalidRecord),
    "two batches": (batch_of(b"v") * 2, InvalidRecord),
    "too much": (batch_of(b"v" * 3000), BatchTooLarge),
    "too old": (batch_of(b"v", time=400), InvalidTimestamp),
    "too new": (batch_of(b"v", time=1_600), InvalidTimestamp),
    "half a batch": (batch_of(b"v")[:-1], CorruptBatch),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_append_writes_nothing(tmp_path: Path, what: str) -> None:
    config = replace(SMALL, max_message_bytes=2000, timestamp_before_max_ms=500, timestamp_after_max_ms=500)
    log = open_log(tmp_path, config)
    batch, error = REFUSED[what]
    with pytest.raises(error):
        log.append_as_leader(batch, 0, 1000)
    assert (log.end_offset, log.size_bytes) == (0, 0)
    assert issubclass(error, (InvalidAppend, CorruptBatch))
    log.append_as_leader(batch_of(b"v", time=1000), 0, 1000)
    log.release()


def test_batches_of_a_coordinator_are_appended_together(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    info = log.append_as_leader(batch_of(b"a", b"b") + batch_of(b"c"), 5, 0, from_client=False)
    assert (info.first_offset, info.last_offset) == (0, 2)
    stored = check(log.read(0, 10_000))
    assert [(header.base_offset, header.leader_epoch) for _, header in stored] == [(0, 5), (2, 5)]
    log.release()


def test_log_append_time_is_set_if_configured(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(SMALL, timestamp_type=LOG_APPEND_TIME))
    info = log.append_as_leader(batch_of(b"a", b"b", time=5), 0, 777)
    assert info.log_append_time == 777
    assert [record.timestamp for record in read_all(log)] == [777, 777]
    assert check(log.read(0, 10_000))
    found = offset_of(log, 777)
    assert found is not None
    assert found.offset == 0
    log.release()


def test_follower_refuses_batches_before_its_end(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(batch_of(b"a", b"b", offset=4))
    with pytest.raises(UnexpectedOffset, match="goes on at offset 7"):
        log.append_as_follower(batch_of(b"c", offset=6) + batch_of(b"d", offset=6))
    assert (log.start_offset, log.end_offset) == (0, 6)
    log.append_as_follower(b"")
    assert values_of(log) == [b"a", b"b"]
    log.release()


def test_segment_rolls_by_record_timestamps(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=100))
    for time in (1000, 1050, 1100, 1101, 1150):
        log.append_as_leader(batch_of(b"v", time=time), 0, 0)
    assert [segment.base_offset for segment in log.segments] == [0, 3]
    log.release()


def test_segment_rolls_before_relative_offsets_overflow(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for offset in (0, 2**31 - 1, 2**31, 2**40):
        log.append_as_follower(batch_of(b"v", offset=offset))
    assert [segment.base_offset for segment in log.segments] == [0, 2**31, 2**40]
    log.close()
    again = open_log(tmp_path)
    assert [record.offset for record in read_all(again)] == [0, 2**31 - 1, 2**31, 2**40]
    again.release()


def test_empty_log_accepts_distant_first_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(batch_of(b"v", offset=2**33))
    assert values_of(log) == [b"v"]
    log.close()
    again = open_log(tmp_path)
    assert (again.start_offset, again.end_offset) == (0, 2**33 + 1)
    assert values_of(again) == [b"v"]
    again.release()


def test_log_flushes_after_configured_messages(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(SMALL, flush_messages=3))
    points = []
    for _ in range(7):
        log.append_as_leader(batch_of(b"v"), 0, 0)
        points.append(log.recovery_point)
    assert points == [0, 0, 3, 3, 3, 6, 6]
    log.release()


def test_delete_records_is_limited_by_the_high_watermark(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(30):
        log.append_as_leader(batch_of(b"%d" % number), number // 5, 0)
    log.high_watermark = 20
    with pytest.raises(OffsetOutOfRange):
        log.delete_records_before(21)
    log.delete_records_before(17)
    assert log.start_offset == 17
    assert log.segments[0].base_offset <= 17 < log.segments[1].base_offset
    assert log.epochs.entries[0] == EpochStart(3, 17)
    log.delete_records_before(3)
    assert log.start_offset == 17
    log.release()


def test_high_watermark_stays_within_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(batch_of(b"a", b"b"), 0, 0)
    log.high_watermark = 99
    assert log.high_watermark == 2
    log.high_watermark = -1
    assert log.high_watermark == 0
    log.high_watermark = 2
    log.truncate_to(0)
    assert log.high_watermark == 0
    log.release()


def test_search_finds_offsets_of_timestamps(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    times = [1000 + (number * 37) % 100 * 10 for number in range(60)]
    for time in times:
        log.append_as_leader(batch_of(b"v", b"w", time=time), 2, 0)
    stamps = [stamp for time in times for stamp in (time, time + 1)]
    for wanted in range(990, 2010):
        expected = next((offset for offset, stamp in enumerate(stamps) if stamp >= wanted), None)
        found = offset_of(log, wanted)
        assert (None if found is None else found.offset) == expected
    last = result_of(latest(log))
    assert last is not None
    assert (last.offset, last.timestamp, last.leader_epoch) == (
        stamps.index(max(stamps)),
        max(stamps),
        2,
    )
    log.release()


def test_search_in_empty_log_finds_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert offset_of(log, 0) is None
    assert result_of(latest(log)) is None
    log.release()


def test_end_offset_for_returns_epoch_ends() -> None:
    epochs = LeaderEpochs((EpochStart(2, 10), EpochStart(4, 20), EpochStart(5, 30)))
    asked = {-1: (-1, -1), 1: (1, 10), 2: (2, 20), 3: (2, 20), 4: (4, 30), 5: (5, 99), 6: (-1, -1)}
    assert {epoch: epochs.end_offset_for(epoch, 99) for epoch in asked} == {
        epoch: EpochEndOffset(*end) for epoch, end in asked.items()
    }
    assert LeaderEpochs().end_offset_for(0, 5) == EpochEndOffset(-1, -1)
    assert [epochs.epoch_of(offset) for offset in (9, 10, 19, 20, 35)] == [-1, 2, 2, 4, 5]


def test_assign_replaces_contradicting_epochs() -> None:
    epochs = LeaderEpochs((EpochStart(2, 10), EpochStart(4, 20)))
    assert not epochs.assign(4, 25)
    assert not epochs.assign(-1, 25)
    assert epochs.assign(6, 20)
    assert epochs.entries == (EpochStart(2, 10), EpochStart(6, 20))
    assert epochs.assign(3, 15)
    assert epochs.entries == (EpochStart(2, 10), EpochStart(3, 15))
