"""The judge accepts what Kafka's rules allow and finds violations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from restow.model import Member, TopicPartition
from tests.judge import Group, balance_score, contested, faults, judge, owners_before, taken, unassigned

P0, P1, P2, P3 = (TopicPartition("t", p) for p in range(4))
A = Member(id="a", topics=("t",), owned=(P0, P1), generation=3)
B = Member(id="b", topics=("t",), owned=(P2, P3), generation=3)
GROUP = Group(partitions={"t": 4, "empty": 0}, members=(A, B))
KEPT = {"a": [P0, P1], "b": [P2, P3]}
SWAPPED = {"a": [P2, P1], "b": [P0, P3]}


def test_judge_accepts_kafkas_own_result() -> None:
    for name in ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform"):
        assert judge(name, GROUP, KEPT, KEPT) == []


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"a": [P0, P1], "b": [P1, P2, P3]}, "t-1 is given 2 times"),
        ({"a": [P0, P0, P1], "b": [P2, P3]}, "t-0 is given 2 times"),
        ({"a": [P0, P1], "b": [P2]}, "nobody gets t-3"),
        ({"a": [P0, P1, P2, P3]}, "answers for ['a'] in a group of ['a', 'b']"),
        ({"a": [P0, P1, TopicPartition("t", 4)], "b": [P2, P3]}, "t-4 does not exist"),
        ({"a": [P0, P1, TopicPartition("t", -1)], "b": [P2, P3]}, "t--1 does not exist"),
        (
            {"a": [P0, P1, TopicPartition("empty", 0)], "b": [P2, P3]},
            "a gets empty-0 and does not subscribe to it",
        ),
    ],
)
def test_judge_finds_faults(given: dict[str, list[TopicPartition]], fault: str) -> None:
    assert fault in faults(GROUP, given, complete=True)
    assert fault in judge("sticky", GROUP, given, KEPT)


def test_judge_checks_order_for_roundrobin_but_not_for_range() -> None:
    turned = {"a": [P1, P0], "b": [P2, P3]}
    assert judge("range", GROUP, turned, KEPT) == []
    assert judge("roundrobin", GROUP, turned, KEPT) != []
    assert judge("range", GROUP, SWAPPED, KEPT) != []


def test_judge_refuses_sticky_result_less_even_or_with_more_moves() -> None:
    assert judge("sticky", GROUP, SWAPPED, KEPT) == [
        "takes 2 partitions from their owners, where Kafka takes 0"
    ]
    uneven = {"a": [P0, P1, P2], "b": [P3]}
    assert judge("sticky", GROUP, uneven, KEPT) == ["balance score 2, where Kafka has 0"]
    assert judge("sticky", GROUP, SWAPPED, uneven) == [], "more even outweighs more taken"


def test_judge_refuses_partitions_that_cooperative_sticky_leaves_out_needlessly() -> None:
    held_back = {"a": [P0], "b": [P2, P3]}
    assert judge("cooperative-sticky", GROUP, held_back, held_back) == []
    assert judge("cooperative-sticky", GROUP, held_back, KEPT) == [
        "takes 1 partitions from their owners, where Kafka takes 0",
        "leaves 1 unassigned, where Kafka leaves 0",
    ]


def test_judge_refuses_cooperative_sticky_handover_from_current_owner() -> None:
    assert "b gets t-1, which a still holds" in judge(
        "cooperative-sticky", GROUP, {"a": [P0], "b": [P1, P2, P3]}, {"a": [P0], "b": [P2, P3]}
    )


def test_owner_is_the_claimant_with_the_highest_generation() -> None:
    stale = replace(B, owned=(P1,), generation=2)
    assert owners_before(replace(GROUP, members=(A, stale))) == {P0: "a", P1: "a"}
    equal = replace(B, owned=(P1, P2))
    assert owners_before(replace(GROUP, members=(A, equal))) == {P0: "a", P2: "b"}
    silent = replace(B, owned=(P1, P2), generation=None)
    assert owners_before(replace(GROUP, members=(A, silent))) == {P0: "a", P1: "a", P2: "b"}


def test_judge_lets_cooperative_sticky_withhold_partition_with_two_claimants() -> None:
    group = replace(GROUP, members=(A, replace(B, owned=(P1, P2, P3))))
    assert contested(group) == {P1}
    assert judge("cooperative-sticky", group, {"a": [P0], "b": [P2, P3]}, KEPT) == []


def test_judge_measures_balance_and_moves() -> None:
    assert balance_score({"a": [P0, P1, P2], "b": [P3], "c": []}) == 2 + 3 + 1
    assert unassigned(GROUP, {"a": [P0], "b": [P3]}) == {P1, P2}
    assert taken(GROUP, {"a": [P0], "b": [P1, P3]}) == {P1, P2}
    gone = replace(A, owned=(TopicPartition("gone", 0), TopicPartition("t", 9)))
    assert taken(replace(GROUP, members=(gone, B)), {"a": [], "b": [P2, P3]}) == set()


def test_judge_of_uniform_compares_exactly_only_where_members_want_the_same() -> None:
    assert judge("uniform", GROUP, SWAPPED, KEPT) != []
    unlike = replace(GROUP, partitions={"t": 4, "u": 1}, members=(replace(A, topics=("t", "u")), B))
    more = {"a": [P0, P1, TopicPartition("u", 0)], "b": [P2, P3]}
    swapped = {"a": [P2, P1, TopicPartition("u", 0)], "b": [P0, P3]}
    assert judge("uniform", unlike, swapped, swapped) == []
    assert judge("uniform", unlike, swapped, more) == [
        "takes 2 partitions from their owners, where Kafka takes 0"
    ]
