"""Rules for new topics and partitions, and their replica placement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.cluster.broker.topic_rules import (
    TopicRefused,
    check_name,
    check_new_name,
    more_partitions,
    new_assignment,
)
from restow.model import Broker
from restow.runtime.chance import SeededChance
from restow.wire.error_codes import ErrorCode

BROKERS = tuple(Broker(number, f"rack-{number % 2}") for number in range(4))


@pytest.mark.parametrize("name", ["a", "a.b_c-D9", "x" * 249, "...", "__consumer_offsets"])
def test_check_name_accepts_legal_names(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ä", "a\n"])
def test_check_name_refuses_illegal_names(name: str) -> None:
    with pytest.raises(TopicRefused) as refused:
        check_name(name)
    assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_check_new_name_refuses_existing_and_colliding_names() -> None:
    check_new_name("a.b", ["a-b", "a.c"])
    with pytest.raises(TopicRefused, match="already exists") as refused:
        check_new_name("a.b", ["x", "a.b"])
    assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    with pytest.raises(TopicRefused, match=r"collides with the existing topic 'a_b'") as refused:
        check_new_name("a.b", ["a_b"])
    assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


@given(st.integers(1, 20), st.integers(1, 4))
def test_new_assignment_places_replicas_on_different_brokers(
    partitions: int, replication_factor: int
) -> None:
    placed = new_assignment(
        BROKERS, partitions=partitions, replication_factor=replication_factor, chance=SeededChance(1)
    )
    assert sorted(placed) == list(range(partitions))
    for replicas in placed.values():
        assert len(set(replicas)) == len(replicas) == replication_factor
        assert len({number % 2 for number in replicas}) == min(2, replication_factor)


@pytest.mark.parametrize(
    ("partitions", "replication_factor", "code"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-5, 1, ErrorCode.INVALID_PARTITIONS),
        (10_001, 1, ErrorCode.POLICY_VIOLATION),
        (2**31 - 1, 1, ErrorCode.POLICY_VIOLATION),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 5, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_new_assignment_refuses_invalid_counts(
    partitions: int, replication_factor: int, code: ErrorCode
) -> None:
    with pytest.raises(TopicRefused) as refused:
        new_assignment(
            BROKERS, partitions=partitions, replication_factor=replication_factor, chance=SeededChance(1)
        )
    assert refused.value.code is code


def test_new_assignment_takes_manual_replicas() -> None:
    given_by_hand = {1: (3, 0), 0: (0, 1)}
    placed = new_assignment(
        BROKERS, partitions=-1, replication_factor=-1, chance=SeededChance(1), by_hand=given_by_hand
    )
    assert list(placed.items()) == [(0, (0, 1)), (1, (3, 0))]


@pytest.mark.parametrize(
    "by_hand", [{0: ()}, {1: (0,)}, {0: (0, 0)}, {0: (0, 1), 1: (2,)}, {0: (9,)}, {0: (0,), 2: (1,)}]
)
def test_new_assignment_refuses_invalid_manual_replicas(by_hand: dict[int, tuple[int, ...]]) -> None:
    with pytest.raises(TopicRefused) as refused:
        new_assignment(BROKERS, partitions=-1, replication_factor=-1, chance=SeededChance(1), by_hand=by_hand)
    assert refused.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_more_partitions_places_missing_partitions() -> None:
    current = {0: (1, 2), 1: (2, 3)}
    added = more_partitions(current, BROKERS, to=5)
    assert sorted(added) == [2, 3, 4]
    assert {len(set(replicas)) for replicas in added.values()} == {2}
    assert more_partitions(current, BROKERS, to=3, by_hand=[(3, 0)]) == {2: (3, 0)}


@pytest.mark.parametrize(
    ("to", "by_hand", "code"),
    [
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (3, [(0, 1), (1, 2)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [(0,)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [(0, 9)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_more_partitions_refuses_invalid_counts(
    to: int, by_hand: list[tuple[int, ...]] | None, code: ErrorCode
) -> None:
    with pytest.raises(TopicRefused) as refused:
        more_partitions({0: (1, 2), 1: (2, 3)}, BROKERS, to=to, by_hand=by_hand)
    assert refused.value.code is code


def test_placement_uses_the_given_chance() -> None:
    placements = [
        new_assignment(BROKERS, partitions=5, replication_factor=2, chance=SeededChance(seed))
        for seed in (1, 1, 2, 3, 4)
    ]
    assert placements[0] == placements[1]
    assert len({placement[0] for placement in placements}) > 1
