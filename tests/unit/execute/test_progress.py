"""Progress: bytes, rates, and the reason for each stall."""

from __future__ import annotations

from dataclasses import replace

import pytest

from restow.client import PartitionReassignment
from restow.execute.progress.observation import Observation
from restow.execute.progress.progress import BrokerPart, DirPart, RunProgress
from restow.execute.progress.stuck import Cause, Stall
from restow.execute.progress.waited import why_nothing_copies
from restow.execute.throttle.throttles import ThrottleRates
from restow.model import ANY_DIR, Copy, LogDir, Partition, Step, TopicPartition
from restow.plan.schedule.traffic import Channel, Way

NAME = TopicPartition("t", 0)
STEP = Step(partition=NAME, before=(1, 2), after=(1, 3), size_bytes=1000)
LIES = {1: "/d", 2: "/d"}


def observation(
    at_s: float,
    copied: int,
    *,
    size: int = 1000,
    alive: frozenset[int] = frozenset({1, 2, 3}),
    leader: int | None = 1,
    isr: tuple[int, ...] = (1, 2),
    dirs: tuple[LogDir, ...] = (LogDir(path="/d", total_bytes=1000, usable_bytes=500),),
) -> Observation:
    return Observation(
        at_s=at_s,
        alive=alive,
        partitions={NAME: Partition(number=0, replicas=(1, 3, 2), isr=isr, leader=leader)},
        moves={NAME: PartitionReassignment(replicas=(1, 3, 2), adding=(3,), removing=(2,))},
        copies={
            NAME: {
                1: Copy(broker=1, log_dir="/d", size_bytes=size),
                3: Copy(broker=3, log_dir="/d", size_bytes=copied, lag_messages=7),
            }
        },
        dirs={3: dirs},
    )


def causes(
    *sights: Observation, throttle: int | None = None, foreign: dict[int, int] | None = None
) -> list[Cause]:
    progress = RunProgress(stall_s=30)
    progress.expect([STEP], LIES)
    for each in sights:
        report = progress.report(each, [STEP], throttle=ThrottleRates(rate=throttle), foreign_rates=foreign)
    return [each.cause for each in report.still]


def test_report_has_bytes_and_rate() -> None:
    progress = RunProgress(stall_s=30)
    progress.expect([STEP], LIES)
    progress.report(observation(0, 0), [STEP])
    report = progress.report(observation(5, 100), [STEP])
    assert (report.done_bytes, report.to_do_bytes, report.rate) == (100, 1000, 20)
    report = progress.report(observation(15, 400), [STEP])
    assert report.rate == 30
    assert report.brokers == (
        BrokerPart(
            broker=1,
            done_bytes=0,
            to_do_bytes=0,
            replicas=0,
            sent_bytes=400,
            to_send_bytes=1000,
            sent_rate=30,
        ),
        BrokerPart(broker=3, done_bytes=400, to_do_bytes=1000, replicas=1, received_rate=30),
    )
    progress.finish(STEP, 19)
    assert progress.report(observation(20, 1000), []).done_bytes == 1000


def test_dropped_steps_do_not_count() -> None:
    progress = RunProgress(stall_s=30)
    progress.expect([STEP], LIES)
    progress.forget([STEP])
    report = progress.report(observation(0, 0), [])
    assert (report.to_do_bytes, report.brokers) == (0, ())


def cluster(
    at_s: float, sizes: dict[TopicPartition, int], copied: dict[tuple[TopicPartition, int], int]
) -> Observation:
    """Return partitions led by broker 1, with the copies on other brokers."""
    return Observation(
        at_s=at_s,
        alive=frozenset(range(1, 9)),
        partitions={
            name: Partition(number=name.partition, replicas=(1, 2), isr=(1, 2), leader=1) for name in sizes
        },
        copies={
            name: {
                1: Copy(broker=1, log_dir="/d", size_bytes=size),
                **{
                    broker: Copy(broker=broker, log_dir="/d", size_bytes=has)
                    for (which, broker), has in copied.items()
                    if which == name
                },
            }
            for name, size in sizes.items()
        },
    )


