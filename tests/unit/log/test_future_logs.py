"""Logs that move to another log dir: copied during changes, swapped, crashed at every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restow.cluster.log import LogConfig
from restow.cluster.log.checkpoint import HIGH_WATERMARKS, RECOVERY_POINTS
from restow.cluster.log.errors import DiskFailure
from restow.cluster.log.future_copy import align, copy_some
from restow.cluster.log.futures import MoveStep
from restow.model import TopicPartition
from tests.unit.log.making import SMALL, Crash, batch_of, full_under, keyed, open_log, read_all, values_of
from tests.unit.log.test_log_manager import Broker

if TYPE_CHECKING:
    from pathlib import Path

    from restow.cluster.log import PartitionLog

T0 = TopicPartition("t", 0)
ALL = 1 << 20


def filled(broker: Broker, batches: int = 20, size: int = 100) -> PartitionLog:
    log = broker.logs.get_or_create(T0, topic_id="i" * 22)
    for number in range(batches):
        log.append_as_leader(batch_of(b"%03d" % number + bytes(size)), number // 5, 0)
    log.high_watermark = log.end_offset
    return log


def copy_all(broker: Broker) -> None:
    """Copy in small steps, like the broker's task."""
    present, future = broker.logs.get(T0), broker.logs.futures.get(T0)
    assert present is not None
    assert future is not None
    while copy_some(present, future, 300):
        broker.logs.futures.step(MoveStep.L2)
    assert future.end_offset == present.end_offset


def begin(broker: Broker) -> None:
    home = broker.logs.directory_of(T0)
    target = next(each for each in broker.logs.directories if each is not home)
    broker.logs.begin_move(T0, target)


def move(broker: Broker) -> PartitionLog:
    begin(broker)
    copy_all(broker)
    return broker.logs.replace_with_future(T0)


def folders(tmp_path: Path) -> list[str]:
    return sorted(f"{each.parent.name}/{each.name}" for each in tmp_path.glob("d*/*") if each.is_dir())


def everything(log: PartitionLog) -> tuple[Any, ...]:
    return (
        log.start_offset,
        log.end_offset,
        log.high_watermark,
        log.epochs.entries,
        log.producers.encode(),
        read_all(log),
    )


def test_moved_log_keeps_records_epochs_and_producers(tmp_path: Path) -> None:
    broker = Broker(tmp_path).started()
    log = filled(broker)
    log.append_as_leader(batch_of(b"x", producer_id=7, producer_epoch=1, base_sequence=0), 9, 0)
    log.high_watermark = log.end_offset
    log.delete_records_before(7)
    log.begin_epoch(11)
    known = everything(log)
    begin(broker)
    copy_all(broker)
    moved = broker.logs.replace_with_future(T0)
    assert log.closed
    assert everything(moved) == known
    assert broker.logs.get(T0) is moved
    assert broker.logs.directory_of(T0).path == broker.paths[1]
    broker.tend()
    assert folders(tmp_path) == ["d1/t-0"]
    moved.append_as_leader(batch_of(b"y"), 12, 0)
    broker.logs.release()
    again = Broker(tmp_path).started().logs.get(T0)
    assert again is not None
    assert values_of(again)[-1] == b"y"
    assert again.start_offset == 7


def test_move_removes_checkpoint_entries_of_the_old_log_dir(tmp_path: Path) -> None:
    """Kafka left the old entry behind, and found it when the log came back (KAFKA-8362)."""
    broker = Broker(tmp_path).started()
    filled(broker)
    broker.logs.checkpoint()
    begin(broker)
    copy_all(broker)
    broker.logs.replace_with_future(T0)
    for name in (HIGH_WATERMARKS, RECOVERY_POINTS):
        assert b"t 0" not in (tmp_path / "d0" / name).read_bytes()
    assert b"t 0 20" in (tmp_path / "d1" / HIGH_WATERMARKS).read_bytes()
    broker.logs.release()


