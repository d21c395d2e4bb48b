"""After a crash the log keeps its complete batches, and continues after them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from restow.cluster.log import EpochStart, LogConfig
from restow.cluster.log.segment import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from tests.unit.log.making import SMALL, batch_of, offset_of, open_log, read_all, values_of

if TYPE_CHECKING:
    from pathlib import Path

LOG = "00000000000000000000.log"


def three_batches(path: Path, config: LogConfig = SMALL) -> list[int]:
    """Make a log of three batches and kill it; return where each ends."""
    log = open_log(path, config)
    ends = []
    for value in (b"one", b"two", b"three"):
        log.append_as_leader(batch_of(value), 1, 0)
        ends.append(log.size_bytes)
    log.release()
    return ends


def test_recovery_truncates_tail_torn_at_any_byte(tmp_path: Path) -> None:
    ends = three_batches(tmp_path / "whole")
    whole = (tmp_path / "whole" / LOG).read_bytes()
    for size in range(len(whole)):
        path = tmp_path / f"torn-{size}"
        path.mkdir()
        (path / LOG).write_bytes(whole[:size])
        log = open_log(path, recovery_point=0)
        kept = sum(end <= size for end in ends)
        assert values_of(log) == [b"one", b"two", b"three"][:kept]
        assert (path / LOG).stat().st_size == log.size_bytes == ([0, *ends][kept])
        log.append_as_leader(batch_of(b"more"), 1, 0)
        assert values_of(log) == [*[b"one", b"two", b"three"][:kept], b"more"]
        log.release()


def test_recovery_truncates_at_batch_with_a_changed_byte(tmp_path: Path) -> None:
    ends = three_batches(tmp_path / "whole")
    whole = (tmp_path / "whole" / LOG).read_bytes()
    for position in range(ends[0], len(whole)):
        if (position - ends[0]) % (ends[1] - ends[0]) in range(8, 16):
            continue  # the length is checked below; a leader epoch may be any
        if position % ends[0] in range(8):
            continue  # a base offset above the last one is a gap, as compaction leaves it
        path = tmp_path / f"bad-{position}"
        path.mkdir()
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        (path / LOG).write_bytes(damaged)
        log = open_log(path, recovery_point=0)
        assert len(read_all(log)) <= (1 if position < ends[1] else 2)
        log.release()


@pytest.mark.parametrize("tail", [b"\0" * 500, b"\xff" * 500, b"\x7f" * 61])
def test_recovery_truncates_garbage_after_the_end(tmp_path: Path, tail: bytes) -> None:
    ends = three_batches(tmp_path)
    with (tmp_path / LOG).open("ab") as file:
        file.write(tail)
    log = open_log(tmp_path, recovery_point=0)
    assert len(read_all(log)) == 3
    assert log.size_bytes == ends[-1]
    log.release()


def test_recovery_does_not_read_before_the_recovery_point(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(30):
        log.append_as_leader(batch_of(b"%d" % number), 0, 0)
    assert len(log.segments) > 3
    point = log.segments[-1].base_offset
    log.release()
    first = tmp_path / LOG
    damaged = bytearray(first.read_bytes())
    damaged[-1] ^= 1
    first.write_bytes(damaged)
    trusting = open_log(tmp_path, recovery_point=point)
    assert trusting.end_offset == 30
    trusting.release()
    wary = open_log(tmp_path, recovery_point=0)
    assert wary.end_offset < 30
    assert len(wary.segments) == 1
    wary.release()


def test_recovery_removes_segments_after_a_damaged_one(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(30):
        log.append_as_leader(batch_of(b"%d" % number), number // 10, 0)
    second = log.segments[1]
    log.release()
    with (tmp_path / second.path).open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"?")
    again = open_log(tmp_path, recovery_point=0)
    assert again.end_offset == len(read_all(again))
    assert sorted(int(path.stem) for path in tmp_path.glob("*.log")) == [
        s.base_offset for s in again.segments
    ]
    assert again.epochs.latest == (again.end_offset - 1) // 10
    again.release()


@pytest.mark.parametrize("suffix", [INDEX_SUFFIX, TIME_INDEX_SUFFIX])
@pytest.mark.parametrize("damage", [None, b"", b"\x01", b"\xff" * 24, b"\0" * 240])
def test_impossible_indexes_are_rebuilt(tmp_path: Path, suffix: str, damage: bytes | None) -> None:
    log = open_log(tmp_path)
    for number in range(30):
        log.append_as_leader(batch_of(b"%d" % number, time=1000 + number), 0, 0)
    log.close()
    for path in tmp_path.glob(f"*{suffix}"):
        if damage is None:
            path.unlink()
        else:
            path.write_bytes(damage)
    again = open_log(tmp_path)
    assert [record.offset for record in read_all(again, max_bytes=1)] == list(range(30))
    for number in range(30):
        assert again.read(number, 1)
        found = offset_of(again, 1000 + number)
        assert found is not None
        assert found.offset == number
    again.release()


def test_leader_epochs_are_restored_from_the_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for epoch in (0, 0, 3, 7):
        log.append_as_leader(batch_of(b"v"), epoch, 0)
    log.release()
    (tmp_path / "leader-epoch-checkpoint").write_text("rubbish")
    again = open_log(tmp_path, recovery_point=0)
    assert again.epochs.entries == (EpochStart(0, 0), EpochStart(3, 2), EpochStart(7, 3))
    again.release()


def test_files_of_unfinished_writes_are_removed(tmp_path: Path) -> None:
    three_batches(tmp_path)
    for name in (
        "00000000000000000007.index",
        "a.tmp",
        "00000000000000000000-00000000000000000003.log.cleaned",
    ):
        (tmp_path / name).write_bytes(b"x")
    log = open_log(tmp_path, recovery_point=0)
    assert len(read_all(log)) == 3
    assert {path.name for path in tmp_path.iterdir()} == {LOG, "leader-epoch-checkpoint"}
    log.release()
