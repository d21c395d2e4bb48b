"""Progress: bytes, rates, an estimate as a range, and a name for whatever stands still."""

from __future__ import annotations

from dataclasses import replace

import pytest

from restow.client import MoveUnderWay
from restow.execute.progress import Progress, eta_of
from restow.execute.sight import Sight
from restow.execute.stillness import Cause
from restow.model import Copy, LogDir, Partition, Step, TopicPartition

NAME = TopicPartition("t", 0)
STEP = Step(partition=NAME, before=(1, 2), after=(1, 3), size_bytes=1000)


def sight(
    at_s: float,
    copied: int,
    *,
    size: int = 1000,
    alive: frozenset[int] = frozenset({1, 2, 3}),
    leader: int | None = 1,
    isr: tuple[int, ...] = (1, 2),
    dirs: tuple[LogDir, ...] = (LogDir(path="/d", total_bytes=1000, usable_bytes=500),),
) -> Sight:
    return Sight(
        at_s=at_s,
        alive=alive,
        partitions={NAME: Partition(number=0, replicas=(1, 3, 2), isr=isr, leader=leader)},
        moves={NAME: MoveUnderWay(replicas=(1, 3, 2), adding=(3,), removing=(2,))},
        copies={
            NAME: {
                1: Copy(broker=1, log_dir="/d", size_bytes=size),
                3: Copy(broker=3, log_dir="/d", size_bytes=copied, lag_messages=7),
            }
        },
        dirs={3: dirs},
    )


def causes(*sights: Sight, throttle: int | None = None, foreign: dict[int, int] | None = None) -> list[Cause]:
    progress = Progress(stall_s=30)
    progress.expect([STEP])
    for each in sights:
        report = progress.report(each, [STEP], throttle=throttle, foreign_rates=foreign)
    return [each.cause for each in report.still]


def test_bytes_rate_and_estimate() -> None:
    progress = Progress(stall_s=30)
    progress.expect([STEP])
    progress.report(sight(0, 0), [STEP])
    report = progress.report(sight(5, 100), [STEP])
    assert (report.done_bytes, report.to_do_bytes, report.rate) == (100, 1000, 20)
    assert report.eta is not None
    assert report.eta.soonest_s == report.eta.latest_s == 45
    report = progress.report(sight(15, 400), [STEP])
    assert report.rate == 30
    assert report.eta is not None
    assert report.eta.soonest_s < report.eta.latest_s
    (broker,) = report.brokers
    assert (broker.broker, broker.done_bytes, broker.to_do_bytes, broker.replicas) == (3, 400, 1000, 1)
    progress.finish(STEP)
    assert progress.report(sight(20, 1000), []).done_bytes == 1000


def test_what_is_dropped_is_not_to_be_done() -> None:
    progress = Progress(stall_s=30)
    progress.expect([STEP])
    progress.forget([STEP])
    report = progress.report(sight(0, 0), [])
    assert (report.to_do_bytes, report.brokers) == (0, ())


def test_no_rate_no_estimate() -> None:
    assert eta_of(100, []) is None


def test_what_gets_on_is_not_still() -> None:
    assert causes(*(sight(second, second) for second in range(0, 100, 10))) == []


@pytest.mark.parametrize(
    ("cause", "last"),
    [
        (Cause.DEAD_TARGET, sight(1, 0, alive=frozenset({1, 2}))),
        (Cause.LEADER_GONE, sight(1, 0, leader=None)),
        (Cause.LEADER_GONE, sight(1, 0, leader=9)),
        (Cause.FULL_DIR, sight(1, 0, dirs=(LogDir(path="/d", total_bytes=1000, usable_bytes=1),))),
        (Cause.FULL_DIR, sight(1, 0, dirs=(LogDir(path="/d", failed=True),))),
    ],
)
def test_what_is_seen_at_once(cause: Cause, last: Sight) -> None:
    assert causes(sight(0, 0), last) == [cause]


def test_a_replica_that_vanished_lay_in_the_directory_that_failed() -> None:
    dirs = (LogDir(path="/d", failed=True), LogDir(path="/e", total_bytes=1000, usable_bytes=500))
    copied = sight(0, 5)
    gone = replace(sight(1, 0, dirs=dirs), copies={NAME: {1: copied.copies[NAME][1]}})
    assert causes(copied, gone) == [Cause.FULL_DIR]
    assert causes(replace(gone, at_s=0), gone) == [], "it may yet come into the other one"
    assert causes(gone, replace(gone, at_s=40)) == [Cause.FULL_DIR]


def test_no_progress_for_long_enough() -> None:
    assert causes(sight(0, 5), sight(29, 5)) == []
    assert causes(sight(0, 5), sight(31, 5)) == [Cause.NO_PROGRESS]
    assert causes(sight(0, 5), sight(20, 6), sight(45, 6)) == []


def test_a_throttle_below_what_is_written() -> None:
    grows = [sight(second, second * 10, size=1000 + second * 20) for second in range(0, 60, 10)]
    assert causes(*grows, throttle=10) == [Cause.THROTTLE]
    assert causes(*grows) == []


def test_somebody_elses_throttle_is_named() -> None:
    stands = [sight(0, 5), sight(31, 5)]
    assert causes(*stands, foreign={3: 10}) == [Cause.QUOTA]


def test_what_is_in_sync_has_arrived() -> None:
    assert causes(sight(0, 5), sight(100, 5, isr=(1, 2, 3))) == []
