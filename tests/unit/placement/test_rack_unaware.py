from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.placement import Broker, evaluate, place
from tests.unit.placement.clusters import Case, at_leisure, cases, slowly_placed

FIVE = [Broker(number) for number in range(5)]


def test_place_rack_unaware_follows_the_worked_example() -> None:
    assert place(FIVE, partitions=10, replication_factor=3, start_index=0).tolist() == [
        [0, 1, 2],
        [1, 2, 3],
        [2, 3, 4],
        [3, 4, 0],
        [4, 0, 1],
        [0, 2, 3],
        [1, 3, 4],
        [2, 4, 0],
        [3, 0, 1],
        [4, 1, 2],
    ]


def test_answer_is_a_table_of_32_bit_ids() -> None:
    placed = place(FIVE, 7, 2, start_index=3)
    assert placed.dtype == np.int32
    assert placed.shape == (7, 2)


def test_order_of_the_brokers_is_kept() -> None:
    assert place([Broker(9), Broker(4), Broker(7)], 3, 2, start_index=0).tolist() == [[9, 4], [4, 7], [7, 9]]


def test_single_broker_holds_everything() -> None:
    assert place([Broker(3)], 4, 1, start_index=5).tolist() == [[3]] * 4


@pytest.mark.parametrize(
    ("first", "second_replica"),
    [
        pytest.param(0, 1, id="partition 0 does not grow the shift"),
        pytest.param(5, 2, id="a first partition on the boundary grows it"),
        pytest.param(10, 2, id="boundaries before the first partition are not made up for"),
    ],
)
def test_shift_grows_with_each_round(first: int, second_replica: int) -> None:
    assert place(FIVE, 1, 2, start_index=0, start_partition=first).tolist() == [[0, second_replica]]


@pytest.mark.parametrize("first", [-1, -7])
def test_negative_first_partition_counts_as_0(first: int) -> None:
    expected = place(FIVE, 12, 3, start_index=2, start_partition=0)
    assert np.array_equal(place(FIVE, 12, 3, start_index=2, start_partition=first), expected)


def test_start_beyond_the_brokers_wraps_but_shifts_as_given() -> None:
    assert place(FIVE, 1, 3, start_index=7).tolist() == [[2, 1, 3]]


def test_start_beyond_64_bits_does_not_overflow() -> None:
    far = 10**30
    same = far % (5 * 4)
    assert np.array_equal(place(FIVE, 40, 3, start_index=far), place(FIVE, 40, 3, start_index=same))


def test_pattern_repeats_after_all_combinations_of_start_and_shift() -> None:
    placed = place(FIVE, 50_000, 3, start_index=1, start_partition=3)
    assert np.array_equal(placed[20:], placed[:-20])
    assert not np.array_equal(placed[10:], placed[:-10])
    assert placed[:200].tolist() == slowly_placed(Case(FIVE, 200, 3, 1, 3))


@at_leisure
@given(case=cases(racks=False))
def test_place_rack_unaware_equals_the_specification(case: Case) -> None:
    placed = place(
        case.brokers,
        case.partitions,
        case.replication_factor,
        start_index=case.start,
        start_partition=case.first,
    )
    assert placed.tolist() == slowly_placed(case)


@at_leisure
@given(case=cases(racks=False), laps=st.integers(1, 4))
def test_whole_laps_are_perfectly_even(case: Case, laps: int) -> None:
    partitions = laps * len(case.brokers)
    first = len(case.brokers) * 2
    placed = place(
        case.brokers, partitions, case.replication_factor, start_index=case.start, start_partition=first
    )
    verdict = evaluate(placed, case.brokers)
    assert set(verdict.leaders.values()) == {laps}
    assert set(verdict.replicas.values()) == {laps * case.replication_factor}


def test_followers_of_one_leader_are_spread_over_all_others() -> None:
    placed = place(FIVE, 20, 2, start_index=0)
    followers = Counter(second for first, second in placed.tolist() if first == 2)
    assert followers == {0: 1, 1: 1, 3: 1, 4: 1}
