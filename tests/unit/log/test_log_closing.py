"""Files that a log writes at its close: no useless ones, and no outdated ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.log import LogConfig, PartitionLog
from restow.model import TopicPartition
from restow.runtime.disk import SystemDisk
from tests.unit.log.making import batch_of, values_of

if TYPE_CHECKING:
    from pathlib import Path

INDEXED = LogConfig(index_interval_bytes=1)


def opened(path: Path, config: LogConfig) -> PartitionLog:
    return PartitionLog(SystemDisk(), str(path), TopicPartition("t", 0), config)


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


def test_short_log_reopens_without_index_files(tmp_path: Path) -> None:
    log = opened(tmp_path, LogConfig())
    for number in range(3):
        log.append_as_leader(batch_of(b"%d" % number), 5, 0)
    log.close()
    assert names(tmp_path) == ["00000000000000000000.log", "leader-epoch-checkpoint"]
    again = opened(tmp_path, LogConfig())
    assert (again.end_offset, again.epochs.latest, values_of(again)) == (3, 5, [b"0", b"1", b"2"])
    again.append_as_leader(batch_of(b"3"), 5, 0)
    assert values_of(again) == [b"0", b"1", b"2", b"3"]
    again.release()


def test_index_of_truncated_records_is_removed(tmp_path: Path) -> None:
    log = opened(tmp_path, INDEXED)
    for number in range(20):
        log.append_as_leader(batch_of(b"%d" % number), 0, 0)
    log.close()
    before = (tmp_path / "00000000000000000000.index").read_bytes()
    assert before
    again = opened(tmp_path, INDEXED)
    again.truncate_to(1)
    again.close()
    assert (tmp_path / "00000000000000000000.index").read_bytes() == b""
    last = opened(tmp_path, INDEXED)
    assert (last.end_offset, values_of(last)) == (1, [b"0"])
    last.release()


def test_producers_of_short_log_are_restored(tmp_path: Path) -> None:
    log = opened(tmp_path, LogConfig())
    written = batch_of(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    first = log.append_as_leader(written, 0, 0)
    log.close()
    again = opened(tmp_path, LogConfig())
    repeated = again.append_as_leader(written, 0, 0)
    assert (repeated.first_offset, repeated.duplicate) == (first.first_offset, True)
    again.release()
