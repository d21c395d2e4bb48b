"""range: worked examples, and the rules with racks in a slow reference."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cmp_to_key
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from restow.assignors import Member, TopicPartition, assign
from tests.unit.assignors.small_groups import groups, same_cases

if TYPE_CHECKING:
    from tests.judge import Group


def numbers(answer: dict[str, list[TopicPartition]], topic: str = "t") -> dict[str, list[int]]:
    return {m: [p.partition for p in mine if p.topic == topic] for m, mine in answer.items()}


def test_first_members_get_one_more() -> None:
    members = [Member(id=m, topics=("t",)) for m in ("c", "a", "b")]
    assert numbers(assign("range", {"t": 8}, members)) == {"a": [0, 1, 2], "b": [3, 4, 5], "c": [6, 7]}


def test_first_members_get_one_more_of_every_topic() -> None:
    members = [Member(id=m, topics=("t", "u")) for m in ("a", "b")]
    answer = assign("range", {"t": 3, "u": 3}, members)
    assert {m: len(mine) for m, mine in answer.items()} == {"a": 4, "b": 2}


def test_some_members_get_nothing_if_there_are_more_than_partitions() -> None:
    members = [Member(id=m, topics=("t",)) for m in ("a", "b", "c")]
    assert numbers(assign("range", {"t": 2}, members)) == {"a": [0], "b": [1], "c": []}


def test_only_subscribers_count() -> None:
    members = [
        Member(id="a", topics=("u",)),
        Member(id="b", topics=("t",)),
        Member(id="c", topics=("t", "u")),
    ]
    answer = assign("range", {"t": 3, "u": 4}, members)
    assert numbers(answer, "t") == {"a": [], "b": [0, 1], "c": [2]}
    assert numbers(answer, "u") == {"a": [0, 1], "b": [], "c": [2, 3]}


def test_static_members_come_first_by_instance_id() -> None:
    members = [
        Member(id="a", topics=("t",)),
        Member(id="b", topics=("t",), instance_id="z"),
        Member(id="c", topics=("t",), instance_id="y"),
    ]
    assert numbers(assign("range", {"t": 4}, members)) == {"c": [0, 1], "b": [2], "a": [3]}


def test_static_members_keep_their_partitions_when_their_member_ids_change() -> None:
    before = [Member(id=f"one-{i}", topics=("t",), instance_id=f"host-{i}") for i in range(3)]
    after = [replace(m, id=f"{9 - i}-two") for i, m in enumerate(before)]
    first, second = (assign("range", {"t": 7}, members) for members in (before, after))
    assert [first[m.id] for m in before] == [second[m.id] for m in after]


def test_ids_sort_by_utf16_as_in_java() -> None:
    """U+FF5E is the lower code point, but U+1F600 begins with the lower unit D83D."""
    members = [Member(id="\uff5e", topics=("t",)), Member(id="\U0001f600", topics=("t",))]
    assert numbers(assign("range", {"t": 3}, members)) == {"\U0001f600": [0, 1], "\uff5e": [2]}
    static = [replace(m, id=f"{i}", instance_id=m.id) for i, m in enumerate(members)]
    assert numbers(assign("range", {"t": 3}, static)) == {"1": [0, 1], "0": [2]}


def test_single_topic_is_matched_member_by_member() -> None:
    members = [Member(id=m, topics=("t",), rack=rack) for m, rack in (("a", "x"), ("b", "y"), ("c", "z"))]
    racks = {"t": [["z"], ["y"], ["x"], ["x"], ["x"], ["y"], []]}
    assert numbers(assign("range", {"t": 7}, members, racks)) == {"a": [2, 3, 4], "b": [1, 5], "c": [0, 6]}


def test_topics_of_one_size_are_matched_together_even_if_only_one_calls_for_it() -> None:
    members = [Member(id=m, topics=("t", "u"), rack=rack) for m, rack in (("a", "x"), ("b", "y"))]
    racks = {"t": [["y"], ["x"]], "u": [["x", "y"], ["x", "y"]]}
    answer = assign("range", {"t": 2, "u": 2}, members, racks)
    assert numbers(answer, "t") == numbers(answer, "u") == {"a": [1], "b": [0]}


def test_topics_of_another_size_are_not_matched_unless_they_call_for_it() -> None:
    members = [Member(id=m, topics=("t", "u"), rack=rack) for m, rack in (("a", "x"), ("b", "y"))]
    racks = {"t": [["y"], ["x"]], "u": [["x", "y"]] * 3}
    answer = assign("range", {"t": 2, "u": 3}, members, racks)
    assert numbers(answer, "t") == {"a": [1], "b": [0]}
    assert numbers(answer, "u") == {"a": [0, 1], "b": [2]}


def test_member_without_a_rack_matches_everything() -> None:
    members = [Member(id="a", topics=("t",)), Member(id="b", topics=("t",), rack="x")]
    racks = {"t": [["x"], ["x"], ["y"], ["y"]]}
    assert numbers(assign("range", {"t": 4}, members, racks)) == {"a": [0, 1], "b": [2, 3]}
    last = [replace(members[0], id="c"), members[1]]
    assert numbers(assign("range", {"t": 4}, last, racks)) == {"b": [0, 1], "c": [2, 3]}
    empty = [replace(members[0], rack=""), members[1]]
    assert numbers(assign("range", {"t": 4}, empty, racks)) == {"a": [0, 1], "b": [2, 3]}


def test_unknown_racks_of_replicas_match_no_member() -> None:
    members = [Member(id=m, topics=("t",), rack=rack) for m, rack in (("a", "x"), ("b", "y"))]
    racks = {"t": [[None, "y"], [None], ["x", None]]}
    assert numbers(assign("range", {"t": 3}, members, racks)) == {"a": [1, 2], "b": [0]}


@same_cases
@given(group=groups(members=6, partitions=24, claims=False, racked=True), static=st.integers(0, 3))
def test_range_equals_the_reference(group: Group, static: int) -> None:
    members = [replace(m, instance_id=f"i{9 - i}") if i < static else m for i, m in enumerate(group.members)]
    group = replace(group, members=tuple(members))
    assert as_sets(assign("range", **group.question())) == as_sets(slow_range(group))


@same_cases
@given(group=groups(members=5, partitions=18, claims=False, racked=True), size=st.integers(0, 6))
def test_range_equals_the_reference_for_topics_of_one_size(group: Group, size: int) -> None:
    assert group.partition_racks is not None
    racks = {t: [*r, *([["east"], ["west", "north"]] * 3)][:size] for t, r in group.partition_racks.items()}
    alike = replace(group, partitions=dict.fromkeys(racks, size), partition_racks=racks)
    assert as_sets(assign("range", **alike.question())) == as_sets(slow_range(alike))


@same_cases
@given(group=groups(members=6, partitions=24, claims=False, racked=True))
def test_racks_change_who_gets_one_more_but_not_how_many_do(group: Group) -> None:
    near = assign("range", **group.question())
    plain = assign("range", group.partitions, group.members)
    for topic in group.partitions:
        assert sorted(map(len, numbers(near, topic).values())) == sorted(
            map(len, numbers(plain, topic).values())
        )


def as_sets(answer: dict[str, list[TopicPartition]]) -> dict[str, set[TopicPartition]]:
    assert all(len(set(mine)) == len(mine) for mine in answer.values())
    return {member: set(mine) for member, mine in answer.items()}


class Table:
    """One topic with its members in order, and their partitions so far."""

    def __init__(self, name: str, members: list[Member], racks: list[set[str]]) -> None:
        self.name, self.members, self.racks = name, members, racks
        self.each, self.extras = divmod(len(racks), len(members))
        self.has: dict[str, list[int]] = {m.id: [] for m in members}
        everywhere = set().union(*racks)
        self.calls = any(m.rack in everywhere for m in members) and any(r != everywhere for r in racks)

    def room(self, member: Member) -> int:
        return self.each + (1 if self.extras else 0) - len(self.has[member.id])

    def give(self, member: Member, partition: int) -> None:
        self.has[member.id].append(partition)
        if len(self.has[member.id]) == self.each + 1:
            self.extras -= 1

    def matches(self, member: Member, partition: int) -> bool:
        return member.rack is None or member.rack in self.racks[partition]

    def unassigned(self) -> list[int]:
        given = {p for mine in self.has.values() for p in mine}
        return [p for p in range(len(self.racks)) if p not in given]


def slow_range(group: Group) -> dict[str, list[TopicPartition]]:
    assert group.partition_racks is not None
    members = sorted(group.members, key=cmp_to_key(in_line))
    tables = [
        Table(topic, wanting, [set(r) for r in group.partition_racks[topic]])
        for topic, count in group.partitions.items()
        if count > 0 and (wanting := [m for m in members if topic in m.topics])
    ]
    if any(table.calls for table in tables):
        match(tables)
    for table in tables:
        for member in table.members:
            for partition in table.unassigned()[: max(table.room(member), 0)]:
                table.give(member, partition)
    return {
        m.id: [TopicPartition(t.name, p) for t in tables for p in t.has.get(m.id, ())] for m in group.members
    }


def match(tables: list[Table]) -> None:
    alike: dict[tuple[object, ...], list[Table]] = defaultdict(list)
    for table in tables:
        alike[tuple(m.id for m in table.members), len(table.racks)].append(table)
    for together in alike.values():
        if len(together) > 1:
            for partition in range(len(together[0].racks)):
                for member in together[0].members:
                    if all(t.matches(member, partition) and t.room(member) > 0 for t in together):
                        for table in together:
                            table.give(member, partition)
                        break
        elif together[0].calls:
            (table,) = together
            for member in table.members:
                near = [p for p in table.unassigned() if table.matches(member, p)]
                for partition in near[: max(table.room(member), 0)]:
                    table.give(member, partition)


def in_line(one: Member, other: Member) -> int:
    """Compare members: static first, by instance id; the others by member id; strings by UTF-16 units."""
    if (one.instance_id is None) != (other.instance_id is None):
        return 1 if one.instance_id is None else -1
    left, right = (units(m.id if m.instance_id is None else m.instance_id) for m in (one, other))
    return (left > right) - (left < right)


def units(text: str) -> list[int]:
    data = text.encode("utf-16-le")
    return [data[i] + 256 * data[i + 1] for i in range(0, len(data), 2)]