def test_moved_log_keeps_its_cleaner_offset(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=300, cleanup_compact=True, cleanup_delete=False)
    broker = Broker(tmp_path, config=config).started()
    log = broker.logs.get_or_create(T0)
    for number in range(12):
        log.append_as_leader(keyed((f"k{number % 3}", str(number))), 0, 0)
    log.high_watermark = log.end_offset
    broker.now += 2000
    broker.tend()
    dirty = broker.logs.directories[0].first_dirty[T0]
    assert dirty > 0
    begin(broker)
    copy_all(broker)
    moved = broker.logs.replace_with_future(T0)
    assert values_of(moved)[-1] == b"11"
    assert broker.logs.directories[1].first_dirty == {T0: dirty}
    assert broker.logs.directories[0].first_dirty == {}
    broker.logs.release()


@pytest.mark.parametrize("step", list(MoveStep))
@pytest.mark.parametrize("clean", [True, False])
def test_move_continues_after_a_crash_at_any_step(tmp_path: Path, step: MoveStep, clean: bool) -> None:
    broker = Broker(tmp_path).started()
    values = values_of(filled(broker))

    def die(reached: MoveStep) -> None:
        if reached is step:
            raise Crash

    broker.logs.futures.step = die
    with pytest.raises(Crash):
        move(broker)
    if clean:
        broker.logs.checkpoint()
    broker.logs.release()
    again = Broker(tmp_path).started()
    found = again.logs.get(T0)
    assert found is not None
    assert values_of(found) == values
    assert again.logs.topic_id_of(T0) == "i" * 22
    assert sum(T0 in each.logs for each in again.logs.directories) == 1
    if step in (MoveStep.L1, MoveStep.L2, MoveStep.L3):
        assert again.logs.futures.partitions == (T0,)
        found.append_as_leader(batch_of(b"meanwhile"), 9, 0)
        copy_all(again)
        assert values_of(again.logs.replace_with_future(T0)) == [*values, b"meanwhile"]
    again.tend()
    home = again.logs.directory_of(T0)
    assert folders(tmp_path) == [f"{home.path.rpartition('/')[2]}/t-0"]
    assert again.logs.futures.partitions == ()
    again.logs.release()


def test_torn_copy_is_truncated_and_continues(tmp_path: Path) -> None:
    broker = Broker(tmp_path).started()
    values = values_of(filled(broker))
    begin(broker)
    copy_all(broker)
    broker.logs.release()
    last = max((tmp_path / "d1").glob("*-future/*.log"))
    last.write_bytes(last.read_bytes()[:-3])
    again = Broker(tmp_path).started()
    future = again.logs.futures.get(T0)
    assert future is not None
    assert future.end_offset < 20
    copy_all(again)
    assert values_of(again.logs.replace_with_future(T0)) == values
    again.logs.release()


def test_cancelled_move_removes_the_copy(tmp_path: Path) -> None:
    broker = Broker(tmp_path).started()
    log = filled(broker)
    begin(broker)
    copy_some(log, broker.logs.directories[1].futures[T0], 300)
    broker.logs.futures.drop(T0)
    assert broker.logs.futures.partitions == ()
    broker.tend()
    assert folders(tmp_path) == ["d0/t-0"]
    assert broker.logs.get(T0) is log
    begin(broker)
    broker.logs.delete(T0)
    broker.tend()
    assert folders(tmp_path) == []
    broker.logs.release()


def test_log_stays_when_the_new_disk_fails(tmp_path: Path) -> None:
    broker = Broker(tmp_path).started()
    log = filled(broker)
    begin(broker)
    broker.disk.fault = full_under(broker.paths[1])
    with pytest.raises(DiskFailure):
        copy_all(broker)
    assert broker.failed == [(broker.paths[1], ())]
    assert broker.logs.get(T0) is log
    assert broker.logs.futures.partitions == ()
    log.append_as_leader(batch_of(b"on"), 9, 0)
    broker.logs.release()


def test_log_stays_when_the_new_disk_fails_in_the_swap(tmp_path: Path) -> None:
    broker = Broker(tmp_path).started()
    log = filled(broker)
    begin(broker)
    copy_all(broker)

    def fault(name: str, path: str) -> None:
        if name == "rename" and path.startswith(broker.paths[1]):
            raise OSError("gone")

    broker.disk.fault = fault
    with pytest.raises(DiskFailure):
        broker.logs.replace_with_future(T0)
    assert broker.logs.get(T0) is log
    assert not log.closed
    assert broker.failed == [(broker.paths[1], ())]
    broker.logs.release()


