"""sticky: the optimal balance, and of all assignments with that balance one that takes the least."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.assignors import Member, TopicPartition, assign
from tests.judge import Group, faults
from tests.unit.assignors.small_groups import MEMBERS, NAMES, best, groups, same_cases, worth

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

T0, T1, T2, T3 = (TopicPartition("t", p) for p in range(4))


@same_cases
@given(group=groups())
def test_assignment_of_a_tiny_group_is_optimal(group: Group) -> None:
    ours = assign("sticky", **group.question())
    assert faults(group, ours, complete=True) == []
    assert worth(group, ours)[:2] == best(group)[:2]


@same_cases
@given(group=groups(members=6, partitions=9))
def test_assignment_of_a_small_group_is_optimal(group: Group) -> None:
    ours = assign("sticky", **group.question())
    assert worth(group, ours)[:2] == best(group)[:2]


@pytest.mark.parametrize("name", NAMES)
@same_cases
@given(group=groups(members=6, partitions=12, racked=True), seed=st.integers(0, 999))
def test_answer_does_not_depend_on_the_order_of_members_or_topics(name: str, group: Group, seed: int) -> None:
    random = Random(seed)
    members = [replace(m, topics=shuffled(m.topics, random)) for m in group.members]
    partitions = dict(reversed(group.partitions.items()))
    other_way_round = replace(group, partitions=partitions, members=shuffled(members, random))
    answer = assign(name, **group.question())
    assert assign(name, **group.question()) == answer
    assert assign(name, **other_way_round.question()) == answer


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@same_cases
@given(group=groups(members=6, partitions=12), seed=st.integers(0, 999))
def test_answer_does_not_depend_on_the_order_of_claims(name: str, group: Group, seed: int) -> None:
    random = Random(seed)
    members = tuple(replace(m, owned=shuffled(m.owned, random)) for m in group.members)
    answer = assign(name, **group.question())
    assert assign(name, **replace(group, members=members).question()) == answer


def shuffled(things: Sequence[Any], random: Random) -> tuple[Any, ...]:
    return tuple(random.sample(things, len(things)))


@pytest.mark.parametrize("name", NAMES)
@same_cases
@given(group=groups(members=6, partitions=12, racked=True))
def test_every_member_has_a_sorted_list(name: str, group: Group) -> None:
    answer = assign(name, **group.question())
    assert faults(group, answer, complete=name != "cooperative-sticky") == []
    assert answer.keys() == {member.id for member in group.members}
    for mine in answer.values():
        assert type(mine) is list
        assert all(type(partition) is TopicPartition for partition in mine)
        assert mine == sorted(mine)


@pytest.mark.parametrize("name", NAMES)
def test_input_is_not_changed(name: str) -> None:
    partitions = {"t": 4}
    members = [Member(id=m, topics=("t",), owned=(T0, T1), generation=1, rack="r") for m in MEMBERS]
    racks = {"t": [["r"], ["s"], [], ["r"]]}
    assign(name, partitions, members, racks)
    assert partitions == {"t": 4}
    assert members == [Member(id=m, topics=("t",), owned=(T0, T1), generation=1, rack="r") for m in MEMBERS]
    assert racks == {"t": [["r"], ["s"], [], ["r"]]}


@pytest.mark.parametrize("name", NAMES)
def test_answer_belongs_to_the_caller(name: str) -> None:
    """No list of an answer is part of a cache."""
    members = [Member(id="a", topics=("t",), owned=(T0, T1), generation=1), Member(id="b", topics=("t",))]
    for group in (members, members[:1]):
        first = assign(name, {"t": 4}, group)
        kept = {member: list(mine) for member, mine in first.items()}
        for mine in first.values():
            mine.clear()
        assert assign(name, {"t": 4}, group) == kept
        assert assign(name, {"t": 2}, group[:1]) == {"a": [T0, T1]}


def test_members_keep_what_they_can_when_one_leaves() -> None:
    members = [
        Member(id="a", topics=("t",), owned=(T0,), generation=1),
        Member(id="b", topics=("t",), owned=(T2,), generation=1),
    ]
    assert assign("sticky", {"t": 4}, members) == {"a": [T0, T1], "b": [T2, T3]}


def test_new_member_gets_its_share_and_no_more() -> None:
    members = [
        Member(id="a", topics=("t",), owned=(T0, T1, T2, T3), generation=1),
        Member(id="b", topics=("t",)),
        Member(id="c", topics=("t",)),
    ]
    answer = assign("sticky", {"t": 4}, members)
    assert [len(answer[m]) for m in "abc"] == [2, 1, 1]
    assert set(answer["a"]) < {T0, T1, T2, T3}


def test_balance_comes_before_stickiness_along_a_chain() -> None:
    """Only through b can a give to c: a has what b may have, and b what c may have."""
    x, y = (TopicPartition("x", p) for p in range(2))
    z = TopicPartition("z", 0)
    members = [
        Member(id="a", topics=("x",), owned=(x, y), generation=1),
        Member(id="b", topics=("x", "z"), owned=(z,), generation=1),
        Member(id="c", topics=("z",), generation=1),
    ]
    answer = assign("sticky", {"x": 2, "z": 1}, members)
    assert answer["c"] == [z]
    assert sorted(answer["a"] + answer["b"]) == [x, y]
    assert len(answer["a"]) == 1


def test_unsubscribed_topic_is_revoked() -> None:
    members = [
        Member(id="a", topics=("u",), owned=(T0, T1), generation=1),
        Member(id="b", topics=("t", "u"), generation=1),
    ]
    assert assign("sticky", {"t": 2, "u": 2}, members) == {
        "a": [TopicPartition("u", 0), TopicPartition("u", 1)],
        "b": [T0, T1],
    }
