"""The controller's view of the cluster: brokers, topics, replicas, leaders and their states.

A new controller fills it from the store, events keep it current, and it ends with the term.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.controller.errors import ControllerError
from restow.cluster.controller.states import PartitionState, ReplicaState, States
from restow.model import ReplicaAssignment, TopicPartition
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from restow.cluster.store.znodes import BrokerRegistration, TopicZNode


class Replica(NamedTuple):
    """One partition on one broker."""

    partition: TopicPartition
    broker_id: int


class Leadership(NamedTuple):
    """A partition's state node as last read or written."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    version: int
    """Version of the state znode; brokers call it the partition epoch."""
    recovery: int = 0


@dataclass(frozen=True, slots=True)
class RegisteredBroker:
    """A registered broker. The broker epoch changes with every registration."""

    id: int
    epoch: int
    registration: BrokerRegistration


class ControllerContext:
    """Mutable; only the controller's single worker changes it."""

    def __init__(self, broker_id: int, epoch: int) -> None:
        self.broker_id = broker_id
        self.epoch = epoch
        self.brokers: dict[int, RegisteredBroker] = {}
        """Live brokers, including those that are shutting down."""
        self.shutting_down: set[int] = set()
        self.topic_ids: dict[str, str | None] = {}
        self.assignments: dict[TopicPartition, ReplicaAssignment] = {}
        self.leaderships: dict[TopicPartition, Leadership] = {}
        self.replica_states: States[Replica, ReplicaState] = States(ReplicaState.NON_EXISTENT)
        self.partition_states: States[TopicPartition, PartitionState] = States(PartitionState.NON_EXISTENT)
        self.failed: defaultdict[int, set[TopicPartition]] = defaultdict(set)
        """By broker, the replicas in failed log dirs."""
        self.deleting: set[str] = set()
        """Topics queued for deletion."""
        self.blocked: set[str] = set()
        """Topics whose deletion waits for a dead broker or for a reassignment."""
        self._names: dict[str, str] = {}
        """By topic id."""
        self._partitions: dict[str, list[TopicPartition]] = {}
        self._on_broker: defaultdict[int, set[TopicPartition]] = defaultdict(set)

    def require_registered(self, broker_id: int, epoch: int, *, unknown: ErrorCode) -> None:
        """Raise ControllerError unless the broker is registered with that epoch, `unknown` if not at all."""
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise ControllerError(unknown, f"broker {broker_id} is not registered")
        if epoch != broker.epoch:
            raise ControllerError(
                ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} is not registered with epoch {epoch}"
            )

    # Topics

    def know_topic(self, name: str, topic: TopicZNode) -> tuple[TopicPartition, ...]:
        """Take over a topic's znode and return the partitions that were not known before."""
        self.topic_ids[name] = topic.topic_id
        if topic.topic_id is not None:
            self._names[topic.topic_id] = name
        known = self._partitions.setdefault(name, [])
        new = []
        for number, replicas in topic.partitions.items():
            partition = TopicPartition(name, number)
            if partition not in self.assignments:
                self.assign(partition, replicas)
                known.append(partition)
                new.append(partition)
        return tuple(new)

    def assign(self, partition: TopicPartition, replicas: ReplicaAssignment) -> None:
        """Set a partition's replicas."""
        for broker_id in self.assignments.get(partition, ReplicaAssignment(())).replicas:
            self._on_broker[broker_id].discard(partition)
            if broker_id not in replicas.replicas:
                self.failed[broker_id].discard(partition)
        self.assignments[partition] = replicas
        for broker_id in replicas.replicas:
            self._on_broker[broker_id].add(partition)

    def forget_topic(self, name: str) -> None:
        """Remove every trace of a topic."""
        for partition in self._partitions.pop(name, ()):
            for broker_id in self.assignments.pop(partition).replicas:
                self._on_broker[broker_id].discard(partition)
                self.failed[broker_id].discard(partition)
                self.replica_states.drop(Replica(partition, broker_id))
            self.leaderships.pop(partition, None)
            self.partition_states.drop(partition)
        if (topic_id := self.topic_ids.pop(name, None)) is not None:
            self._names.pop(topic_id, None)
        self.deleting.discard(name)
        self.blocked.discard(name)

    def topic_name(self, topic_id: str) -> str | None:
        """Return the name of the topic with that id."""
        return self._names.get(topic_id)

    def partitions_of(self, topic: str) -> tuple[TopicPartition, ...]:
        """Return the topic's partitions in the order in which the controller learned of them."""
        return tuple(self._partitions.get(topic, ()))

    def topic_node(self, topic: str) -> Mapping[int, ReplicaAssignment]:
        """Return the partitions as the topic's znode has them."""
        return {partition.partition: self.assignments[partition] for partition in self.partitions_of(topic)}

    # Replicas

    def replicas(self, partitions: Iterable[TopicPartition]) -> Iterator[Replica]:
        """Return every replica of these partitions."""
        for partition in partitions:
            for broker_id in self.assignments[partition].replicas:
                yield Replica(partition, broker_id)

    def partitions_on(self, brokers: Iterable[int]) -> set[TopicPartition]:
        """Return the partitions that have a replica on one of these brokers."""
        return set().union(*(self._on_broker.get(broker_id, ()) for broker_id in brokers))

    def replicas_on(self, brokers: Iterable[int]) -> tuple[Replica, ...]:
        """Return every replica on these brokers, in a fixed order."""
        return tuple(
            Replica(partition, broker_id)
            for broker_id in sorted(brokers)
            for partition in sorted(self._on_broker.get(broker_id, ()))
        )

    def is_online(self, replica: Replica, *, or_leaving: bool = False) -> bool:
        """Return whether its broker is alive and its log dir works."""
        partition, broker_id = replica
        if broker_id not in self.brokers or (broker_id in self.shutting_down and not or_leaving):
            return False
        return partition not in self.failed.get(broker_id, ())

    def online(self, partition: TopicPartition, *, or_leaving: bool = False) -> frozenset[int]:
        """Return the brokers on which the partition's replica is online."""
        return frozenset(
            broker_id
            for broker_id in self.assignments[partition].replicas
            if self.is_online(Replica(partition, broker_id), or_leaving=or_leaving)
        )

    def is_moving(self, partition: TopicPartition) -> bool:
        """Return whether its replicas are being reassigned."""
        return self.assignments[partition].is_moving

    def is_deleting(self, partition: TopicPartition) -> bool:
        """Return whether its topic is queued for deletion."""
        return partition.topic in self.deleting