def test_log_has_moved_when_the_old_disk_fails_in_the_swap(tmp_path: Path) -> None:
    """The log dir fails after the move was accepted (KAFKA-16297)."""
    broker = Broker(tmp_path).started()
    values = values_of(filled(broker))
    begin(broker)
    copy_all(broker)
    moved_to = broker.logs.directories[1]
    broker.disk.fault = lambda name, path: (
        full_under(broker.paths[0])(name, path) if name == "rename" else None
    )
    moved = broker.logs.replace_with_future(T0)
    assert broker.logs.directory_of(T0) is moved_to
    assert values_of(moved) == values
    assert broker.failed == [(broker.paths[0], ())]
    moved.append_as_leader(batch_of(b"on"), 9, 0)
    broker.logs.release()
    again = Broker(tmp_path).started()
    found = again.logs.get(T0)
    assert found is not None
    assert values_of(found) == [*values, b"on"]
    again.tend()
    assert folders(tmp_path) == ["d1/t-0"]
    again.logs.release()


def test_copy_of_an_earlier_topic_is_dropped(tmp_path: Path) -> None:
    """The topic was deleted and created again while the copy's disk was away (KAFKA-16082)."""
    broker = Broker(tmp_path).started()
    filled(broker)
    begin(broker)
    copy_all(broker)
    broker.logs.release()
    for file in (tmp_path / "d0" / "t-0").iterdir():
        if file.name == "partition.metadata":
            file.write_text("version: 0\ntopic_id: " + "j" * 22)
    again = Broker(tmp_path).started()
    assert again.logs.topic_id_of(T0) == "j" * 22
    assert again.logs.futures.partitions == ()
    again.logs.release()


def test_copy_starts_in_the_middle_of_a_batch_after_record_deletion(tmp_path: Path) -> None:
    broker = Broker(tmp_path).started()
    log = broker.logs.get_or_create(T0)
    log.append_as_leader(batch_of(b"a", b"b", b"c", b"d"), 0, 0)
    log.append_as_leader(batch_of(b"e"), 0, 0)
    log.high_watermark = log.end_offset
    log.delete_records_before(2)
    begin(broker)
    copy_all(broker)
    moved = broker.logs.replace_with_future(T0)
    assert moved.start_offset == 2
    assert values_of(moved) == [b"c", b"d", b"e"]
    broker.logs.release()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4)),
        st.tuples(st.just("append"), st.integers(1, 4)),
        st.tuples(st.just("lead"), st.just(0)),
        st.tuples(st.just("cut"), st.integers(0, 12)),
        st.tuples(st.just("delete"), st.integers(0, 12)),
        st.tuples(st.just("copy"), st.integers(1, 700)),
        st.tuples(st.just("copy"), st.integers(1, 700)),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(STEPS)
def test_copy_becomes_equal_to_the_log_after_any_changes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """Truncate like a follower, after which another leader's epoch continues (KAFKA-8002)."""
    path = tmp_path_factory.mktemp("logs")
    present, future = open_log(path / "present"), open_log(path / "future", fresh=True)
    epoch = written = 0
    for what, number in steps:
        if what == "append":
            written += 1
            values = [f"{written}.{each}".encode() for each in range(number)]
            present.append_as_leader(batch_of(*values), epoch, 0)
        elif what == "lead":
            epoch += 1
            present.begin_epoch(epoch)
        elif what == "cut":
            present.truncate_to(max(present.end_offset - number, present.start_offset))
            epoch += 1
        elif what == "delete":
            present.high_watermark = present.end_offset
            present.delete_records_before(min(present.start_offset + number, present.end_offset))
        else:
            copy_some(present, future, number)
            assert future.end_offset <= present.end_offset
            assert future.start_offset >= present.start_offset
    while copy_some(present, future, ALL):
        pass
    align(present, future)
    assert (future.start_offset, future.end_offset) == (present.start_offset, present.end_offset)
    assert read_all(future) == read_all(present)
    assert future.config is SMALL
    present.release()
    future.release()
