"""A throttle that lets through too little is set higher, as much as is needed and by a quarter at most."""

from __future__ import annotations

import pytest

from restow.execute.keeping_up import KeepingUp
from restow.execute.progress import Copying
from restow.model import TopicPartition

MB = 10**6
RATE = 20 * MB


def copying(copied: float, *, to: int = 3, leader: int = 1, number: int = 0) -> Copying:
    return Copying(
        partition=TopicPartition("t", number),
        broker=to,
        leader=leader,
        size_bytes=10_000 * MB,
        copied_bytes=int(copied),
        in_sync=False,
    )


def run(share: float, seconds: int, keeping: KeepingUp | None = None) -> tuple[KeepingUp, float]:
    """A broker that lets through a share of what it is set to: the rate that arrived on average."""
    keeping = keeping or KeepingUp()
    copied = 0.0
    for second in range(0, seconds, 2):
        keeping.see(float(second), RATE, [copying(copied)])
        copied += 2 * RATE * share * keeping.factor
    return keeping, copied / seconds


@pytest.mark.parametrize("share", [0.85, 0.9, 0.95])
def test_what_arrives_comes_close_to_what_was_asked_for(share: float) -> None:
    _, rate = run(share, 60)
    assert 0.96 * RATE < rate <= RATE


def test_what_arrives_as_asked_for_is_left_as_it_is() -> None:
    keeping, _ = run(1.0, 60)
    assert keeping.factor == 1.0


def test_more_than_asked_for_is_not_saved_for_later() -> None:
    keeping, _ = run(1.5, 20)
    assert keeping.behind_s == -1
    assert keeping.factor == 1


def test_where_something_else_holds_it_up_the_rate_stays_as_asked_for() -> None:
    keeping = KeepingUp()
    seen = []
    for second in range(0, 100, 2):
        keeping.see(float(second), RATE, [copying(second * RATE * 0.3)])
        seen.append(keeping.factor)
    assert max(seen) <= 1.25
    assert seen.count(1.0) > len(seen) * 3 / 4


def test_a_sender_at_its_rate_is_enough() -> None:
    """Two brokers that get half of it each from one leader."""
    keeping = KeepingUp()
    for second in range(0, 60, 2):
        half = second * RATE / 2
        keeping.see(float(second), RATE, [copying(half, to=3), copying(half, to=4, number=1)])
    assert keeping.factor == 1.0


def test_what_has_arrived_counts_whole() -> None:
    keeping = KeepingUp()
    keeping.see(0.0, RATE, [copying(10_000 * MB - 2 * RATE)])
    keeping.see(2.0, RATE, [copying(0, number=1)])
    assert keeping.behind_s == 0


def test_another_rate_and_none_begin_anew() -> None:
    keeping, _ = run(0.85, 40)
    assert keeping.factor > 1
    assert keeping.see(40.0, RATE * 2, [copying(0)])
    assert keeping.factor == 1
    run(0.85, 40, keeping)
    keeping.see(80.0, None, [copying(0)])
    assert keeping.factor == 1