def test_done_never_exceeds_the_total_while_the_leader_grows() -> None:
    """A replica copies what its leader has when it arrives, not what it had when the plan was made."""
    names = [TopicPartition("t", 0), TopicPartition("t", 1)]
    steps = [Step(partition=n, before=(1, 2), after=(1, 3), size_bytes=1000) for n in names]
    progress = RunProgress(stall_s=30)
    for step in steps:
        progress.expect([step], LIES)
    seen = []
    for second in range(0, 40, 2):
        sizes = dict.fromkeys(names, 1000 + 30 * second)
        first = min(sizes[names[0]], 100 * second)
        seen.append(progress.report(cluster(second, sizes, {(names[0], 3): first}), steps[:1]))
    assert all(each.done_bytes <= each.to_do_bytes for each in seen)
    assert [each.to_do_bytes for each in seen] == [2 * (1000 + 30 * second) for second in range(0, 40, 2)]
    progress.finish(steps[0], 39)
    progress.finish(steps[1], 39)
    end = progress.report(cluster(40, sizes, {(names[0], 3): 2190, (names[1], 3): 2200}), [])
    assert (end.done_bytes, end.to_do_bytes) == (4390, 4390)
    assert progress.copied.busiest() == (Channel(Way.RECEIVED, 3), 4390)


def between_dirs(at_s: float, copied: int | None) -> Observation:
    """Return broker 2 with the replica in /d, and `copied` bytes in /e; None once it is there."""
    there = copied is None
    return replace(
        observation(at_s, 0),
        copies={
            NAME: {
                1: Copy(broker=1, log_dir="/d", size_bytes=5000),
                2: Copy(broker=2, log_dir="/e" if there else "/d", size_bytes=800),
            }
        },
        futures={}
        if there
        else {NAME: {2: Copy(broker=2, log_dir="/e", size_bytes=copied or 0, future=True)}},
    )


def test_replica_that_changes_its_log_dir_counts_with_its_own_size() -> None:
    step = Step(partition=NAME, before=(1, 2), after=(1, 2), size_bytes=5000, log_dirs=(ANY_DIR, "/e"))
    progress = RunProgress(stall_s=30)
    progress.expect([step], LIES)
    progress.report(between_dirs(0, 0), [step])
    report = progress.report(between_dirs(4, 200), [step])
    assert (report.done_bytes, report.to_do_bytes, report.rate) == (200, 800, 50)
    assert report.dirs == (DirPart(broker=2, path="/e", done_bytes=200, to_do_bytes=800, replicas=1),)
    (copying,) = report.copying
    assert (copying.broker, copying.log_dir, copying.behind_bytes) == (2, "/e", 600)
    progress.finish(step, 9)
    report = progress.report(between_dirs(10, None), [])
    assert (report.done_bytes, report.to_do_bytes) == (800, 800)
    assert report.dirs == (DirPart(broker=2, path="/e", done_bytes=800, to_do_bytes=800, replicas=0),)


def test_chain_of_steps_counts_a_change_of_log_dir_once() -> None:
    first = Step(
        partition=NAME, before=(1, 2), after=(1, 2, 3), size_bytes=100, log_dirs=(ANY_DIR, "/e", "/f")
    )
    second = Step(partition=NAME, before=(1, 2, 3), after=(2, 3), size_bytes=100, log_dirs=("/e", "/f"))
    progress = RunProgress(stall_s=30)
    progress.expect([first, second], LIES)
    empty = Observation(at_s=0)
    assert progress.report(empty, []).to_do_bytes == 200, "to broker 3, and within broker 2"


def test_replica_with_progress_is_not_stalled() -> None:
    assert causes(*(observation(second, second) for second in range(0, 100, 10))) == []


