"""The drop-ins as kafka-python's coordinator calls them, over its own wire classes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from restow.assignors import Assignor, register
from restow.assignors.adapters.kafka_python import CooperativeSticky, Range, RoundRobin, Sticky, adapter
from restow.errors import UnknownAssignor

if TYPE_CHECKING:
    from restow.assignors.adapters.kafka_python import KafkaPythonAssignor

ALL = [Range, RoundRobin, Sticky, CooperativeSticky]


class FakeCluster:
    """The part of ClusterMetadata that an assignor uses; partition p has its replica on broker p."""

    def __init__(self, partitions: dict[str, int], racks: tuple[str | None, ...] = ()) -> None:
        self._partitions = partitions
        self._racks = racks

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self._partitions[topic])) if topic in self._partitions else None

    def brokers(self) -> list[Any]:
        return [SimpleNamespace(node_id=i, rack=rack) for i, rack in enumerate(self._racks)]

    def is_replica_node(self, partition: Any, node_id: int) -> Any:
        return node_id if partition.partition == node_id else None


def joined(member: str, assignor: KafkaPythonAssignor, *topics: str, instance: str | None = None) -> Any:
    """Return a member as the leader gets it, after a trip over the wire."""
    said = ConsumerProtocolSubscription.decode(assignor.metadata(topics).encode())
    return SimpleNamespace(member_id=member, group_instance_id=instance, metadata=said)


def rebalance(
    cluster: FakeCluster, members: dict[str, KafkaPythonAssignor], generation: int
) -> dict[str, set[tuple[str, int]]]:
    """Rebalance once: the first member leads, and all members get their assignment."""
    leader = next(iter(members.values()))
    answer = leader.assign(cluster, [joined(name, assignor, "t") for name, assignor in members.items()])
    held = {}
    for name, assignor in members.items():
        told = ConsumerProtocolAssignment.decode(answer[name].encode())
        assignor.on_assignment(told, generation)
        held[name] = {tuple(partition) for partition in told.partitions()}
    return held


@pytest.mark.parametrize("drop_in", ALL)
def test_client_accepts_the_class(drop_in: type[KafkaPythonAssignor]) -> None:
    assert issubclass(drop_in, AbstractPartitionAssignor)
    assert (
        drop_in.name
        == {
            Range: "range",
            RoundRobin: "roundrobin",
            Sticky: "sticky",
            CooperativeSticky: "cooperative-sticky",
        }[drop_in]
    )


def test_only_cooperative_sticky_is_cooperative() -> None:
    assert CooperativeSticky().supported_protocols() == [RebalanceProtocol.COOPERATIVE]
    assert Sticky().supported_protocols() == [RebalanceProtocol.EAGER]


@pytest.mark.parametrize("drop_in", ALL)
def test_all_members_get_a_share_despite_topics_without_metadata(
    drop_in: type[KafkaPythonAssignor],
) -> None:
    leader = drop_in()
    members = [joined("a", leader, "t", "ghost"), joined("b", drop_in(), "t")]
    answer = leader.assign(FakeCluster({"t": 4}), members)
    held = {name: [tuple(p) for p in given.partitions()] for name, given in answer.items()}
    assert {name: len(mine) for name, mine in held.items()} == {"a": 2, "b": 2}
    assert len({p for mine in held.values() for p in mine}) == 4


def test_sticky_keeps_partitions_over_the_wire() -> None:
    cluster, one, two = FakeCluster({"t": 6}), Sticky(), Sticky()
    first = rebalance(cluster, {"a": one}, 1)
    second = rebalance(cluster, {"b": two, "a": one}, 2)
    assert second["a"] < first["a"]
    third = rebalance(cluster, {"c": Sticky(), "a": one, "b": two}, 3)
    assert third["a"] < second["a"]
    assert third["b"] < second["b"]
    assert [len(mine) for mine in third.values()] == [2, 2, 2]


def test_cooperative_sticky_hands_over_in_two_rounds() -> None:
    cluster, one, two = FakeCluster({"t": 4}), CooperativeSticky(), CooperativeSticky()
    rebalance(cluster, {"a": one}, 1)
    second = rebalance(cluster, {"a": one, "b": two}, 2)
    assert len(second["a"]) == 2
    assert second["b"] == set()
    third = rebalance(cluster, {"a": one, "b": two}, 3)
    assert third["a"] == second["a"]
    assert len(third["b"]) == 2


def test_static_members_are_sorted_by_their_instance_id() -> None:
    leader = Range()
    members = [
        joined("a", leader, "t", instance="z"),
        joined("b", Range(), "t", instance="y"),
    ]
    answer = leader.assign(FakeCluster({"t": 2}), members)
    assert [tuple(p) for p in answer["b"].partitions()] == [("t", 0)]


def test_racks_of_members_and_replicas_are_matched() -> None:
    leader = Range(rack="r1")
    members = [joined("a", leader, "t"), joined("b", Range(rack="r0"), "t")]
    answer = leader.assign(FakeCluster({"t": 2}, racks=("r0", "r1")), members)
    assert [tuple(p) for p in answer["a"].partitions()] == [("t", 1)]


def test_member_with_the_oldest_subscription_version_is_understood() -> None:
    old = ConsumerProtocolSubscription.decode(ConsumerProtocolSubscription(0, ["t"], b"").encode())
    leader = CooperativeSticky()
    members = [
        joined("a", leader, "t"),
        SimpleNamespace(member_id="b", group_instance_id=None, metadata=old),
    ]
    answer = leader.assign(FakeCluster({"t": 2}), members)
    assert {name: len(given.partitions()) for name, given in answer.items()} == {"a": 1, "b": 1}


class Greedy(Assignor):
    """Gives everything to the first member."""

    name = "greedy-test"

    def assign(self, partitions: Any, members: Any, partition_racks: Any = None) -> Any:
        given = {member.id: [] for member in members}
        given[members[0].id] = [(topic, p) for topic, count in partitions.items() for p in range(count)]
        return given


def test_any_registered_assignor_can_be_adapted(monkeypatch: pytest.MonkeyPatch) -> None:
    from restow.assignors import registry

    monkeypatch.setattr(registry, "_known", dict(registry._known))
    register(Greedy)
    greedy = adapter("greedy-test")
    assert (greedy.name, greedy.__name__) == ("greedy-test", "GreedyTest")
    held = rebalance(FakeCluster({"t": 3}), {"a": greedy(), "b": greedy()}, 1)
    assert {name: len(mine) for name, mine in held.items()} == {"a": 3, "b": 0}


def test_unknown_assignor_cannot_be_adapted() -> None:
    with pytest.raises(UnknownAssignor):
        adapter("nonsense")
