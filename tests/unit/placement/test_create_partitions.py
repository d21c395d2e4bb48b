from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.errors import (
    InvalidBrokers,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    RackInformationMissing,
)
from restow.placement import Broker, create_partitions, place
from tests.unit.placement.clusters import Case, at_leisure, cases

FIVE = [Broker(number) for number in range(5)]
CURRENT = {0: [1, 2], 1: [2, 3]}


def test_expand_places_only_new_partitions_from_the_leader_of_partition_0() -> None:
    assert create_partitions(current=CURRENT, brokers=FIVE, to=6) == {
        2: [3, 0],
        3: [4, 1],
        4: [0, 2],
        5: [1, 4],
    }


def test_expand_starts_at_the_next_broker_if_the_leader_is_gone() -> None:
    brokers = [Broker(0), Broker(10), Broker(20)]
    assert create_partitions({0: [15]}, brokers, 2) == {
        1: place(brokers, 1, 1, start_index=2, start_partition=1)[0].tolist()
    }
    assert create_partitions({0: [15]}, brokers, 2) == {1: [0]}


def test_expand_starts_at_the_first_broker_if_the_leader_is_above_all() -> None:
    assert create_partitions({0: [99]}, FIVE, 3) == {1: [1], 2: [2]}


def test_expand_takes_the_factor_of_partition_0() -> None:
    assert all(len(replicas) == 1 for replicas in create_partitions({0: [1], 1: [2, 3]}, FIVE, 9).values())


def test_expand_uses_racks_like_a_new_topic() -> None:
    brokers = [Broker(number, "ab"[number // 2]) for number in range(4)]
    new = create_partitions({0: [0, 2]}, brokers, 8)
    assert all({replicas[0] // 2, replicas[1] // 2} == {0, 1} for replicas in new.values())
    plain = create_partitions({0: [0, 2]}, brokers, 8, rack_mode="disabled")
    assert plain == create_partitions({0: [0, 2]}, [Broker(number) for number in range(4)], 8)
    assert plain != new


@at_leisure
@given(case=cases(racks=True), existing=st.integers(1, 30), data=st.data())
def test_expand_continues_placement(case: Case, existing: int, data: st.DataObject) -> None:
    brokers = sorted(case.brokers, key=lambda broker: broker.id)
    start = data.draw(st.integers(0, len(brokers) - 1))
    replicas_of_0 = [brokers[start].id, *(b.id for b in brokers if b.id != brokers[start].id)][
        : case.replication_factor
    ]
    current = dict.fromkeys(range(existing), replicas_of_0)
    new = create_partitions(current, brokers, existing + case.partitions)
    placed = place(
        brokers, case.partitions, case.replication_factor, start_index=start, start_partition=existing
    )
    assert list(new) == list(range(existing, existing + case.partitions))
    assert list(new.values()) == placed.tolist()


@pytest.mark.parametrize("by_hand", ["0:1,4:0,3:4,0:4", {0: [0, 1], 1: [4, 0], 2: [3, 4], 3: [0, 4]}])
def test_expand_by_hand_skips_existing_partitions(by_hand: Any) -> None:
    assert create_partitions(CURRENT, FIVE, 4, by_hand=by_hand) == {2: [3, 4], 3: [0, 4]}


def test_expand_by_hand_accepts_existing_partitions_on_a_broker_that_is_gone() -> None:
    assert create_partitions({0: [8, 1]}, FIVE, 2, by_hand="8:1,1:2") == {1: [1, 2]}


def test_expand_by_hand_needs_no_racks() -> None:
    assert create_partitions({0: [0]}, [Broker(0, "a"), Broker(1)], 2, by_hand="0,1") == {1: [1]}


@pytest.mark.parametrize(
    ("by_hand", "sentence"),
    [
        ("1:2,2:3", "The topic is to have 3 partitions and the list by hand names 2; name each from 0 to 2"),
        ("1:2,2:3,3:4,4:0", "The topic is to have 3 partitions and the list by hand names 4"),
        ({0: [1, 2], 1: [2, 3], 3: [3, 4]}, "name each from 0 to 2, the 2 existing ones first"),
        ("1,2,3", "Partition 2 has 1 replicas (3) while partition 0 has 2"),
        ("1:2,2:3,3:9", "Partition 2 names unknown broker 9; there are 0, 1, 2, 3, 4."),
        ({0: [1, 2], 1: [2, 3], 2: [3, 3]}, "Partition 2 names a broker more than once (3, 3)"),
        ({0: [1, 2], 1: [2, 3], 2: []}, "Partition 2 has no replicas"),
        ("1:2,2:3,x", "Partition 2 has 'x' where a broker id should be"),
    ],
)
def test_expand_by_hand_refuses_invalid_partitions(by_hand: Any, sentence: str) -> None:
    with pytest.raises(InvalidReplicaAssignment, match=re.escape(sentence)):
        create_partitions(CURRENT, FIVE, 3, by_hand=by_hand)


@pytest.mark.parametrize(
    ("current", "to", "error", "sentence"),
    [
        ({}, 3, InvalidPartitions, "The topic has no partition 0"),
        ({1: [0]}, 1, InvalidPartitions, "The topic has no partition 0"),
        (CURRENT, 2, InvalidPartitions, "The topic has 2 partitions and 2 would not be more"),
        (CURRENT, 1, InvalidPartitions, "partitions can only be added"),
        (
            {0: [1], 2: [1]},
            4,
            InvalidPartitions,
            "2 current partitions are given, but partition 1 is not among",
        ),
        ({0: []}, 4, InvalidReplicaAssignment, "Partition 0 has no replicas"),
        (
            {0: [0, 1, 2, 3, 4, 5]},
            2,
            InvalidReplicationFactor,
            "factor 6 is larger than the number of brokers",
        ),
    ],
)
def test_expand_refuses_topics_that_cannot_grow(
    current: dict[int, list[int]], to: int, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=re.escape(sentence)):
        create_partitions(current, FIVE, to)


@pytest.mark.parametrize("by_hand", [None, "0,1"])
def test_expand_refuses_an_empty_list_of_brokers(by_hand: str | None) -> None:
    with pytest.raises(InvalidBrokers, match="no brokers"):
        create_partitions({0: [0]}, [], 2, by_hand=by_hand)


def test_expand_refuses_incomplete_racks_unless_they_are_ignored() -> None:
    brokers = [Broker(0, "a"), Broker(1)]
    with pytest.raises(RackInformationMissing, match="--disable-rack-aware"):
        create_partitions({0: [0]}, brokers, 2)
    assert create_partitions({0: [0]}, brokers, 2, rack_mode="safe") == {1: [1]}
