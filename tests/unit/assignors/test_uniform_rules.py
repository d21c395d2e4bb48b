"""uniform: quotas, who gets the extra partitions, and what is taken from whom."""

from __future__ import annotations

from hypothesis import given

from restow.assignors import Member, TopicPartition, assign
from tests.judge import Group, faults
from tests.unit.assignors.small_groups import best, groups, same_cases, worth


def members(*owned: tuple[int, ...]) -> list[Member]:
    """Return members of topic t with these partitions."""
    return [
        Member(id=f"m{number}", topics=("t",), owned=tuple(TopicPartition("t", p) for p in mine))
        for number, mine in enumerate(owned)
    ]


def given_numbers(count: int, *owned: tuple[int, ...]) -> list[list[int]]:
    """Return the partition numbers of each member."""
    return [[p.partition for p in mine] for mine in assign("uniform", {"t": count}, members(*owned)).values()]


def test_extra_partitions_go_to_the_last_members_of_a_new_group() -> None:
    assert given_numbers(5, (), (), ()) == [[0], [1, 2], [3, 4]]


def test_extra_partitions_stay_with_the_first_members_that_hold_more() -> None:
    assert given_numbers(7, (3, 4), (5, 6), (0, 1, 2), ()) == [[3, 4], [5, 6], [0, 1], [2]]


def test_unassigned_partitions_are_given_out_before_revoked_ones() -> None:
    assert given_numbers(8, (0,), (1,), (2, 3, 4, 5, 6)) == [[0, 7], [1, 5, 6], [2, 3, 4]]


def test_partitions_of_several_topics_are_one_row() -> None:
    both = [Member(id=id_, topics=("b", "a")) for id_ in ("x", "y")]
    dealt = assign("uniform", {"a": 2, "b": 3}, both)
    assert dealt == {
        "x": [TopicPartition("a", 0), TopicPartition("a", 1)],
        "y": [TopicPartition("b", 0), TopicPartition("b", 1), TopicPartition("b", 2)],
    }


def test_topics_nobody_subscribes_to_any_more_are_forgotten() -> None:
    had = Member(id="x", topics=("a",), owned=(TopicPartition("gone", 0), TopicPartition("a", 1)))
    assert assign("uniform", {"a": 2, "gone": 1}, [had]) == {
        "x": [TopicPartition("a", 0), TopicPartition("a", 1)]
    }


@same_cases
@given(group=groups(members=6, partitions=9))
def test_assignment_of_a_small_group_is_optimal(group: Group) -> None:
    ours = assign("uniform", **group.question())
    assert faults(group, ours, complete=True) == []
    assert worth(group, ours)[:2] == best(group)[:2]
