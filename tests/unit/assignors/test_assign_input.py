"""What `assign` refuses, with a sentence, and what it takes in its stride."""

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


def test_an_unknown_assignor_is_answered_with_those_there_are() -> None:
    with pytest.raises(UnknownAssignor) as caught:
        assign("round-robin", {"t": 1}, [Member(id="a", topics=("t",))])
    assert "'round-robin'" in str(caught.value)
    for name in names():
        assert name in str(caught.value)


def test_the_four_of_kafka_are_there() -> None:
    assert set(NAMES) <= set(names())


@every_assignor
def test_a_member_twice(name: str) -> None:
    with pytest.raises(InvalidGroup, match="'a' is there twice"):
        assign(name, {"t": 1}, [Member(id="a", topics=("t",)), Member(id="a", topics=("u",))])


@every_assignor
def test_an_instance_id_twice(name: str) -> None:
    members = [Member(id=m, topics=("t",), instance_id="host-1") for m in ("a", "b")]
    with pytest.raises(InvalidGroup, match=r"'a' and 'b'.*'host-1'"):
        assign(name, {"t": 1}, members)


@every_assignor
@pytest.mark.parametrize("instance_id", [5, b"host", ["host"]])
def test_an_instance_id_that_is_no_string(name: str, instance_id: Any) -> None:
    with pytest.raises(InvalidGroup, match="'a'"):
        assign(name, {"t": 1}, [Member(id="a", topics=("t",), instance_id=instance_id)])


@every_assignor
@pytest.mark.parametrize("id_", [None, 5, b"a", ("a",)])
def test_an_id_that_is_no_string(name: str, id_: Any) -> None:
    with pytest.raises(InvalidGroup, match="id must be a string"):
        assign(name, {"t": 1}, [Member(id=id_, topics=("t",))])


@every_assignor
@pytest.mark.parametrize("topics", ["t", "", None, 5, (5,), (None,), [["t"]]])
def test_topics_that_are_no_names(name: str, topics: Any) -> None:
    with pytest.raises(InvalidGroup, match=r"'a'.*topics"):
        assign(name, {"t": 1}, [Member(id="a", topics=topics)])


@every_assignor
@pytest.mark.parametrize("topics", [["t"], frozenset({"t"}), ("t", "t")])
def test_any_collection_of_topics_will_do(name: str, topics: Any) -> None:
    members = [Member(id="a", topics=topics), Member(id="b", topics=("t",))]
    assert assign(name, {"t": 2}, members) == {"a": [T0], "b": [T1]}


@every_assignor
@pytest.mark.parametrize("count", [-1, True, False, 1.0, 2.5, "3", None, 2**31, 10**30, float("nan")])
def test_counts_that_cannot_be(name: str, count: Any) -> None:
    with pytest.raises(InvalidGroup, match=r"topic 't'.*number of partitions"):
        assign(name, {"ok": 1, "t": count}, [Member(id="a", topics=("ok",))])


@every_assignor
@pytest.mark.parametrize("racks", [[["r"]], [["r"]] * 3, [["r"]] * 1000])
def test_racks_for_another_number_of_partitions(name: str, racks: list[list[str]]) -> None:
    with pytest.raises(InvalidGroup, match=f"topic 't' has 2 partitions but racks for {len(racks)}"):
        assign(name, {"t": 2}, [Member(id="a", topics=("t",), rack="r")], {"t": racks})


@every_assignor
@pytest.mark.parametrize("racks", [None, 3, [None, None], ["r", "s"], "rs"])
def test_racks_that_are_none(name: str, racks: Any) -> None:
    """A string where a list of racks should be would be taken for its letters."""
    members = [Member(id="a", topics=("t",), rack="r"), Member(id="b", topics=("t",), rack="s")]
    with pytest.raises(InvalidGroup, match="'t'"):
        assign(name, {"t": 2}, members, {"t": racks})


@every_assignor
def test_racks_may_be_missing_or_of_topics_that_are_not_there(name: str) -> None:
    members = [Member(id="a", topics=("t",), rack="r"), Member(id="b", topics=("t",))]
    expected = {"a": [T0], "b": [T1]}
    for racks in ({}, {"t": []}, {"gone": [["r"]]}, {"t": [[], []]}, {"t": [[None], [None]]}):
        assert assign(name, {"t": 2}, members, racks) == expected


@every_assignor
def test_a_group_of_nobody(name: str) -> None:
    assert assign(name, {"t": 3}, []) == {}
    assert assign(name, {}, ()) == {}


@every_assignor
def test_members_may_come_from_anything_that_can_be_gone_through(name: str) -> None:
    assert assign(name, {"t": 2}, (Member(id=m, topics=("t",)) for m in "ab")) == {"a": [T0], "b": [T1]}


@every_assignor
def test_no_topics(name: str) -> None:
    assert assign(name, {}, [Member(id="a", topics=("t",)), Member(id="b", topics=())]) == {"a": [], "b": []}


@every_assignor
def test_a_subscription_to_nothing(name: str) -> None:
    members = [Member(id="a", topics=()), Member(id="b", topics=("t",))]
    assert assign(name, {"t": 2}, members) == {"a": [], "b": [T0, T1]}
    assert assign(name, {"t": 2}, members[:1]) == {"a": []}


@every_assignor
def test_topics_without_metadata_break_nothing(name: str) -> None:
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
def test_a_topic_that_only_the_cluster_knows_is_nobodys(name: str) -> None:
    assert assign(name, {"t": 1, "other": 5}, [Member(id="a", topics=("t",))]) == {"a": [T0]}


@every_assignor
def test_one_member_gets_everything_and_of_many_some_get_nothing(name: str) -> None:
    assert assign(name, {"t": 2}, [Member(id="a", topics=("t",))]) == {"a": [T0, T1]}
    many = [Member(id=f"m{i}", topics=("t",)) for i in range(5)]
    assert assign(name, {"t": 2}, many) == {"m0": [T0], "m1": [T1], "m2": [], "m3": [], "m4": []}
