"""cooperative-sticky over several rounds: groups become stable, and nothing is given out too early."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from hypothesis import given, note
from hypothesis import strategies as st

from restow.assignors import Member, TopicPartition, assign
from tests.judge import Group, contested, faults, handed_over_too_early, owners_before, unassigned
from tests.unit.assignors.small_groups import (
    MORE_TOPICS,
    groups,
    leveled,
    no_direct_move_helps,
    same_cases,
    spread_at_random,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T0, T1, T2, T3 = (TopicPartition("t", p) for p in range(4))


def ask(group: Group) -> dict[str, list[TopicPartition]]:
    return assign("cooperative-sticky", **group.question())


def next_round(group: Group, given: Mapping[str, Sequence[TopicPartition]], generation: int) -> Group:
    """Return the group after every member has applied its assignment."""
    members = [replace(m, owned=tuple(given[m.id]), generation=generation) for m in group.members]
    return replace(group, members=tuple(members))


@same_cases
@given(group=groups(members=10, partitions=30, topics=MORE_TOPICS, racked=True))
def test_larger_group_becomes_stable_too(group: Group) -> None:
    """Rarely, what becomes free in the first round makes another move worthwhile, as in Kafka."""
    given = ask(group)
    for generation in range(3, 8):
        before, given = given, ask(next_round(group, given, generation))
        if given == before:
            break
    assert given == before
    assert faults(group, given, complete=True) == []
    assert no_direct_move_helps(group, given)


@same_cases
@given(group=groups(members=6, partitions=12, racked=True))
def test_group_becomes_stable_with_everything_assigned(group: Group) -> None:
    first = ask(group)
    assert faults(group, first, complete=False) == []
    second_round = next_round(group, first, 3)
    second = ask(second_round)
    assert faults(group, second, complete=True) == []
    assert handed_over_too_early(second_round, second) == []
    assert no_direct_move_helps(group, second)
    assert ask(next_round(group, second, 4)) == second


@same_cases
@given(group=groups(members=6, partitions=12))
def test_no_member_gets_what_another_still_claims(group: Group) -> None:
    given = ask(group)
    assert handed_over_too_early(group, given) == []
    claims = {member.id: set(member.owned) for member in group.members}
    fought_over = contested(group)
    for member, mine in given.items():
        assert fought_over & set(mine) <= claims[member]


@same_cases
@given(group=groups(members=6, partitions=12))
def test_only_partitions_that_change_owner_wait_for_the_next_round(group: Group) -> None:
    """Partitions without an owner are assigned at once."""
    left = unassigned(group, ask(group))
    assert left <= owners_before(group).keys() | contested(group)


@same_cases
@given(group=groups(members=6, partitions=12, claims=False, racked=True), seed=st.integers(0, 2**32 - 1))
def test_assignment_that_kafka_calls_balanced_is_kept(group: Group, seed: int) -> None:
    *_, level = leveled(group, spread_at_random(group, Random(seed)))
    note(f"{level}")
    assert no_direct_move_helps(group, level)
    settled = next_round(group, level, 1)
    assert ask(settled) == {member: sorted(mine) for member, mine in level.items()}


@same_cases
@given(
    group=groups(members=6, partitions=12, claims=False),
    leaving=st.integers(0, 2),
    joining=st.integers(0, 2),
)
def test_group_follows_members_that_join_and_leave(group: Group, leaving: int, joining: int) -> None:
    given = ask(group)
    stayed = next_round(group, given, 1).members[leaving:]
    newcomers = [
        Member(id=f"new-{i}", topics=group.members[0].topics) for i in range(max(joining, not stayed))
    ]
    group = replace(group, members=(*stayed, *newcomers))
    first = ask(group)
    assert handed_over_too_early(group, first) == []
    second = ask(next_round(group, first, 2))
    assert faults(group, second, complete=True) == []
    assert no_direct_move_helps(group, second)
    assert ask(next_round(group, second, 3)) == second


def test_new_member_waits_one_round() -> None:
    members = (
        Member(id="a", topics=("t",), owned=(T0, T1, T2, T3), generation=1),
        Member(id="b", topics=("t",)),
    )
    group = Group(partitions={"t": 4}, members=members)
    first = ask(group)
    assert first == {"a": [T0, T1], "b": []}
    assert ask(next_round(group, first, 2)) == {"a": [T0, T1], "b": [T2, T3]}


def test_partitions_of_a_leaving_member_are_assigned_at_once() -> None:
    members = (
        Member(id="a", topics=("t",), owned=(T0,), generation=1),
        Member(id="b", topics=("t",), owned=(T2,), generation=1),
    )
    assert ask(Group(partitions={"t": 4}, members=members)) == {"a": [T0, T1], "b": [T2, T3]}


def test_partition_of_an_unsubscribed_topic_waits_until_it_is_revoked() -> None:
    """The member that unsubscribed keeps reading until it gets the new assignment."""
    members = (
        Member(id="a", topics=("u",), owned=(T0,), generation=1),
        Member(id="b", topics=("t", "u"), owned=(TopicPartition("u", 0),), generation=1),
    )
    group = Group(partitions={"t": 1, "u": 2}, members=members)
    first = ask(group)
    assert T0 not in first["a"] + first["b"]
    assert T0 in ask(next_round(group, first, 2))["b"]


def test_two_claimants_wait_for_each_other_but_not_for_a_third() -> None:
    a = Member(id="a", topics=("t",), owned=(T0, T1), generation=1)
    b = Member(id="b", topics=("t",), owned=(T0, T1), generation=1)
    c = Member(id="c", topics=("t",))
    answer = ask(Group(partitions={"t": 2}, members=(a, b, c)))
    assert answer["c"] == []
    assert answer["a"] + answer["b"] == [T0, T1]
