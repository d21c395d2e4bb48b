from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from restow.placement import Broker, evaluate, place
from restow.placement.rack_aware import alternate_racks
from tests.unit.placement.clusters import Case, at_leisure, cases, slowly_placed

NINE = [Broker(number, f"rack-{number // 3}") for number in range(9)]


def test_brokers_alternate_between_racks() -> None:
    assert [broker.id for broker in alternate_racks(reversed(NINE))] == [0, 3, 6, 1, 4, 7, 2, 5, 8]


def test_a_spent_rack_is_left_out() -> None:
    brokers = [Broker(1, "b"), Broker(2, "a"), Broker(3, "b"), Broker(4, "c"), Broker(5, "b")]
    assert [broker.id for broker in alternate_racks(brokers)] == [2, 1, 4, 3, 5]


def test_racks_sort_as_java_strings_do() -> None:
    # Java compares UTF-16 units, so what needs two of them (D83D…) comes before U+FFEE.
    brokers = [Broker(0, "\uffee"), Broker(1, "\U0001f600")]
    assert [broker.id for broker in alternate_racks(brokers)] == [1, 0]
    assert place(brokers, 1, 2, start_index=0).tolist() == [[1, 0]]


def test_a_worked_example() -> None:
    assert place(NINE, partitions=11, replication_factor=3, start_index=0).tolist() == [
        [0, 3, 6],
        [3, 6, 1],
        [6, 1, 4],
        [1, 4, 7],
        [4, 7, 2],
        [7, 2, 5],
        [2, 5, 8],
        [5, 8, 0],
        [8, 0, 3],
        [0, 4, 7],
        [3, 7, 2],
    ]


def test_a_candidate_in_a_taken_rack_is_passed_over() -> None:
    # In order 0, 3, 1, 2: from broker 1 the walk meets 2 of its own rack first.
    brokers = [Broker(0, "a"), Broker(1, "a"), Broker(2, "a"), Broker(3, "b")]
    assert place(brokers, 4, 2, start_index=0).tolist() == [[0, 3], [3, 1], [1, 3], [2, 3]]


def test_the_order_in_which_brokers_are_given_does_not_matter() -> None:
    expected = place(NINE, 30, 4, start_index=2)
    assert np.array_equal(place(NINE[::-1], 30, 4, start_index=2), expected)


def test_all_brokers_in_one_rack_are_taken_by_id() -> None:
    brokers = [Broker(number, "only") for number in (7, 3, 5)]
    assert place(brokers, 4, 3, start_index=0).tolist() == [[3, 5, 7], [5, 7, 3], [7, 3, 5], [3, 7, 5]]


def test_an_empty_string_is_a_rack_like_any_other() -> None:
    brokers = [Broker(0, ""), Broker(1, ""), Broker(2, "a")]
    assert place(brokers, 2, 2, start_index=0).tolist() == [[0, 2], [2, 1]]


def test_a_single_broker_with_a_rack() -> None:
    assert place([Broker(8, "a")], 3, 1, start_index=1).tolist() == [[8]] * 3


@pytest.mark.parametrize("replication_factor", [1, 2, 3, 7, 41])
def test_one_large_rack_and_a_tiny_one(replication_factor: int) -> None:
    brokers = [Broker(number, "large" if number else "tiny") for number in range(41)]
    case = Case(brokers, 130, replication_factor, start=5, first=3)
    assert place(
        brokers, 130, replication_factor, start_index=5, start_partition=3
    ).tolist() == slowly_placed(case)


def test_a_long_topic_on_few_brokers_repeats_the_pattern() -> None:
    brokers = [Broker(number, "ab"[number % 2]) for number in range(5)]
    placed = place(brokers, 20_000, 3, start_index=1, start_partition=4)
    assert placed[:400].tolist() == slowly_placed(Case(brokers, 400, 3, 1, 4))
    assert placed[-400:].tolist() == slowly_placed(Case(brokers, 20_000, 3, 1, 4))[-400:]


@at_leisure
@given(case=cases(racks=True))
def test_equals_the_specification_word_by_word(case: Case) -> None:
    placed = place(
        case.brokers,
        case.partitions,
        case.replication_factor,
        start_index=case.start,
        start_partition=case.first,
    )
    assert placed.tolist() == slowly_placed(case)


@at_leisure
@given(case=cases(racks=True))
def test_replicas_stand_in_as_many_racks_as_they_can(case: Case) -> None:
    placed = place(case.brokers, case.partitions, case.replication_factor, start_index=case.start)
    spread = evaluate(placed, case.brokers).rack_spread
    assert spread is not None
    assert spread.partitions_short == 0
    assert spread.fewest == spread.most == min(case.replication_factor, spread.racks)


@at_leisure
@given(case=cases(racks=True))
def test_leaders_are_even_whatever_the_racks(case: Case) -> None:
    placed = place(case.brokers, case.partitions, case.replication_factor, start_index=case.start)
    leaders = evaluate(placed, case.brokers).leaders.values()
    assert max(leaders) - min(leaders) <= 1
