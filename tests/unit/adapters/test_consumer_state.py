"""A consumer's subscription when it joins, and its assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest

from restow.assignors import Member, TopicPartition, registry
from restow.assignors.adapters.consumer_state import ConsumerState
from restow.assignors.range import Range
from restow.assignors.user_data import decode_claim, decode_generation
from restow.errors import UnknownAssignor

if TYPE_CHECKING:
    from collections.abc import Sequence


def test_new_consumer_claims_nothing() -> None:
    said = ConsumerState("sticky").subscription({"b", "a"})
    assert (said.topics, said.user_data, said.owned, said.generation) == (("a", "b"), None, (), -1)


def test_sticky_sends_its_partitions_in_user_data_alone() -> None:
    consumer = ConsumerState("sticky")
    consumer.remember([("t", 1), ("t", 0)], 7)
    said = consumer.subscription({"t"})
    assert said.user_data is not None
    assert decode_claim(said.user_data) == ((("t", 1), ("t", 0)), 7)
    assert (said.owned, said.generation) == ((), 7)


def test_cooperative_sticky_sends_its_partitions_in_the_subscription() -> None:
    consumer = ConsumerState("cooperative-sticky")
    consumer.remember([("t", 1), ("u", 3), ("t", 0)], 7)
    said = consumer.subscription({"t", "u"})
    assert said.owned == (("t", (0, 1)), ("u", (3,)))
    assert said.user_data is not None
    assert decode_generation(said.user_data) == said.generation == 7


def test_cooperative_sticky_no_longer_claims_topics_it_has_unsubscribed_from() -> None:
    """The client revokes them before it joins; a claim would block them for a round."""
    consumer = ConsumerState("cooperative-sticky")
    consumer.remember([("t", 1), ("u", 3)], 7)
    assert consumer.subscription({"t"}).owned == (("t", (1,)),)


def test_seats_do_not_share_their_assignments() -> None:
    one, other = ConsumerState("sticky"), ConsumerState("sticky")
    one.remember([("t", 0)], 1)
    assert other.subscription({"t"}).user_data is None


def test_range_sends_only_its_rack() -> None:
    consumer = ConsumerState("range", rack="r1")
    consumer.remember([("t", 0)], 4)
    said = consumer.subscription({"t"})
    assert (said.user_data, said.owned, said.rack) == (None, (), "r1")


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky", "uniform"])
def test_topics_without_metadata_are_left_out(name: str) -> None:
    known = {"t": {0, 1}, "empty": set()}
    members = [Member(id="a", topics=("ghost", "t")), Member(id="b", topics=("empty", "t"))]
    given = ConsumerState(name).assign(members, known.get)
    assert sorted(p for mine in given.values() for p in mine) == [("t", 0), ("t", 1)]
    assert ConsumerState(name).assign(members[:1], {}.get) == {"a": []}


def test_partition_missing_from_the_metadata_does_not_hide_the_last_one() -> None:
    given = ConsumerState("range").assign([Member(id="a", topics=("t",))], {"t": {0, 2}}.get)
    assert given == {"a": [TopicPartition("t", p) for p in range(3)]}


def test_racks_are_looked_up_only_if_a_member_has_one() -> None:
    asked = []

    def racks_of(partitions: dict[str, int]) -> dict[str, list[list[str]]]:
        asked.append(partitions)
        return {"t": [["r1"], ["r0"]]}

    without = [Member(id="a", topics=("t",)), Member(id="b", topics=("t",))]
    ConsumerState("range").assign(without, {"t": {0, 1}}.get, racks_of)
    assert asked == []
    racked = [Member(id="a", topics=("t",), rack="r0"), Member(id="b", topics=("t",), rack="r1")]
    given = ConsumerState("range").assign(racked, {"t": {0, 1}}.get, racks_of)
    assert given == {"a": [("t", 1)], "b": [("t", 0)]}
    assert asked == [{"t": 2}]


def test_unknown_name_is_refused_at_once() -> None:
    with pytest.raises(UnknownAssignor):
        ConsumerState("nonsense")


def test_assignor_hears_what_its_consumer_was_assigned_and_when(monkeypatch: pytest.MonkeyPatch) -> None:
    class Curious(Range):
        heard: ClassVar[list[tuple[tuple[TopicPartition, ...], int]]] = []

        def on_assignment(self, assigned: Sequence[TopicPartition], generation: int) -> None:
            self.heard.append((tuple(assigned), generation))

    monkeypatch.setitem(registry._known, "range", Curious())
    consumer = ConsumerState("range")
    consumer.remember([("t", 1)], 7)
    consumer.remember([], 8)
    assert Curious.heard == [((TopicPartition("t", 1),), 7), ((), 8)]
