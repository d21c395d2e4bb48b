"""All logs of a broker: their log dirs, restarts, and failing disks."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from restow.cluster.log import LogConfig, LogManager, MetaProperties
from restow.cluster.log.errors import (
    DiskFailure,
    InvalidCheckpoint,
    LogDirInUse,
    LogDirsOffline,
    TopicIdMismatch,
    UnknownLog,
)
from restow.model import TopicPartition
from tests.unit.log.making import SMALL, FaultyDisk, batch_of, full_under, keyed, read_all, values_of

META = MetaProperties("cluster", 3)
T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


class Broker:
    """A manager with a fixed clock, a failing disk, and a record of failures."""

    def __init__(self, path: Path, *, dirs: int = 2, config: LogConfig = SMALL, **more: Any) -> None:
        self.disk = FaultyDisk()
        self.now = 1_000_000
        self.config = config
        self.failed: list[tuple[str, tuple[TopicPartition, ...]]] = []
        self.paths = [str(path / f"d{number}") for number in range(dirs)]
        self.logs = LogManager(
            self.disk,
            self.paths,
            more.pop("meta", META),
            config_of=lambda topic: self.config,
            now_ms=lambda: self.now,
            on_directory_failure=lambda path, lost: self.failed.append((path, lost)),
            **{"check_interval_ms": 1000, **more},
        )

    def started(self) -> Broker:
        self.logs.start()
        return self

    def tend(self) -> int:
        return sum(1 for _ in self.logs.tend())


def test_new_log_goes_to_log_dir_with_fewest_logs(tmp_path: Path) -> None:
    broker = Broker(tmp_path, dirs=3).started()
    for number in range(7):
        broker.logs.get_or_create(TopicPartition("t", number), is_new=True)
    assert [len(directory.logs) for directory in broker.logs.directories] == [3, 2, 2]
    broker.logs.prefer(TopicPartition("u", 0), broker.paths[0])
    chosen = broker.logs.get_or_create(TopicPartition("u", 0))
    assert chosen.directory == f"{broker.paths[0]}/u-0"
    broker.logs.release()


@pytest.mark.parametrize("left", ["topic_id: iii", "topic_id: iii" + "\0" * 19, ""])
def test_torn_topic_id_is_not_that_of_another_topic(tmp_path: Path, left: str) -> None:
    broker = Broker(tmp_path).started()
    broker.logs.get_or_create(T0, topic_id="i" * 22).append_as_leader(batch_of(b"a"), 0, 0)
    broker.logs.close()
    (torn,) = tmp_path.rglob("partition.metadata")
    torn.write_text(f"version: 0\n{left}")
    again = Broker(tmp_path).started()
    assert again.logs.topic_id_of(T0) is None
    assert again.logs.get_or_create(T0, topic_id="i" * 22).end_offset == 1
    assert again.logs.topic_id_of(T0) == "i" * 22


@pytest.mark.parametrize("clean", [True, False])
def test_logs_are_restored_after_a_restart(tmp_path: Path, clean: bool) -> None:
    broker = Broker(tmp_path).started()
    for partition in (T0, T1, T2):
        log = broker.logs.get_or_create(partition, topic_id=f"id-of-{partition}".ljust(22, "-"))
        for number in range(20):
            log.append_as_leader(batch_of(b"%d" % number), 4, 0)
        log.high_watermark = 15
    log.delete_records_before(5)
    broker.logs.checkpoint()
    broker.logs.close() if clean else broker.logs.release()
    again = Broker(tmp_path).started()
    assert sorted(again.logs.partitions) == [T0, T1, T2]
    for partition in (T0, T1, T2):
        log = again.logs.directory_of(partition).logs[partition]
        assert (log.end_offset, log.high_watermark, log.epochs.latest) == (20, 15, 4)
        assert again.logs.topic_id_of(partition) == f"id-of-{partition}".ljust(22, "-")
    assert log.start_offset == 5
    assert len(read_all(log)) == 15
    again.logs.release()


def test_crash_after_a_clean_start_causes_recovery(tmp_path: Path) -> None:
    broker = Broker(tmp_path, dirs=1).started()
    broker.logs.get_or_create(T0).append_as_leader(batch_of(b"a"), 0, 0)
    broker.logs.close()
    broker = Broker(tmp_path, dirs=1).started()
    log = broker.logs.get_or_create(T0)
    log.append_as_leader(batch_of(b"b"), 0, 0)
    broker.logs.release()
    with (tmp_path / "d0" / "t-0" / "00000000000000000000.log").open("ab") as file:
        file.write(b"torn")
    again = Broker(tmp_path, dirs=1).started()
    found = again.logs.get(T0)
    assert found is not None
    assert values_of(found) == [b"a", b"b"]
    again.logs.release()


def test_log_damaged_after_a_clean_shutdown_is_truncated(tmp_path: Path) -> None:
    broker = Broker(tmp_path, dirs=1).started()
    log = broker.logs.get_or_create(T0)
    for number in range(3):
        log.append_as_leader(batch_of(b"%d" % number), 0, 0)
    broker.logs.close()
    with (tmp_path / "d0" / "t-0" / "00000000000000000000.log").open("ab") as file:
        file.write(b"x" * 100)
    again = Broker(tmp_path, dirs=1).started()
    found = again.logs.get(T0)
    assert found is not None
    assert len(read_all(found)) == 3
    again.logs.release()


def test_log_dir_of_another_broker_is_refused(tmp_path: Path) -> None:
    Broker(tmp_path).started().logs.close()
    with pytest.raises(InvalidCheckpoint, match="belongs to broker 3 of cluster cluster"):
        Broker(tmp_path, meta=MetaProperties("other", 3)).started()


def test_damaged_checkpoints_are_ignored(tmp_path: Path) -> None:
    broker = Broker(tmp_path, dirs=1).started()
    broker.logs.get_or_create(T0, topic_id="i" * 22).append_as_leader(batch_of(b"a"), 0, 0)
    broker.logs.close()
    for path in (tmp_path / "d0").glob("*-checkpoint"):
        path.write_bytes(b"\xff\xfe rubbish")
    (tmp_path / "d0" / "t-0" / "partition.metadata").write_bytes(b"")
    (tmp_path / "d0" / "some folder").mkdir()
    again = Broker(tmp_path, dirs=1).started()
    assert again.logs.partitions == (T0,)
    log = again.logs.get_or_create(T0, topic_id="j" * 22)
    assert (log.high_watermark, values_of(log)) == (0, [b"a"])
    again.logs.release()


def test_deleted_log_is_gone_at_once_and_its_files_later(tmp_path: Path) -> None:
    broker = Broker(tmp_path, dirs=1).started()
    broker.logs.get_or_create(T0, topic_id="a").append_as_leader(batch_of(b"a"), 0, 0)
    broker.logs.delete(T0)
    assert broker.logs.get(T0) is None
    with pytest.raises(UnknownLog):
        broker.logs.delete(T0)
    fresh = broker.logs.get_or_create(T0, topic_id="b")
    assert fresh.end_offset == 0
    fresh.append_as_leader(batch_of(b"b"), 0, 0)
    broker.logs.delete(T0)
    assert len([name for name in (tmp_path / "d0").iterdir() if name.name.endswith("-delete")]) == 2
    assert broker.logs.next_due_ms == broker.now
    broker.tend()
    assert not [path for path in (tmp_path / "d0").iterdir() if path.is_dir()]
    broker.logs.release()


def test_deletion_continues_after_a_restart(tmp_path: Path) -> None:
    broker = Broker(tmp_path, dirs=1).started()
    long = TopicPartition("x" * 249, 0)
    broker.logs.get_or_create(long)
    broker.logs.delete(long)
    broker.logs.release()
    again = Broker(tmp_path, dirs=1).started()
    assert again.logs.partitions == ()
    again.tend()
    assert not [path for path in (tmp_path / "d0").iterdir() if path.is_dir()]
    again.logs.release()


def test_recreated_topic_does_not_get_the_old_log(tmp_path: Path) -> None:
    broker = Broker(tmp_path).started()
    broker.logs.get_or_create(T0, topic_id="a")
    assert broker.logs.get_or_create(T0, topic_id="a") is broker.logs.get_or_create(T0)
    with pytest.raises(TopicIdMismatch, match="made again"):
        broker.logs.get_or_create(T0, topic_id="b")
    broker.logs.release()


@pytest.mark.parametrize("work", ["append", "read", "flush", "checkpoint", "delete", "roll"])
def test_failed_disk_takes_only_its_logs_offline(tmp_path: Path, work: str) -> None:
    broker = Broker(tmp_path).started()
    first, second = (broker.logs.get_or_create(partition) for partition in (T0, T1))
    for log in (first, second):
        log.append_as_leader(batch_of(b"a"), 0, 0)
    broker.disk.fault = full_under(broker.paths[0])
    if work == "checkpoint":
        broker.logs.checkpoint()
    else:
        does = {
            "append": lambda: first.append_as_leader(batch_of(b"b"), 0, 0),
            "read": lambda: first.read(0, 100),
            "flush": first.flush,
            "delete": lambda: broker.logs.delete(T0),
            "roll": first.roll,
        }
        with pytest.raises(DiskFailure, match="No space left"):
            does[work]()
    assert broker.failed == [(broker.paths[0], (T0,))]
    assert broker.logs.offline == (broker.paths[0],)
    assert broker.logs.partitions == (T1,)
    broker.disk.fault = lambda name, path: None
    with pytest.raises(DiskFailure):
        first.read(0, 100)
    second.append_as_leader(batch_of(b"b"), 0, 0)
    assert values_of(second) == [b"a", b"b"]
    broker.now += 10**9
    broker.tend()
    broker.logs.close()
    again = Broker(tmp_path).started()
    found = again.logs.get(T0)
    assert found is not None
    assert values_of(found) == [b"a"]
    again.logs.release()


def test_log_is_not_created_again_while_it_may_be_offline(tmp_path: Path) -> None:
    broker = Broker(tmp_path).started()
    for partition in (T0, T1):
        broker.logs.get_or_create(partition)
    broker.logs.close()
    again = Broker(tmp_path)
    again.disk.fault = full_under(again.paths[0])
    again.started()
    assert again.logs.partitions == (T1,)
    with pytest.raises(LogDirsOffline, match="may be in a log dir that is offline"):
        again.logs.get_or_create(T0)
    again.logs.get_or_create(T2, is_new=True)
    again.logs.release()


def test_manager_does_not_start_without_a_working_disk(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.disk.fault = full_under(str(tmp_path))
    with pytest.raises(LogDirsOffline, match="all log dirs"):
        broker.logs.start()


def test_torn_append_is_gone_after_a_restart(tmp_path: Path) -> None:
    broker = Broker(tmp_path, dirs=1).started()
    log = broker.logs.get_or_create(T0)
    log.append_as_leader(batch_of(b"a"), 0, 0)

    def fault(name: str, path: str) -> None:
        if name == "append":
            with Path(path).open("ab") as file:
                file.write(batch_of(b"b")[:30])
            raise OSError(errno.EIO, "Input/output error", path)

    broker.disk.fault = fault
    with pytest.raises(DiskFailure):
        log.append_as_leader(batch_of(b"b"), 0, 0)
    broker.logs.close()
    again = Broker(tmp_path, dirs=1).started()
    found = again.logs.get(T0)
    assert found is not None
    assert values_of(found) == [b"a"]
    again.logs.release()


def test_old_segments_are_deleted_by_retention_ms(tmp_path: Path) -> None:
    broker = Broker(tmp_path, config=replace(SMALL, retention_ms=5000)).started()
    log = broker.logs.get_or_create(T0)
    for number in range(20):
        log.append_as_leader(batch_of(b"v", time=broker.now + number), 0, broker.now)
    log.high_watermark = log.segments[-1].base_offset
    assert broker.logs.next_due_ms == broker.now + 1000
    broker.now += 1000
    assert broker.tend()
    assert log.start_offset == 0
    assert broker.logs.next_due_ms == log.segments[0].max_timestamp + 5001
    broker.now += 5000
    broker.tend()
    assert log.start_offset == log.segments[0].base_offset == log.high_watermark
    log.high_watermark = 20
    broker.now += 1000
    broker.tend()
    assert (log.start_offset, log.size_bytes, log.end_offset) == (20, 0, 20)
    assert broker.logs.next_due_ms is None
    log.append_as_leader(batch_of(b"v"), 0, 0)
    assert broker.logs.next_due_ms is not None
    broker.logs.release()


def test_oldest_segments_are_deleted_by_retention_bytes(tmp_path: Path) -> None:
    broker = Broker(tmp_path, config=replace(SMALL, retention_bytes=1000, retention_ms=-1)).started()
    log = broker.logs.get_or_create(T0)
    for _ in range(40):
        log.append_as_leader(batch_of(b"v"), 0, 0)
    log.high_watermark = 40
    broker.now += 1000
    broker.tend()
    assert 1000 <= log.size_bytes < 1000 + log.segments[0].size
    broker.logs.release()


def test_idle_manager_looks_at_no_log(tmp_path: Path) -> None:
    broker = Broker(tmp_path).started()
    for number in range(50):
        broker.logs.get_or_create(TopicPartition("t", number))
    broker.tend()
    assert broker.logs.next_due_ms is None
    assert broker.tend() == 0
    broker.logs.release()


def test_manager_flushes_by_flush_ms(tmp_path: Path) -> None:
    broker = Broker(tmp_path, config=replace(SMALL, flush_ms=200)).started()
    log = broker.logs.get_or_create(T0)
    log.append_as_leader(batch_of(b"v"), 0, 0)
    assert broker.logs.next_due_ms == broker.now + 200
    broker.now += 200
    broker.tend()
    assert log.recovery_point == 1
    broker.logs.release()


def test_manager_compacts_when_enough_is_dirty(tmp_path: Path) -> None:
    config = replace(SMALL, cleanup_compact=True, cleanup_delete=False)
    broker = Broker(tmp_path, dirs=1, config=config).started()
    log = broker.logs.get_or_create(T0)
    for number in range(60):
        log.append_as_leader(keyed((f"k{number % 2}", str(number))), 0, 0)
    log.high_watermark = 60
    before = log.size_bytes
    broker.now += 1000
    assert broker.tend() > 60
    assert log.size_bytes < before / 2
    assert {r.key: r.value for r in read_all(log)} == {b"k0": b"58", b"k1": b"59"}
    dirty = broker.logs.directories[0].first_dirty[T0]
    assert dirty > 0
    broker.logs.close()
    again = Broker(tmp_path, dirs=1, config=config).started()
    assert again.logs.directories[0].first_dirty == {T0: dirty}
    again.logs.release()


def test_changed_settings_apply_to_open_logs(tmp_path: Path) -> None:
    broker = Broker(tmp_path).started()
    log = broker.logs.get_or_create(T0)
    broker.config = replace(SMALL, retention_ms=7)
    broker.logs.reconfigure("other")
    assert log.config.retention_ms != 7
    broker.logs.reconfigure("t")
    assert log.config.retention_ms == 7
    broker.logs.release()


def test_future_log_replaces_the_current_one(tmp_path: Path) -> None:
    broker = Broker(tmp_path).started()
    log = broker.logs.get_or_create(T0, topic_id="i" * 22)
    log.append_as_leader(batch_of(b"a", b"b"), 0, 0)
    with pytest.raises(UnknownLog, match="future"):
        broker.logs.replace_with_future(T0)
    broker.logs.begin_move(T0, broker.logs.directories[1])
    future = broker.logs.directories[1].futures[T0]
    future.append_as_follower(log.read(0, 1000))
    broker.logs.checkpoint()
    broker.logs.release()
    again = Broker(tmp_path).started()
    assert values_of(again.logs.directories[1].futures[T0]) == [b"a", b"b"]
    moved = again.logs.replace_with_future(T0)
    assert moved.directory == f"{again.paths[1]}/t-0"
    assert values_of(moved) == [b"a", b"b"]
    assert again.logs.topic_id_of(T0) == "i" * 22
    again.tend()
    assert [sorted(p.name for p in (tmp_path / d).iterdir() if p.is_dir()) for d in ("d0", "d1")] == [
        [],
        ["t-0"],
    ]
    again.logs.release()


@pytest.mark.parametrize("clean", [True, False])
def test_log_dir_is_used_by_one_broker_at_a_time(tmp_path: Path, clean: bool) -> None:
    first = Broker(tmp_path).started()
    second = Broker(tmp_path)
    with pytest.raises(LogDirInUse, match="d0 is in use by another broker"):
        second.logs.start()
    assert not second.failed
    first.logs.get_or_create(T0).append_as_leader(batch_of(b"a"), 0, 0)
    first.logs.close() if clean else first.logs.release()
    second.started()
    assert second.logs.partitions == (T0,)
    second.logs.close()


def test_failed_log_dir_is_released(tmp_path: Path) -> None:
    first = Broker(tmp_path).started()
    first.disk.fault = full_under(first.paths[0])
    first.logs.checkpoint()
    assert first.logs.offline == (first.paths[0],)
    only = Broker(tmp_path, dirs=1).started()
    only.logs.close()
    first.logs.close()
