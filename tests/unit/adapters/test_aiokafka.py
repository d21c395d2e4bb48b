"""The drop-ins as aiokafka's coordinator calls them, over its own wire classes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from restow.assignors.adapters import kafka_python
from restow.assignors.adapters.aiokafka import Range, RoundRobin, Sticky, adapter
from restow.assignors.user_data import decode_claim
from restow.errors import InvalidInput, UnknownAssignor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.assignors.adapters.aiokafka import AiokafkaAssignor

ALL = [Range, RoundRobin, Sticky]


class FakeCluster:
    def __init__(self, partitions: Mapping[str, int]) -> None:
        self._partitions = partitions

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self._partitions[topic])) if topic in self._partitions else None


def said(assignor: AiokafkaAssignor | type[AiokafkaAssignor], *topics: str) -> ConsumerProtocolMemberMetadata:
    """Return a member's subscription as the leader gets it, after a trip over the wire."""
    return ConsumerProtocolMemberMetadata.decode(assignor.metadata(topics))


def rebalance(cluster: FakeCluster, members: dict[str, AiokafkaAssignor]) -> dict[str, set[tuple[str, int]]]:
    """Rebalance once: the first member leads, and all members get their assignment."""
    leader = next(iter(members.values()))
    answer = leader.assign(cluster, {name: said(assignor, "t") for name, assignor in members.items()})
    held = {}
    for name, assignor in members.items():
        told = ConsumerProtocolMemberAssignment.decode(answer[name].encode())
        assignor.on_assignment(told)
        held[name] = {tuple(partition) for partition in told.partitions()}
    return held


@pytest.mark.parametrize("drop_in", ALL)
def test_all_members_get_a_share_despite_topics_without_metadata(
    drop_in: type[AiokafkaAssignor],
) -> None:
    assert issubclass(drop_in, AbstractPartitionAssignor)
    leader = drop_in()
    answer = leader.assign(
        FakeCluster({"t": 4}), {"a": said(leader, "t", "ghost"), "b": said(drop_in(), "t")}
    )
    held = {name: [tuple(p) for p in given.partitions()] for name, given in answer.items()}
    assert {name: len(mine) for name, mine in held.items()} == {"a": 2, "b": 2}
    assert len({p for mine in held.values() for p in mine}) == 4


@pytest.mark.parametrize("drop_in", [Range, RoundRobin])
def test_class_works_for_assignors_without_memory(drop_in: type[AiokafkaAssignor]) -> None:
    answer = drop_in.assign(FakeCluster({"t": 2}), {"a": said(drop_in, "t")})
    drop_in.on_assignment(answer["a"])
    assert len(answer["a"].partitions()) == 2


def test_class_remembers_each_consumer_by_its_task() -> None:
    """aiokafka calls the class for all consumers, each in the task of its own rebalances."""
    given = {"a": [("t", [0, 1])], "b": [("t", [2, 3])]}

    async def consumer(name: str, others_are_done: asyncio.Barrier) -> ConsumerProtocolMemberMetadata:
        assert said(Sticky, "t").user_data in (None, b"")
        Sticky.on_assignment(ConsumerProtocolMemberAssignment(0, given[name], b""))
        await others_are_done.wait()
        return said(Sticky, "t")

    async def both() -> list[ConsumerProtocolMemberMetadata]:
        barrier = asyncio.Barrier(2)
        return await asyncio.gather(*(consumer(name, barrier) for name in given))

    claimed = [decode_claim(metadata.user_data).owned for metadata in asyncio.run(both())]
    assert claimed == [(("t", 0), ("t", 1)), (("t", 2), ("t", 3))]
    assert said(Sticky, "t").user_data in (None, b"")


def test_sticky_keeps_partitions_over_the_wire() -> None:
    cluster, one, two = FakeCluster({"t": 6}), Sticky(), Sticky()
    first = rebalance(cluster, {"a": one})
    second = rebalance(cluster, {"b": two, "a": one})
    assert second["a"] < first["a"]
    third = rebalance(cluster, {"c": Sticky(), "a": one, "b": two})
    assert third["a"] < second["a"]
    assert third["b"] < second["b"]
    assert [len(mine) for mine in third.values()] == [2, 2, 2]


@pytest.mark.parametrize("drop_in", ALL)
def test_newer_readers_understand_the_subscription(drop_in: type[AiokafkaAssignor]) -> None:
    assignor = drop_in()
    rebalance(FakeCluster({"t": 2}), {"a": assignor})
    read = ConsumerProtocolSubscription.decode(assignor.metadata({"t", "u"}))
    assert (read.topics, read.owned_partitions, read.generation_id, read.rack_id) == (
        ["t", "u"],
        [],
        -1,
        None,
    )


def test_bytes_equal_those_of_kafka_python() -> None:
    ours, theirs = Sticky(), kafka_python.Sticky()
    rebalance(FakeCluster({"t": 2}), {"a": ours})
    theirs._consumer.remember([("t", 0), ("t", 1)])
    assert ours.metadata({"t"}) == theirs.metadata({"t"}).encode()


def test_cooperative_assignor_is_refused() -> None:
    with pytest.raises(InvalidInput, match="aiokafka cannot rebalance cooperatively"):
        adapter("cooperative-sticky")


def test_adapter_makes_a_class_for_any_assignor() -> None:
    sticky = adapter("sticky")
    assert (sticky.name, sticky.__name__) == ("sticky", "Sticky")
    with pytest.raises(UnknownAssignor):
        adapter("nonsense")