@pytest.mark.parametrize(
    ("cause", "last"),
    [
        (Cause.DEAD_TARGET, observation(1, 0, alive=frozenset({1, 2}))),
        (Cause.LEADER_GONE, observation(1, 0, leader=None)),
        (Cause.LEADER_GONE, observation(1, 0, leader=9)),
        (Cause.FULL_DIR, observation(1, 0, dirs=(LogDir(path="/d", total_bytes=1000, usable_bytes=1),))),
        (Cause.FULL_DIR, observation(1, 0, dirs=(LogDir(path="/d", failed=True),))),
    ],
)
def test_stall_with_an_evident_cause_is_seen_at_once(cause: Cause, last: Observation) -> None:
    assert causes(observation(0, 0), last) == [cause]


def test_vanished_replica_was_in_the_failed_log_dir() -> None:
    dirs = (LogDir(path="/d", failed=True), LogDir(path="/e", total_bytes=1000, usable_bytes=500))
    copied = observation(0, 5)
    gone = replace(observation(1, 0, dirs=dirs), copies={NAME: {1: copied.copies[NAME][1]}})
    assert causes(copied, gone) == [Cause.FULL_DIR]
    assert causes(replace(gone, at_s=0), gone) == [], "it may yet come into the other one"
    assert causes(gone, replace(gone, at_s=40)) == [Cause.FULL_DIR]


def test_replica_without_progress_for_long_is_stalled() -> None:
    assert causes(observation(0, 5), observation(29, 5)) == []
    assert causes(observation(0, 5), observation(31, 5)) == [Cause.NO_PROGRESS]
    assert causes(observation(0, 5), observation(20, 6), observation(45, 6)) == []


def test_throttle_below_the_produced_bytes_is_a_cause() -> None:
    grows = [observation(second, second * 10, size=1000 + second * 20) for second in range(0, 60, 10)]
    assert causes(*grows, throttle=10) == [Cause.THROTTLE]
    assert causes(*grows) == []


def test_slow_replica_counts_as_one_that_moves() -> None:
    """Its bytes come, though too slowly: nobody may say that nothing could move."""
    progress = RunProgress(stall_s=30)
    progress.expect([STEP], LIES)
    for second in range(0, 60, 10):
        seen = observation(second, second * 10, size=1000 + second * 20)
        report = progress.report(seen, [STEP], throttle=ThrottleRates(rate=10))
    assert [each.stall for each in report.still] == [Stall.SLOW]
    assert why_nothing_copies(report) is None


def test_time_without_a_byte_begins_when_a_dead_broker_is_back() -> None:
    away = frozenset({1, 2})
    dead = [replace(observation(second, 0, alive=away), dirs={}) for second in (10, 50, 100)]
    assert causes(observation(0, 5), *dead, observation(101, 5)) == []
    assert causes(observation(0, 5), *dead, observation(131, 5)) == [Cause.NO_PROGRESS]


@pytest.mark.parametrize(
    ("alive", "at_s", "told"),
    [
        (frozenset({1, 2, 3}), 29, []),
        (
            frozenset({1, 2, 3}),
            31,
            [
                "t-0 to 1: no progress: all is copied, and the replica on broker 1 is not in sync for 31 s",
            ],
        ),
        (frozenset({2, 3}), 1, ["t-0 to 1: dead target: broker 1 is not there"]),
    ],
)
def test_copied_step_waits_for_a_replica_that_stays(
    alive: frozenset[int], at_s: float, told: list[str]
) -> None:
    """Kafka ends a move when all replicas that it leaves are in sync."""
    progress = RunProgress(stall_s=30)
    progress.expect([STEP], LIES)
    copied = [observation(second, 1000, alive=alive, leader=2, isr=(2, 3)) for second in (0, at_s)]
    reports = [progress.report(each, [STEP]) for each in copied]
    assert [str(each) for each in reports[-1].still] == told


def test_throttle_of_another_tool_is_named() -> None:
    stands = [observation(0, 5), observation(31, 5)]
    assert causes(*stands, foreign={3: 10}) == [Cause.QUOTA]


def test_replica_in_sync_is_not_stalled() -> None:
    assert causes(observation(0, 5), observation(100, 5, isr=(1, 2, 3))) == []
