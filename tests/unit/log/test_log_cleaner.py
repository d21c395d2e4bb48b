"""Compaction: the last record of every key stays at its offset, and a crash at any point loses nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restow.cluster.log import LogConfig, PartitionLog, cleaner
from restow.cluster.log.cleaner import clean, cleanable, dirty_ratio
from restow.runtime.disk import SystemDisk
from restow.wire.batches import HEADER_BYTES, crc_of, scan
from restow.wire.compression import NAMES
from restow.wire.records import parse
from tests.unit.log.making import PARTITION, Crash, FaultyDisk, keyed, open_log, read_all

if TYPE_CHECKING:
    from restow.runtime.disk import Disk
    from restow.wire.records import Record

COMPACT = LogConfig(
    segment_bytes=400,
    index_interval_bytes=100,
    cleanup_compact=True,
    cleanup_delete=False,
    delete_retention_ms=100,
)


def compact(log: PartitionLog, disk: Disk | None = None, first_dirty: int = 0, now_ms: int = 0) -> int:
    steps = clean(log, disk or SystemDisk(), first_dirty, now_ms)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: int = done.value
            return result


def fill(log: PartitionLog, writes: list[list[tuple[str, str | None]]], **more: object) -> None:
    for pairs in writes:
        log.append_as_leader(keyed(*pairs, **more), 0, 0)
    log.high_watermark = log.end_offset


def last_of_each(records: list[Record]) -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in records}


WRITES = [[(f"k{n % 3}", f"v{n}"), (f"k{n % 5}", f"w{n}")] for n in range(20)]


@settings(max_examples=60, deadline=None)
@given(
    writes=st.lists(
        st.lists(
            st.tuples(st.sampled_from("abcdef"), st.none() | st.text(max_size=3)), min_size=1, max_size=4
        ),
        max_size=25,
    ),
    rounds=st.integers(1, 3),
    compression=st.sampled_from(range(len(NAMES))),
)
def test_compaction_keeps_the_table_that_readers_build(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[list[tuple[str, str | None]]],
    rounds: int,
    compression: int,
) -> None:
    log = open_log(tmp_path_factory.mktemp("log"), COMPACT)
    before: list[Record] = []
    dirty = 0
    for number in range(rounds):
        fill(log, writes, compression=compression)
        before = read_all(log)
        active = log.segments[-1].base_offset
        dirty = compact(log, first_dirty=dirty, now_ms=number)
        after = read_all(log)
        assert last_of_each(after) == last_of_each(before)
        assert set(after) <= set(before)
        assert [r for r in after if r.offset >= active] == [r for r in before if r.offset >= active]
        keys = [record.key for record in after if record.offset < dirty]
        assert len(keys) == len(set(keys))
        assert log.size_bytes == sum(segment.size for segment in log.segments)
    compacted = read_all(log)
    log.close()
    again = open_log(Path(log.directory), COMPACT)
    assert read_all(again) == compacted
    assert again.end_offset == log.end_offset
    again.release()


def test_compaction_keeps_active_segment_and_records_above_high_watermark(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    fill(log, WRITES)
    log.high_watermark = 10
    segments = log.segments
    may = cleanable(log, 0)
    assert may
    assert may == [s for s, after in pairwise(segments) if after.base_offset <= 10]
    before = [r for r in read_all(log) if r.offset >= may[-1].next_offset]
    compact(log)
    assert [r for r in read_all(log) if r.offset >= may[-1].next_offset] == before
    log.release()


def test_compaction_merges_small_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    fill(log, WRITES)
    many = len(log.segments)
    dirty = compact(log)
    assert dirty_ratio(log, 0, 0) == 1.0
    assert dirty_ratio(log, dirty, 0) == 0.0
    compact(log, first_dirty=dirty)
    assert len(log.segments) < many
    log.release()


def test_tombstones_are_removed_after_delete_retention(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    fill(log, [[("gone", "x")], [("gone", None)], *WRITES])
    dirty = compact(log, now_ms=1000)
    assert last_of_each(read_all(log))[b"gone"] is None
    compact(log, first_dirty=dirty, now_ms=1099)
    assert b"gone" in last_of_each(read_all(log))
    compact(log, first_dirty=dirty, now_ms=1100)
    assert b"gone" not in last_of_each(read_all(log))
    log.release()


def unreadable(compression: int) -> bytes:
    """Return a valid batch with an unreadable payload."""
    batch = bytearray(keyed(("gone", "x" * 30), compression=compression))
    batch[HEADER_BYTES:] = bytes(range(7, 7 + len(batch) - HEADER_BYTES))
    batch[17:21] = crc_of(batch, 0, len(batch)).to_bytes(4)
    return bytes(batch)


@pytest.mark.parametrize("compression", range(len(NAMES)), ids=NAMES)
def test_unreadable_batch_and_later_tombstones_stay(tmp_path: Path, compression: int) -> None:
    log = open_log(tmp_path, COMPACT)
    fill(log, [[("early", "x")], [("early", None)]])
    # A client's would be opened, to see its keys, and refused.
    log.append_as_leader(hidden := unreadable(compression), 0, 0, from_client=False)
    fill(log, [[("gone", None)], *WRITES])
    dirty = compact(log, now_ms=0)
    compact(log, first_dirty=dirty, now_ms=10**6)
    kept = [batch for segment in log.segments for _, _, batch in segment.batches()]
    assert [batch[HEADER_BYTES:] for batch in kept].count(hidden[HEADER_BYTES:]) == 1
    known = {
        record.key: record.value for batch in kept if len(batch) != len(hidden) for record in parse(batch)
    }
    assert known[b"gone"] is None
    assert b"early" not in known
    assert known[b"k0"] == b"v18"
    assert known[b"k4"] == b"w19"
    log.release()


def test_last_batch_of_a_producer_stays_as_an_empty_one(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    batch = keyed(("k0", "x"), producer_id=4, producer_epoch=0, base_sequence=0)
    log.append_as_leader(batch, 0, 0)
    fill(log, WRITES)
    compact(log)
    first = next(header for _, header in scan(log.read(0, 10_000)))
    assert (first.producer_id, first.base_sequence, first.count) == (4, 0, 0)
    assert log.append_as_leader(batch, 0, 0).duplicate
    log.release()


def test_compaction_waits_for_min_compaction_lag(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(COMPACT, min_compaction_lag_ms=50))
    fill(log, WRITES, time=1000)
    assert not cleanable(log, 1050)
    assert cleanable(log, 1052)
    log.release()


@pytest.mark.parametrize("how", ["release", "truncate_fully"])
def test_compaction_stops_when_the_log_changes(tmp_path: Path, how: str) -> None:
    log = open_log(tmp_path, COMPACT)
    fill(log, WRITES)
    steps = clean(log, SystemDisk(), 0, 0)
    for _ in range(25):
        next(steps)
    if how == "release":
        log.release()
    else:
        log.truncate_fully_and_start_at(7)
    with pytest.raises(StopIteration) as done:
        next(steps)
    assert done.value.value == 0
    log.release()


def test_crash_at_any_step_of_compaction_loses_nothing(tmp_path: Path) -> None:
    crashed = 0
    for point in range(200):
        path = tmp_path / str(point)
        log = open_log(path, COMPACT)
        fill(log, WRITES)
        before = read_all(log)
        left = [point]

        def fault(name: str, where: str, left: list[int] = left) -> None:
            if name in ("read", "list", "exists", "read_bytes"):
                return
            left[0] -= 1
            if left[0] < 0:
                raise Crash

        disk = FaultyDisk()
        log.release()
        log = PartitionLog(disk, str(path), PARTITION, COMPACT, recovery_point=0, high_watermark=10**6)
        disk.fault = fault
        try:
            compact(log, disk)
            done = True
        except Crash:
            done = False
            crashed += 1
        log.release()
        again = open_log(path, COMPACT, recovery_point=0)
        assert last_of_each(read_all(again)) == last_of_each(before)
        assert again.end_offset == 40
        assert not [p for p in path.iterdir() if p.suffix in (".cleaned", ".swap")]
        again.release()
        if done:
            break
    else:
        pytest.fail("compaction never came to its end")
    assert crashed > 10


def test_compaction_yields_within_a_large_batch(tmp_path: Path) -> None:
    """Reading keys, reading again and writing the rest all yield."""
    log = open_log(tmp_path, replace(COMPACT, segment_bytes=1 << 22))
    log.append_as_leader(keyed(*((f"k{n % 9000}", "v") for n in range(10_000)), compression=4), 0, 0)
    log.roll()
    log.high_watermark = log.end_offset
    assert sum(1 for _ in clean(log, SystemDisk(), 0, 0)) >= 10 + 10 + 9
    assert len(read_all(log)) == 9000
    log.release()


def test_compaction_of_too_many_keys_takes_several_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaner, "_MOST_KEYS", 4)
    log = open_log(tmp_path, COMPACT)
    fill(log, [[(f"k{n % 30}", f"v{n}")] for n in range(90)])
    expected = last_of_each(read_all(log))
    dirty = [0]
    while dirty[-1] < log.segments[-1].base_offset:
        dirty.append(compact(log, first_dirty=dirty[-1]))
        assert dirty[-1] > dirty[-2]
        assert last_of_each(read_all(log)) == expected
    assert len(dirty) > 3
    assert len(read_all(log)) < 60
    log.release()
