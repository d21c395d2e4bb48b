"""The arithmetic of quotas: in the long run the limit is neither exceeded nor left unused."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.cluster.quotas import SlidingQuota

RATES = st.integers(1, 10**9)
AMOUNTS = st.floats(0.001, 30.0)
"""The size of one amount, in seconds of the limit."""


def under_demand(quota: SlidingQuota, amounts: list[int], latency_s: float) -> list[tuple[float, int]]:
    """Take amounts as soon as there is room; return the times and totals."""
    now_s = 1000.0
    taken = 0
    history = []
    for amount in amounts:
        now_s += quota.wait_s(now_s)
        while quota.wait_s(now_s):
            now_s += 1e-6 * max(now_s, 1.0)
        quota.note(amount, now_s)
        taken += amount
        history.append((now_s, taken))
        now_s += latency_s
    return history


@given(RATES, st.lists(AMOUNTS, min_size=20, max_size=200), st.sampled_from([(11, 1.0), (2, 1.0), (4, 0.25)]))
def test_long_run_rate_equals_the_limit(rate: int, amounts_s: list[float], window: tuple[int, float]) -> None:
    sizes = [max(int(amount * rate), 1) for amount in amounts_s]
    history = under_demand(SlidingQuota(rate, *window), sizes, latency_s=0.0)
    began_s = history[0][0]
    for (now_s, taken), size in zip(history, sizes, strict=True):
        allowed = rate * (now_s - began_s)
        slack = 1e-3 * rate * max(now_s - began_s, 1.0) + 1
        assert taken - size <= allowed + slack, "admitted while the quota was used up"
        assert taken >= allowed - slack, "kept waiting although there was room"


@given(RATES, st.lists(st.floats(0.001, 0.05), min_size=300, max_size=600))
def test_small_amounts_reach_the_limit_within_a_percent(rate: int, amounts_s: list[float]) -> None:
    """Also with idle time between two amounts."""
    sizes = [max(int(amount * rate), 1) for amount in amounts_s]
    history = under_demand(SlidingQuota(rate), [*sizes, *sizes, *sizes], latency_s=0.0005)
    seconds = history[-1][0] - history[0][0]
    taken = history[-1][1] - max(sizes)
    if taken > 10 * rate:
        assert taken / seconds == pytest.approx(rate, rel=0.01)


@given(RATES, st.lists(st.tuples(st.floats(0.0, 5.0), AMOUNTS), min_size=1, max_size=100))
def test_no_period_exceeds_its_share_under_any_demand(rate: int, steps: list[tuple[float, float]]) -> None:
    """In any period: the limit's share, one sample of credit, and the last amount."""
    quota = SlidingQuota(rate)
    now_s = 50.0
    admitted: list[tuple[float, int]] = []
    for pause_s, amount_s in steps:
        now_s += pause_s
        if not quota.wait_s(now_s):
            size = max(int(amount_s * rate), 1)
            quota.note(size, now_s)
            admitted.append((now_s, size))
    for first, (began_s, _) in enumerate(admitted):
        for last in range(first, len(admitted)):
            ended_s, largest = admitted[last]
            total = sum(size for _, size in admitted[first : last + 1])
            assert total - largest <= rate * (ended_s - began_s + 1.0) * (1 + 1e-6) + 1


def test_excess_outlives_the_window() -> None:
    quota = SlidingQuota(1000)
    quota.note(1_000_000, 0.0)
    assert quota.wait_s(0.0) == pytest.approx(1000)
    assert quota.wait_s(500.0) == pytest.approx(500)
    assert quota.wait_s(1000.5) == 0


def test_unused_quota_accumulates_at_most_one_sample() -> None:
    quota = SlidingQuota(1000)
    quota.note(1, 0.0)
    assert quota.room_bytes(0.5) == 499
    assert quota.room_bytes(5.0) == 1000
    quota.note(300, 5.0)
    assert quota.room_bytes(5.0) == 700
    quota.note(800, 5.0)
    assert quota.room_bytes(5.0) == 0
    assert quota.room_bytes(60.0) == 100


def test_note_of_zero_bytes_changes_nothing() -> None:
    quota = SlidingQuota(1000)
    for tenth in range(100):
        quota.note(0, tenth / 10)
    assert quota.room_bytes(10.0) == 100


def test_room_is_a_fraction_of_a_sample() -> None:
    quota = SlidingQuota(20_000_000)
    assert quota.room_bytes(7.0) == 2_000_000
    quota.note(2_000_000, 7.0)
    assert quota.room_bytes(7.0) == 0
    assert quota.wait_s(7.0) == pytest.approx(0.1)
    assert SlidingQuota(1).room_bytes(0.0) == 1


def test_new_limit_applies_to_excess_and_drops_unused_quota() -> None:
    quota = SlidingQuota(1000)
    quota.note(10_000, 0.0)
    quota.change(10_000, 0.0)
    assert quota.wait_s(0.0) == pytest.approx(1.0)
    quota.change(100, 0.5)
    assert quota.wait_s(0.5) == pytest.approx(50)
    quota.change(10**6, 9.5)
    assert quota.wait_s(9.5) == pytest.approx(0.0041)
    assert quota.room_bytes(19.5) == 10**6
    quota.change(1000, 19.5)
    assert quota.room_bytes(19.5) == 100


def test_limit_of_zero_admits_nothing() -> None:
    quota = SlidingQuota(0)
    assert quota.wait_s(0.0) == inf
    assert quota.room_bytes(0.0) == 0


def test_rate_reports_recent_bytes_per_second() -> None:
    quota = SlidingQuota(1000)
    assert quota.rate(0.0) == 0
    quota.note(500, 0.0)
    assert quota.rate(0.2) == 500
    assert quota.rate(5.0) == 100
    assert quota.rate(20.0) == 0
