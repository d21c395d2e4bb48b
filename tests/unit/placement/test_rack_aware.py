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


def test_empty_rack_is_skipped() -> None:
    brokers = [Broker(1, "b"), Broker(2, "a"), Broker(3, "b"), Broker(4, "c"), Broker(5, "b")]
    assert [broker.id for broker in alternate_racks(brokers)] == [2, 1, 4, 3, 5]


def test_racks_sort_like_java_strings() -> None:
    # Java compares UTF-16 units, so a character of two units (D83D…) comes before U+FFEE.
    brokers = [Broker(0, "\uffee"), Broker(1, "\U0001f600")]
    assert [broker.id for broker in alternate_racks(brokers)] == [1, 0]
    assert place(brokers, 1, 2, start_index=0).tolist() == [[1, 0]]


def test_place_rack_aware_follows_a_worked_example() -> None:
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


def test_candidate_in_a_taken_rack_is_skipped() -> None:
    # In order 0, 3, 1, 2: from broker 1 the walk meets 2 of its own rack first.
    brokers = [Broker(0, "a"), Broker(1, "a"), Broker(2, "a"), Broker(3, "b")]
    assert place(brokers, 4, 2, start_index=0).tolist() == [[0, 3], [3, 1], [1, 3], [2, 3]]


def test_order_of_the_given_brokers_does_not_matter() -> None:
    expected = place(NINE, 30, 4, start_index=2)
    assert np.array_equal(place(NINE[::-1], 30, 4, start_index=2), expected)


def test_brokers_in_one_rack_are_taken_by_id() -> None:
    brokers = [Broker(number, "only") for number in (7, 3, 5)]
    assert place(brokers, 4, 3, start_index=0).tolist() == [[3, 5, 7], [5, 7, 3], [7, 3, 5], [3, 7, 5]]


def test_empty_string_is_a_rack_like_any_other() -> None:
    brokers = [Broker(0, ""), Broker(1, ""), Broker(2, "a")]
    assert place(brokers, 2, 2, start_index=0).tolist() == [[0, 2], [2, 1]]


def test_single_broker_with_a_rack_holds_everything() -> None:
    assert place([Broker(8, "a")], 3, 1, start_index=1).tolist() == [[8]] * 3


@pytest.mark.parametrize("replication_factor", [1, 2, 3, 7, 41])
def test_large_and_tiny_rack_are_placed_as_specified(replication_factor: int) -> None:
    brokers = [Broker(number, "large" if number else "tiny") for number in range(41)]
    case = Case(brokers, 130, replication_factor, start=5, first=3)
    assert place(
        brokers, 130, replication_factor, start_index=5, start_partition=3
    ).tolist() == slowly_placed(case)


def test_pattern_repeats_for_a_long_topic_on_few_brokers() -> None:
    brokers = [Broker(number, "ab"[number % 2]) for number in range(5)]
    placed = place(brokers, 20_000, 3, start_index=1, start_partition=4)
    assert placed[:400].tolist() == slowly_placed(Case(brokers, 400, 3, 1, 4))
    assert placed[-400:].tolist() == slowly_placed(Case(brokers, 20_000, 3, 1, 4))[-400:]


@at_leisure
@given(case=cases(racks=True))
def test_place_rack_aware_equals_the_specification(case: Case) -> None:
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
def test_replicas_span_as_many_racks_as_possible(case: Case) -> None:
    placed = place(case.brokers, case.partitions, case.replication_factor, start_index=case.start)
    spread = evaluate(placed, case.brokers).rack_spread
    assert spread is not None
    assert spread.partitions_short == 0
    assert spread.fewest == spread.most == min(case.replication_factor, spread.racks)


@at_leisure
@given(case=cases(racks=True))
def test_leaders_are_even_with_any_racks(case: Case) -> None:
    placed = place(case.brokers, case.partitions, case.replication_factor, start_index=case.start)
    leaders = evaluate(placed, case.brokers).leaders.values()
    assert max(leaders) - min(leaders) <= 1
