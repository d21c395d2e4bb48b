"""A broker checks its logs after an unclean stop, and truncates them at damage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from restow.cluster.log import EpochStart, LogConfig
from tests.unit.log.making import batch_of, open_log, values_of
from tests.unit.log.test_log_manager import T0, Broker

if TYPE_CHECKING:
    from restow.cluster.log import PartitionLog

CONFIG = LogConfig()


def written(broker: Broker, *values: bytes) -> PartitionLog:
    log = broker.logs.get_or_create(T0, is_new=True)
    for value in values:
        log.append_as_leader(batch_of(value), 0, 0)
    return log


def damage(log: PartitionLog, value: bytes) -> None:
    """Change one byte of the record with that value on disk; only its CRC can detect it."""
    path = Path(log.segments[0].path)
    data = path.read_bytes()
    assert data.count(value) == 1
    path.write_bytes(data.replace(value, value[:-1] + b"!"))


def started(tmp_path: Path) -> Broker:
    return Broker(tmp_path, dirs=1, config=CONFIG).started()


def values_after_start(tmp_path: Path) -> list[bytes | None]:
    broker = started(tmp_path)
    log = broker.logs.get(T0)
    assert log is not None
    found = values_of(log)
    broker.logs.release()
    return found


def test_log_is_truncated_at_damage_after_an_unclean_stop(tmp_path: Path) -> None:
    broker = started(tmp_path)
    log = written(broker, b"first", b"second", b"third")
    broker.logs.release()
    damage(log, b"second")
    assert values_after_start(tmp_path) == [b"first"]


def test_log_is_trusted_after_a_clean_stop(tmp_path: Path) -> None:
    broker = started(tmp_path)
    log = written(broker, b"first", b"second", b"third")
    broker.logs.close()
    damage(log, b"second")
    assert values_after_start(tmp_path) == [b"first", b"secon!", b"third"]


def test_clean_stop_marker_counts_for_one_start_only(tmp_path: Path) -> None:
    broker = started(tmp_path)
    log = written(broker, b"first", b"second")
    broker.logs.close()
    started(tmp_path).logs.release()
    damage(log, b"second")
    assert values_after_start(tmp_path) == [b"first"]


def test_log_is_checked_from_its_recovery_point(tmp_path: Path) -> None:
    broker = started(tmp_path)
    log = written(broker, b"first", b"second")
    log.flush()
    broker.logs.checkpoint()
    written(broker, b"third", b"fourth")
    broker.logs.release()
    damage(log, b"third")
    assert values_after_start(tmp_path) == [b"first", b"second"]


def test_whole_log_is_checked_with_unreadable_checkpoint(tmp_path: Path) -> None:
    broker = started(tmp_path)
    log = written(broker, b"first", b"second")
    log.flush()
    broker.logs.checkpoint()
    broker.logs.release()
    (tmp_path / "d0" / "recovery-point-offset-checkpoint").write_text("0\n1\nnonsense\n")
    damage(log, b"second")
    assert values_after_start(tmp_path) == [b"first"]


def test_log_without_recovery_point_is_checked_from_its_first_segment(tmp_path: Path) -> None:
    broker = started(tmp_path)
    log = written(broker, b"first")
    log.roll()
    written(broker, b"second")
    broker.logs.release()
    damage(log, b"first")
    assert values_after_start(tmp_path) == []


@pytest.mark.parametrize("clean", [True, False])
def test_segments_before_the_recovery_point_are_not_read(tmp_path: Path, clean: bool) -> None:
    broker = started(tmp_path)
    log = written(broker, b"first")
    log.roll()
    written(broker, b"second")
    log.flush()
    broker.logs.checkpoint()
    if clean:
        broker.logs.close()
    else:
        broker.logs.release()
    damage(log, b"first")
    assert values_after_start(tmp_path) == [b"firs!", b"second"]


def test_unfinished_copy_is_checked_after_an_unclean_stop(tmp_path: Path) -> None:
    broker = Broker(tmp_path, dirs=2, config=CONFIG).started()
    written(broker, b"first", b"second")
    home = broker.logs.directory_of(T0)
    (target,) = (each for each in broker.logs.directories if each is not home)
    broker.logs.begin_move(T0, target)
    future = target.futures[T0]
    future.append_as_follower(batch_of(b"first"))
    future.append_as_follower(batch_of(b"second", offset=1))
    broker.logs.release()
    damage(future, b"second")
    again = Broker(tmp_path, dirs=2, config=CONFIG).started()
    (found,) = (each.futures[T0] for each in again.logs.directories if T0 in each.futures)
    assert values_of(found) == [b"first"]
    again.logs.release()


def test_clean_stop_marker_is_written_after_everything_is_synced(tmp_path: Path) -> None:
    """A marker that survives a power loss without the records would hide what is missing."""
    broker = started(tmp_path)
    log = written(broker, b"first")
    done: list[tuple[str, str]] = []
    broker.disk.fault = lambda name, path: done.append((name, path))
    broker.logs.close()
    marked = done.index(("write_atomically", str(tmp_path / "d0" / ".kafka_cleanshutdown")))
    assert done.index(("sync", log.segments[0].path)) < marked
    written_down = [path for name, path in done[:marked] if name == "write_atomically"]
    assert str(tmp_path / "d0" / "recovery-point-offset-checkpoint") in written_down


def test_log_is_not_synced_when_closed_without_durable(tmp_path: Path) -> None:
    broker = started(tmp_path)
    log = written(broker, b"first")
    done: list[str] = []
    broker.disk.fault = lambda name, _: done.append(name)
    log.close(durable=False)
    assert "sync" not in done
    broker.logs.release()


def test_epochs_missing_in_checkpoint_are_restored_from_the_batches(tmp_path: Path) -> None:
    """The epoch checkpoint is not synced: after a power loss it may be older than the log."""
    log = open_log(tmp_path, CONFIG)
    log.append_as_leader(batch_of(b"a"), 0, 0)
    older = (tmp_path / "leader-epoch-checkpoint").read_bytes()
    log.append_as_leader(batch_of(b"b"), 3, 0)
    log.release()
    (tmp_path / "leader-epoch-checkpoint").write_bytes(older)
    again = open_log(tmp_path, CONFIG, recovery_point=0)
    assert again.epochs.entries == (EpochStart(0, 0), EpochStart(3, 1))
    assert (tmp_path / "leader-epoch-checkpoint").read_bytes() != older
    again.release()


def test_records_that_replace_truncated_ones_count_as_not_synced(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    for _ in range(5):
        log.append_as_leader(batch_of(b"v"), 0, 0)
    log.flush()
    log.truncate_to(3)
    log.append_as_leader(batch_of(b"w", b"x", b"y"), 0, 0)
    assert log.recovery_point == 3
    log.release()
