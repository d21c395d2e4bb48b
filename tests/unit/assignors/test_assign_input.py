"""Input that `assign` refuses with a message, and input that it accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from restow.assignors import Member, TopicPartition, assign, names
from restow.errors import InvalidGroup, UnknownAssignor
from tests.unit.assignors.small_groups import NAMES

if TYPE_CHECKING:
    from typing import Any

T0, T1 = (TopicPartition("t", p) for p in range(2))

every_assignor = pytest.mark.parametrize("name", NAMES)


def test_unknown_assignor_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownAssignor) as caught:
        assign("round-robin", {"t": 1}, [Member(id="a", topics=("t",))])
    assert "'round-robin'" in str(caught.value)
    for name in names():
        assert name in str(caught.value)


def test_four_assignors_of_kafka_are_registered() -> None:
    assert set(NAMES) <= set(names())


@every_assignor
def test_duplicate_member_is_refused(name: str) -> None:
    with pytest.raises(InvalidGroup, match="'a' is there twice"):
        assign(name, {"t": 1}, [Member(id="a", topics=("t",)), Member(id="a", topics=("u",))])


@every_assignor
def test_duplicate_instance_id_is_refused(name: str) -> None:
    members = [Member(id=m, topics=("t",), instance_id="host-1") for m in ("a", "b")]
    with pytest.raises(InvalidGroup, match=r"'a' and 'b'.*'host-1'"):
        assign(name, {"t": 1}, members)


@every_assignor
@pytest.mark.parametrize("instance_id", [5, b"host", ["host"]])
def test_instance_id_that_is_no_string_is_refused(name: str, instance_id: Any) -> None:
    with pytest.raises(InvalidGroup, match="'a'"):
        assign(name, {"t": 1}, [Member(id="a", topics=("t",), instance_id=instance_id)])


@every_assignor
@pytest.mark.parametrize("id_", [None, 5, b"a", ("a",)])
def test_member_id_that_is_no_string_is_refused(name: str, id_: Any) -> None:
    with pytest.raises(InvalidGroup, match="id must be a string"):
        assign(name, {"t": 1}, [Member(id=id_, topics=("t",))])


@every_assignor
@pytest.mark.parametrize("topics", ["t", "", None, 5, (5,), (None,), [["t"]]])
def test_topics_that_are_no_names_are_refused(name: str, topics: Any) -> None:
    with pytest.raises(InvalidGroup, match=r"'a'.*topics"):
        assign(name, {"t": 1}, [Member(id="a", topics=topics)])


@every_assignor
@pytest.mark.parametrize("topics", [["t"], frozenset({"t"}), ("t", "t")])
def test_any_collection_of_topics_is_accepted(name: str, topics: Any) -> None:
    members = [Member(id="a", topics=topics), Member(id="b", topics=("t",))]
    assert assign(name, {"t": 2}, members) == {"a": [T0], "b": [T1]}


@every_assignor
@pytest.mark.parametrize("count", [-1, True, False, 1.0, 2.5, "3", None, 2**31, 10**30, float("nan")])
def test_invalid_partition_counts_are_refused(name: str, count: Any) -> None:
    with pytest.raises(InvalidGroup, match=r"topic 't'.*number of partitions"):
        assign(name, {"ok": 1, "t": count}, [Member(id="a", topics=("ok",))])


@every_assignor
@pytest.mark.parametrize("racks", [[["r"]], [["r"]] * 3, [["r"]] * 1000])
def test_racks_for_another_number_of_partitions_are_refused(name: str, racks: list[list[str]]) -> None:
    with pytest.raises(InvalidGroup, match=f"topic 't' has 2 partitions but racks for {len(racks)}"):
        assign(name, {"t": 2}, [Member(id="a", topics=("t",), rack="r")], {"t": racks})


@every_assignor
@pytest.mark.parametrize("racks", [None, 3, [None, None], ["r", "s"], "rs"])
def test_invalid_racks_are_refused(name: str, racks: Any) -> None:
    """A string in the place of a list of racks would be read as its letters."""
    members = [Member(id="a", topics=("t",), rack="r"), Member(id="b", topics=("t",), rack="s")]
    with pytest.raises(InvalidGroup, match="'t'"):
        assign(name, {"t": 2}, members, {"t": racks})


@every_assignor
def test_racks_may_be_missing_or_of_unknown_topics(name: str) -> None:
    members = [Member(id="a", topics=("t",), rack="r"), Member(id="b", topics=("t",))]
    expected = {"a": [T0], "b": [T1]}
    for racks in ({}, {"t": []}, {"gone": [["r"]]}, {"t": [[], []]}, {"t": [[None], [None]]}):
        assert assign(name, {"t": 2}, members, racks) == expected


@every_assignor
def test_group_without_members_has_an_empty_assignment(name: str) -> None:
    assert assign(name, {"t": 3}, []) == {}
    assert assign(name, {}, ()) == {}


@every_assignor
def test_members_may_be_any_iterable(name: str) -> None:
    assert assign(name, {"t": 2}, (Member(id=m, topics=("t",)) for m in "ab")) == {"a": [T0], "b": [T1]}


@every_assignor
def test_group_without_topics_assigns_nothing(name: str) -> None:
    assert assign(name, {}, [Member(id="a", topics=("t",)), Member(id="b", topics=())]) == {"a": [], "b": []}


@every_assignor
def test_member_without_subscription_gets_nothing(name: str) -> None:
    members = [Member(id="a", topics=()), Member(id="b", topics=("t",))]
    assert assign(name, {"t": 2}, members) == {"a": [], "b": [T0, T1]}
    assert assign(name, {"t": 2}, members[:1]) == {"a": []}


@every_assignor
def test_topics_without_metadata_are_skipped(name: str) -> None:
    members = [
        Member(id="a", topics=("ghost", "t"), owned=(TopicPartition("ghost", 0), T1), generation=1),
        Member(id="b", topics=("t", "empty"), owned=(TopicPartition("empty", 0), T0), generation=1),
        Member(id="c", topics=("ghost",), owned=(TopicPartition("ghost", 1),), generation=1),
    ]
    answer = assign(name, {"t": 2, "empty": 0}, members)
    assert answer["c"] == []
    assert sorted(answer["a"] + answer["b"]) == [T0, T1]
    assert len(answer["a"]) == 1


@every_assignor
def test_topic_without_subscribers_is_not_assigned(name: str) -> None:
    assert assign(name, {"t": 1, "other": 5}, [Member(id="a", topics=("t",))]) == {"a": [T0]}


@every_assignor
def test_single_member_gets_everything_and_of_many_some_get_nothing(name: str) -> None:
    assert assign(name, {"t": 2}, [Member(id="a", topics=("t",))]) == {"a": [T0, T1]}
    many = [Member(id=f"m{i}", topics=("t",)) for i in range(5)]
    first, second = ("m3", "m4") if name == "uniform" else ("m0", "m1")  # uniform favours the last
    given = {member.id: [] for member in many} | {first: [T0], second: [T1]}
    assert assign(name, {"t": 2}, many) == given
