from __future__ import annotations

import re
from collections import Counter
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.errors import InvalidBrokers, InvalidReplicaAssignment
from restow.placement import Broker, BrokerLoad, RackSpread, evaluate, place
from tests.unit.placement.clusters import at_leisure

FOUR = [Broker(7, "a"), Broker(3, "a"), Broker(5, "b"), Broker(1, "c")]


def test_evaluate_counts_replicas_and_leaders_in_the_order_of_the_brokers() -> None:
    verdict = evaluate({0: [3, 5], 1: [3, 7]}, FOUR)
    assert verdict.partitions == 2
    assert verdict.loads == (
        BrokerLoad(id=7, rack="a", replicas=1, leaders=0),
        BrokerLoad(id=3, rack="a", replicas=2, leaders=2),
        BrokerLoad(id=5, rack="b", replicas=1, leaders=0),
        BrokerLoad(id=1, rack="c", replicas=0, leaders=0),
    )
    assert verdict.replicas == {7: 1, 3: 2, 5: 1, 1: 0}
    assert verdict.leaders == {7: 0, 3: 2, 5: 0, 1: 0}
    assert verdict.replicas_max_over_mean == 2.0
    assert verdict.leaders_max_over_mean == 4.0


def test_rack_spread_counts_partitions_that_fall_short() -> None:
    verdict = evaluate({4: [3, 5], 9: [3, 7], 2: [7], 6: [7, 3, 5, 1]}, FOUR)
    assert verdict.rack_spread == RackSpread(racks=3, partitions_short=1, fewest=1, most=3)


@pytest.mark.parametrize("last", [None, "c"])
def test_rack_spread_is_none_unless_all_brokers_have_racks(last: str | None) -> None:
    verdict = evaluate({0: [1]}, [Broker(1, "a"), Broker(2, last)])
    assert (verdict.rack_spread is None) == (last is None)


def test_evaluate_gives_a_table_and_a_mapping_the_same_result() -> None:
    placed = place(FOUR, 10, 3, start_index=2)
    assert evaluate(placed, FOUR) == evaluate(dict(enumerate(placed.tolist())), FOUR)


def test_empty_assignment_is_perfectly_even() -> None:
    verdict = evaluate({}, FOUR)
    assert verdict.partitions == 0
    assert verdict.replicas_max_over_mean == verdict.leaders_max_over_mean == 1.0
    assert verdict.rack_spread == RackSpread(racks=3, partitions_short=0, fewest=0, most=0)


def test_evaluation_is_immutable() -> None:
    verdict = evaluate({0: [1]}, FOUR)
    with pytest.raises(FrozenInstanceError):
        verdict.partitions = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("assignment", "sentence"),
    [
        ({4: [3, 5], 9: [3, 8]}, "Partition 9 is on broker 8, which is not among the brokers"),
        ({4: [3, 5], 9: [5, 3, 5]}, "Partition 9 names a broker more than once"),
        ({4: [3, 5], 9: []}, "Partition 9 has no replicas"),
        (np.array([[3], [8]]), "Partition 1 is on broker 8"),
        (np.array([[3, 5], [1, 1]]), "Partition 1 names a broker more than once"),
        (np.array([3, 5]), "this one has 1"),
        (np.empty((2, 0), dtype=np.int32), "Partition 0 has no replicas"),
    ],
)
def test_evaluate_refuses_invalid_assignments(assignment: Any, sentence: str) -> None:
    with pytest.raises(InvalidReplicaAssignment, match=re.escape(sentence)):
        evaluate(assignment, FOUR)


def test_evaluate_refuses_invalid_brokers() -> None:
    with pytest.raises(InvalidBrokers, match="more than once: 1"):
        evaluate({0: [1]}, [Broker(1), Broker(1)])


@at_leisure
@given(
    assignment=st.dictionaries(
        st.integers(0, 1000), st.lists(st.sampled_from([1, 3, 5, 7]), min_size=1, max_size=4, unique=True)
    )
)
def test_evaluate_equals_counting_by_hand(assignment: dict[int, list[int]]) -> None:
    rack = {broker.id: broker.rack for broker in FOUR}
    spreads = [len({rack[broker] for broker in replicas}) for replicas in assignment.values()]
    could = [min(3, len(replicas)) for replicas in assignment.values()]
    verdict = evaluate(assignment, FOUR)
    replicas = Counter(broker for replicas in assignment.values() for broker in replicas)
    leaders = Counter(replicas[0] for replicas in assignment.values())
    assert verdict.replicas == {broker.id: replicas[broker.id] for broker in FOUR}
    assert verdict.leaders == {broker.id: leaders[broker.id] for broker in FOUR}
    assert verdict.rack_spread == RackSpread(
        racks=3,
        partitions_short=sum(has < may for has, may in zip(spreads, could, strict=True)),
        fewest=min(spreads, default=0),
        most=max(spreads, default=0),
    )
