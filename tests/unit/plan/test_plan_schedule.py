"""Waves: every limit holds at every moment, every step gets its turn, and impossible ones are left out."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.model import (
    Copy,
    Limits,
    Move,
    Snapshot,
    Step,
    TopicPartition,
)
from restow.plan.schedule.admission import Admission
from restow.plan.schedule.log_dirs import LogDirSpace
from restow.plan.schedule.schedule import Schedule, steps_of, waves_of
from tests.unit.plan.clusters import GB
from tests.unit.plan.clusters import snapshot as snapshot_of


def cluster(
    assignments: list[tuple[int, ...]],
    *,
    brokers: int = 6,
    size: int = GB,
    total: int | None = 100 * GB,
    used: dict[int, int] | None = None,
    dirs: tuple[str, ...] = ("/d",),
) -> Snapshot:
    return snapshot_of(
        {"t": assignments}, brokers=range(brokers), size=size, total=total, used=used, dirs=dirs
    )


def moves(snapshot: Snapshot, targets: list[tuple[int, ...]]) -> list[Move]:
    return [
        Move(partition=name, before=partition.replicas, after=target, size_bytes=partition.size_bytes)
        for (name, partition), target in zip(snapshot.all_partitions(), targets, strict=True)
    ]


def test_broker_receives_and_sends_only_so_many_at_once() -> None:
    snapshot = cluster([(0, 1)] * 12)
    waves = waves_of(moves(snapshot, [(0, 2)] * 12), snapshot, Limits(moves_in=5, moves_out=3))
    assert [len(wave) for wave in waves] == [3, 3, 3, 3]
    waves = waves_of(moves(snapshot, [(0, 2)] * 12), snapshot, Limits(moves_in=2, moves_out=30))
    assert [len(wave) for wave in waves] == [2] * 6


def test_step_to_a_full_disk_waits_until_something_has_left_it() -> None:
    """Broker 1 has room for one copy; the opposite move frees it."""
    snapshot = cluster([(0,), (1,)], size=10 * GB, total=100 * GB, used={0: 80 * GB, 1: 85 * GB})
    waves = waves_of(moves(snapshot, [(1,), (0,)]), snapshot, Limits(fill=0.9))
    assert [[step.partition.partition for step in wave] for wave in waves] == [[1], [0]]


def test_step_that_never_fits_is_left_out_with_the_reason() -> None:
    snapshot = cluster([(0,)], size=50 * GB, used={1: 60 * GB})
    wanted = moves(snapshot, [(1,)])
    assert waves_of(wanted, snapshot, Limits()) == ()
    schedule = Schedule([steps_of(each) for each in wanted], Admission(snapshot, Limits()))
    assert schedule.admit() == []
    assert schedule.why_stuck() == "t-0: /d of broker 1 would be filled past 90%"


def test_unknown_sizes_delay_nothing() -> None:
    snapshot = cluster([(0,)], size=50 * GB, total=None)
    assert len(waves_of(moves(snapshot, [(1,)]), snapshot, Limits())) == 1


def test_move_between_log_dirs_is_a_copy_into_one() -> None:
    snapshot = cluster([(0,)], dirs=("/d", "/e"))
    step = steps_of(
        Move(partition=TopicPartition("t", 0), before=(0,), after=(0,), size_bytes=GB, log_dirs=("/e",))
    )[0]
    admission = Admission(snapshot, Limits(moves_in=1))
    assert dict(admission.log_dirs.arrivals(step)) == {0: "/e"}
    admission.begin(step)
    assert admission.busy(admission.route(step)) == "broker 0 is receiving 1 replicas"
    admission.finish(step)
    assert dict(admission.log_dirs.arrivals(step)) == {}


def test_cancelled_step_leaves_no_trace() -> None:
    snapshot = cluster([(0,)], size=50 * GB)
    step = steps_of(moves(snapshot, [(1,)])[0])[0]
    admission = Admission(snapshot, Limits(moves_in=1))
    for _ in range(3):
        assert admission.hindrance(step) is None
        admission.begin(step)
        admission.give_up(step)


@pytest.mark.parametrize("end", ["finish", "give_up"])
def test_step_that_has_stopped_copying_blocks_none_but_keeps_its_space(end: str) -> None:
    snapshot = cluster([(0, 1)] * 3, size=30 * GB, total=100 * GB, used={2: 40 * GB})
    first, second, third = (steps_of(each)[0] for each in moves(snapshot, [(0, 2)] * 3))
    admission = Admission(snapshot, Limits(moves_in=1))
    admission.begin(first)
    assert admission.hindrance(second) == "broker 2 is receiving 1 replicas"
    for _ in range(2):
        admission.let_go(first)
    assert admission.hindrance(second) == "/d of broker 2 would be filled past 90%"
    getattr(admission, end)(first)
    assert (admission.hindrance(second) is None) == (end == "give_up")
    if end == "give_up":
        admission.begin(second)
        assert admission.hindrance(third) == "broker 2 is receiving 1 replicas"


@pytest.mark.parametrize("end", ["finish", "give_up"])
def test_blocked_step_gives_up_its_places_but_keeps_its_space(end: str) -> None:
    snapshot = cluster([(0, 1)] * 3, size=30 * GB, total=100 * GB, used={2: 40 * GB})
    first, second, third = (steps_of(each)[0] for each in moves(snapshot, [(0, 2), (0, 3), (0, 2)]))
    admission = Admission(snapshot, Limits(moves_in=1, moves_out=1))
    admission.begin(first)
    assert admission.hindrance(second) == "broker 0 is sending 1 replicas"
    assert [admission.block(first), admission.block(first)] == [True, False]
    assert admission.idle
    assert admission.hindrance(third) == "/d of broker 2 would be filled past 90%"
    admission.see({first.partition: snapshot.topics[0].partitions[0]._replace(leader=1)})
    admission.begin(second)
    assert [admission.unblock(first), admission.unblock(first)] == [True, False]
    assert [admission.busy(admission.route(each)) is None for each in (second, third)] == [False, False]
    getattr(admission, end)(first)
    admission.finish(second)
    assert (admission.hindrance(third) is None) == (end == "give_up")


def test_step_that_ends_while_it_is_blocked_leaves_no_count_behind() -> None:
    snapshot = cluster([(0, 1)] * 2)
    first, second = (steps_of(each)[0] for each in moves(snapshot, [(0, 2)] * 2))
    admission = Admission(snapshot, Limits(moves_in=1, moves_out=1))
    for end in (admission.give_up, admission.finish):
        admission.begin(first)
        admission.block(first)
        admission.fork().finish(first)
        end(first)
        assert admission.hindrance(second) is None
    admission.begin(second)
    assert admission.busy(admission.route(first)) == "broker 2 is receiving 1 replicas"


def test_step_already_under_way_is_counted() -> None:
    snapshot = cluster([(0, 1)] * 3)
    first, second, third = (steps_of(each)[0] for each in moves(snapshot, [(0, 2)] * 3))
    schedule = Schedule([[first], [second], [third]], Admission(snapshot, Limits(moves_in=2)))
    schedule.adopt(second)
    assert schedule.admit() == [first]
    schedule.drop(third)
    schedule.finish(second)
    assert schedule.admit() == []
    assert schedule.left == 1


def test_steps_count_for_the_leaders_that_partitions_have_now() -> None:
    """Partition 0 is under way, and two wait, when broker 1 becomes the leader of the first two."""
    snapshot = cluster([(0, 1)] * 3)
    first, second, third = (
        steps_of(each)[0] for each in moves(snapshot, [(0, 1, each) for each in (2, 3, 4)])
    )
    schedule = Schedule([[first], [second], [third]], Admission(snapshot, Limits(moves_out=1)))
    assert schedule.admit() == [first]
    schedule.see(
        {
            name: partition._replace(leader=0 if name == third.partition else 1)
            for name, partition in snapshot.all_partitions()
        }
    )
    assert schedule.admit() == [third]
    schedule.finish(third)
    assert schedule.admit() == []
    schedule.finish(first)
    assert schedule.admit() == [second]


def test_step_may_be_held_for_a_temporary_reason() -> None:
    snapshot = cluster([(0, 1)])
    reasons: list[str | None] = ["broker 2 is not there", None]
    admission = Admission(snapshot, Limits(), lambda _: reasons[0])
    schedule = Schedule([steps_of(each) for each in moves(snapshot, [(0, 2)])], admission)
    assert schedule.admit() == []
    assert schedule.why_stuck() == "t-0: broker 2 is not there"
    reasons.pop(0)
    assert schedule.why_stuck() is None
    assert len(schedule.admit()) == 1


replicas = st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True).map(tuple)


@given(
    st.lists(st.tuples(replicas, replicas), min_size=1, max_size=25),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 2),
)
def test_every_limit_holds_whenever_a_step_ends(
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]], moves_in: int, moves_out: int, extra: int
) -> None:
    snapshot = cluster([before for before, _ in pairs])
    limits = Limits(moves_in=moves_in, moves_out=moves_out, extra_copies=extra)
    wanted = moves(snapshot, [after for _, after in pairs])
    schedule = Schedule([steps_of(move, extra) for move in wanted], Admission(snapshot, limits))
    now = {move.partition: move.before for move in wanted}
    running = schedule.admit()
    while running:
        into = Counter(broker for step in running for broker in step.adding)
        out_of = Counter(now_leader(snapshot, step.partition) for step in running if step.adding)
        assert max(into.values(), default=0) <= moves_in
        assert max(out_of.values(), default=0) <= moves_out
        assert len({step.partition for step in running}) == len(running)
        ended = running.pop(0)
        assert now[ended.partition] == ended.before
        now[ended.partition] = ended.after
        schedule.finish(ended)
        running += schedule.admit()
    assert schedule.left == 0
    assert now == {move.partition: move.after for move in wanted}


@given(
    st.lists(st.tuples(replicas, replicas), min_size=1, max_size=25),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 2),
)
def test_steps_begin_in_turn_as_far_as_they_may(
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]], moves_in: int, moves_out: int, extra: int
) -> None:
    """Lines and gates only save time: the result is as if every waiting step were asked in turn."""
    snapshot = cluster([before for before, _ in pairs])
    limits = Limits(moves_in=moves_in, moves_out=moves_out, extra_copies=extra)
    left = [deque(steps_of(move, extra)) for move in moves(snapshot, [after for _, after in pairs])]
    schedule, asked = Schedule(left, Admission(snapshot, limits)), Admission(snapshot, limits)
    running: list[Step] = []
    while True:
        begun = schedule.admit()
        expected = []
        for steps in left:
            if steps and asked.hindrance(steps[0]) is None:
                asked.begin(steps[0])
                expected.append(steps[0])
        assert begun == expected
        running += begun
        if not running:
            break
        half = (len(running) + 1) // 2
        for ended in running[:half]:
            schedule.finish(ended)
            asked.finish(ended)
            left[ended.partition.partition].popleft()
        del running[:half]
    assert not any(left)


def now_leader(snapshot: Snapshot, name: TopicPartition) -> int | None:
    partition = snapshot.partition(name)
    assert partition is not None
    return partition.leader


def test_replica_that_changes_its_log_dir_is_removed_from_the_present_one() -> None:
    """A future replica takes no part in it: its log dir is not where the replica is."""
    snapshot = cluster([(0,)], size=60 * GB, used={0: 60 * GB}, dirs=("/d", "/e"))
    topic = snapshot.topics[0]
    future = Copy(broker=0, log_dir="/e", size_bytes=GB, future=True)
    moving = topic.partitions[0]._replace(copies=(*topic.partitions[0].copies, future))
    snapshot = replace(snapshot, topics=(replace(topic, partitions=(moving,)),))
    space = LogDirSpace(snapshot, 0.9)
    space.remove(TopicPartition("t", 0), 0)
    assert {path: use.used_bytes for path, use in space.of(0).items()} == {"/d": 0, "/e": 60 * GB}


def test_new_replica_goes_to_no_full_log_dir_while_the_size_of_another_is_unknown() -> None:
    snapshot = cluster([(1,)], size=20 * GB, used={0: 80 * GB}, dirs=("/d", "/e"))
    full, other = snapshot.brokers[0].log_dirs
    unknown = replace(other, total_bytes=None, usable_bytes=None)
    brokers = (replace(snapshot.brokers[0], log_dirs=(full, unknown)), *snapshot.brokers[1:])
    space = LogDirSpace(replace(snapshot, brokers=brokers), 0.9)
    assert space.place(0, 20 * GB) == "/e"
