"""A throttle that lets through too little is raised, as much as needed and by a quarter at most."""

from __future__ import annotations

from dataclasses import replace

import pytest

from restow.execute.progress.progress import Copying
from restow.execute.throttle.regulator import ThrottleRegulator
from restow.model import TopicPartition

MB = 10**6
RATE = 20 * MB
FASTER, SLOWER = 0.03, 0.04
"""How far a run of a minute may be off: the loss at its start cannot be made up for at once."""


def copying(copied: float, *, to: int = 3, leader: int = 1, number: int = 0) -> Copying:
    return Copying(
        partition=TopicPartition("t", number),
        broker=to,
        leader=leader,
        size_bytes=10_000 * MB,
        copied_bytes=int(copied),
        in_sync=False,
    )


class Broker:
    """Lets through a share of its rate, all of a period at its end; a burst at first."""

    def __init__(self, share: float, *, burst_s: float = 0.0, period_s: int = 1) -> None:
        self._share, self._period_s = share, period_s
        self.copied = burst_s * RATE
        self._held = 0.0

    def work(self, second: int, factor: float) -> None:
        self._held += RATE * factor * self._share
        if (second + 1) % self._period_s == 0:
            self.copied += self._held
            self._held = 0.0


def run(
    broker: Broker, seconds: int, keeping: ThrottleRegulator | None = None
) -> tuple[ThrottleRegulator, float]:
    """Run with an observation every two seconds; return the average rate over all of it."""
    keeping = keeping or ThrottleRegulator()
    for second in range(seconds):
        if second % 2 == 0:
            keeping.see(float(second), RATE, [copying(broker.copied if second else 0)])
        broker.work(second, keeping.factor)
    return keeping, broker.copied / seconds


@pytest.mark.parametrize("seconds", [60, 120, 600])
@pytest.mark.parametrize("burst_s", [0.0, 2.0, 5.0])
@pytest.mark.parametrize("period_s", [1, 2, 3])
@pytest.mark.parametrize("share", [0.85, 0.9, 0.95, 1.0, 1.1])
def test_average_rate_over_the_run_is_the_requested_rate(
    share: float, period_s: int, burst_s: float, seconds: int
) -> None:
    _, rate = run(Broker(share, burst_s=burst_s, period_s=period_s), seconds)
    assert (1 - SLOWER) * RATE < rate < (1 + FASTER) * RATE


def test_rate_is_hardly_changed_when_the_requested_rate_arrives() -> None:
    keeping, _ = run(Broker(1.0), 60)
    assert keeping.factor == pytest.approx(1.0, abs=0.05)


def test_rate_is_lowered_by_a_quarter_at_most_when_too_much_arrives() -> None:
    keeping, _ = run(Broker(1.5), 20)
    assert keeping.behind_s < -1
    assert keeping.factor == 0.75


def test_copies_between_log_dirs_do_not_count() -> None:
    keeping = ThrottleRegulator()
    for second in range(0, 20, 2):
        within = replace(copying(second * 10 * RATE, number=1), log_dir="/e")
        keeping.see(float(second), RATE, [copying(second * RATE), within])
    assert keeping.behind_s == 0


def test_backlog_is_kept_over_a_break_without_copying() -> None:
    keeping, _ = run(Broker(1.3), 20)
    ahead_s = keeping.behind_s
    keeping.see(20.0, RATE, [])
    settled_s = keeping.behind_s
    keeping.see(500.0, RATE, [copying(0, number=1)])
    assert keeping.behind_s == settled_s < ahead_s + 2


def test_rate_is_not_raised_when_something_else_is_slow() -> None:
    keeping = ThrottleRegulator()
    seen = []
    for second in range(0, 100, 2):
        keeping.see(float(second), RATE, [copying(second * RATE * 0.3)])
        seen.append(keeping.factor)
    assert max(seen) <= 1.25
    assert seen.count(1.0) > len(seen) * 3 / 4


def test_sender_at_its_rate_is_enough() -> None:
    """Two brokers receive half of the rate each from one leader."""
    keeping = ThrottleRegulator()
    for second in range(0, 60, 2):
        half = second * RATE / 2
        keeping.see(float(second), RATE, [copying(half, to=3), copying(half, to=4, number=1)])
    assert keeping.factor == 1.0


@pytest.mark.parametrize("period_s", [4, 6, 8])
def test_bursts_of_two_senders_in_turn_do_not_add_up(period_s: int) -> None:
    """Each sends a period's worth at once, the other half a period later; both keep their rate."""
    keeping, senders = ThrottleRegulator(), (Broker(1.0, period_s=period_s), Broker(1.0, period_s=period_s))
    for second in range(240):
        if second % 2 == 0:
            seen = (copying(each.copied, leader=n, to=n + 2, number=n) for n, each in enumerate(senders))
            keeping.see(float(second), RATE, seen)
        for number, each in enumerate(senders):
            each.work(second + number * period_s // 2, keeping.factor)
    for each in senders:
        assert (1 - SLOWER) * RATE < each.copied / 240 < (1 + FASTER) * RATE


def test_replica_that_has_arrived_counts_in_full() -> None:
    keeping = ThrottleRegulator()
    keeping.see(0.0, RATE, [copying(10_000 * MB - 2 * RATE)])
    keeping.see(2.0, RATE, [copying(0, number=1)])
    assert keeping.behind_s == 0


def test_new_rate_and_no_rate_reset_the_backlog() -> None:
    keeping, _ = run(Broker(0.85), 40)
    assert keeping.factor > 1
    assert keeping.see(40.0, RATE * 2, [copying(0)])
    assert keeping.factor == 1
    run(Broker(0.85), 40, keeping)
    keeping.see(80.0, None, [copying(0)])
    assert keeping.factor == 1


@pytest.mark.parametrize("number", [0, 2])
def test_receiver_that_its_sender_held_back_is_not_behind(number: int) -> None:
    """Broker 1 sends all it may to brokers 3 and 4. When only copies to broker 3 are left, it still does."""
    keeping = ThrottleRegulator()
    for second in range(0, 20, 2):
        half = second * RATE / 2
        ends = replace(copying(half, to=4, number=1), size_bytes=9 * RATE)
        both = [copying(half, to=3, number=number), ends]
        keeping.see(float(second), RATE, sorted(both, key=lambda each: each.partition))
    for second in range(20, 26, 2):
        keeping.see(float(second), RATE, [copying((second - 9) * RATE, to=3, number=number)])
        assert keeping.factor == pytest.approx(1.0, abs=0.05)
