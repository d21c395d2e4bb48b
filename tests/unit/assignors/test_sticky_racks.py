"""Racks and the sticky assignors: read within the rack where that costs nothing else."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.assignors import Member, TopicPartition, assign
from tests.judge import Group, faults
from tests.unit.assignors.small_groups import (
    RACKS,
    best,
    groups,
    no_direct_move_helps,
    racks_matter,
    same_cases,
    worth,
)

T = [TopicPartition("t", p) for p in range(6)]


@same_cases
@given(group=groups(racked=True))
def test_assignment_has_the_fewest_cross_rack_reads_without_other_costs(group: Group) -> None:
    found, least = worth(group, assign("sticky", **group.question())), best(group)
    assert found[:2] == least[:2]
    if racks_matter(group):
        assert found == least


@same_cases
@given(group=groups(members=6, partitions=9, racked=True))
def test_slightly_larger_group_has_the_fewest_cross_rack_reads(group: Group) -> None:
    found, least = worth(group, assign("sticky", **group.question())), best(group)
    assert found[:2] == least[:2]
    if racks_matter(group):
        assert found == least


@same_cases
@given(members=st.integers(1, 12), each=st.integers(1, 6), seed=st.integers(0, 2**32 - 1))
def test_first_assignment_reads_within_racks_where_possible(members: int, each: int, seed: int) -> None:
    """Every partition has a replica in the rack of a member that was picked for it, evenly."""
    random = Random(seed)
    group = [
        Member(id=f"m{i}", topics=("t", "u") if i % 2 else ("u", "t"), rack=random.choice(RACKS))
        for i in range(members)
    ]
    picked = [random.choice(group), *(group * each)]
    random.shuffle(picked)
    racks = [[str(m.rack), *random.sample(RACKS, random.randint(0, 1))] for m in picked]
    half = len(racks) // 2
    question = Group(
        partitions={"t": half, "u": len(racks) - half},
        members=tuple(group),
        partition_racks={"t": racks[:half], "u": racks[half:]},
    )
    ours = assign("sticky", **question.question())
    assert faults(question, ours, complete=True) == []
    assert worth(question, ours).far == 0
    assert {len(mine) for mine in ours.values()} <= {each, each + 1}


@same_cases
@given(group=groups(members=6, partitions=18, racked=True))
def test_racks_change_neither_balance_nor_movement(group: Group) -> None:
    near = assign("sticky", **group.question())
    plain = assign("sticky", group.partitions, group.members)
    assert worth(group, near)[:2] == worth(group, plain)[:2]


@same_cases
@given(group=groups(members=6, partitions=18, claims=False, racked=True))
def test_cooperative_group_is_as_level_with_racks_as_without(group: Group) -> None:
    near = assign("cooperative-sticky", **group.question())
    assert faults(group, near, complete=True) == []
    assert no_direct_move_helps(group, near)


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_members_read_within_their_racks(name: str) -> None:
    members = [Member(id=m, topics=("t",), rack=rack) for m, rack in (("a", "x"), ("b", "y"), ("c", "z"))]
    racks = {"t": [["z"], ["y"], ["x"], ["x", "y"], ["y", "z"], ["z", "x"]]}
    assert worth(
        Group(partitions={"t": 6}, members=tuple(members), partition_racks=racks),
        assign(name, {"t": 6}, members, racks),
    ) == (0, 0, 0)


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_nothing_moves_for_a_nearer_rack(name: str) -> None:
    members = [
        Member(id="a", topics=("t",), rack="x", owned=tuple(T[:3]), generation=1),
        Member(id="b", topics=("t",), rack="y", owned=tuple(T[3:]), generation=1),
    ]
    racks = {"t": [["y"]] * 3 + [["x"]] * 3}
    assert assign(name, {"t": 6}, members, racks) == {"a": T[:3], "b": T[3:]}


def test_balance_comes_before_racks() -> None:
    members = [Member(id="a", topics=("t",), rack="x"), Member(id="b", topics=("t",), rack="y")]
    answer = assign("sticky", {"t": 6}, members, {"t": [["x"]] * 5 + [["y"]]})
    assert {m: len(mine) for m, mine in answer.items()} == {"a": 3, "b": 3}
    assert T[5] in answer["b"]


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@pytest.mark.parametrize("racks", [[["x", "y"]] * 6, [["q"], ["p"]] * 3, [[]] * 6])
def test_racks_without_information_change_nothing(name: str, racks: list[list[str]]) -> None:
    members = [Member(id="a", topics=("t",), rack="x"), Member(id="b", topics=("t",), rack="y")]
    assert assign(name, {"t": 6}, members, {"t": racks}) == assign(name, {"t": 6}, members)
