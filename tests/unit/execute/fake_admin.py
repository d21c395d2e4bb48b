"""A cluster in a few dictionaries, and a clock that advances only during a sleep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from restow.client import (
    BrokerError,
    BrokerLogDirs,
    ClusterView,
    Config,
    Node,
    PartitionReassignment,
    ReplicaOnDisk,
    Unreachable,
)
from restow.model import LogDir, Partition, ReplicaAssignment, Topic, TopicPartition
from restow.model.permissions import Permissions
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from restow.client import ConfigResource, NewTopic, TopicPartitionReplica
    from tests.clock import SleepingClock

MB = 10**6
TOTAL = 1000 * MB


@dataclass
class FakeAdmin:
    """An admin whose replicas are copied at `rate` bytes per second each, as the clock advances."""

    clock: SleepingClock
    brokers: set[int]
    rate: float = 10 * MB
    assignments: dict[TopicPartition, ReplicaAssignment] = field(default_factory=dict)
    leaders: dict[TopicPartition, int | None] = field(default_factory=dict)
    lagging: set[tuple[TopicPartition, int]] = field(default_factory=set)
    copies: dict[TopicPartition, dict[int, int]] = field(default_factory=dict)
    sizes: dict[TopicPartition, int] = field(default_factory=dict)
    set_: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    refuse: dict[TopicPartition, ErrorCode] = field(default_factory=dict)
    refuse_configs: dict[ConfigResource, ErrorCode] = field(default_factory=dict)
    down: bool = False
    silent: set[int] = field(default_factory=set)
    """Brokers in the metadata that do not answer."""
    calls: list[tuple[str, object]] = field(default_factory=list)
    most_moving: int = 0
    allowed: Permissions = field(default_factory=Permissions)
    cluster_id: str = "fake"
    topic_ids: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock.on_tick.append(self.tick)

    def add(self, topic: str, assignments: Sequence[tuple[int, ...]], size: int = 100 * MB) -> None:
        for number, replicas in enumerate(assignments):
            name = TopicPartition(topic, number)
            self.assignments[name] = ReplicaAssignment(replicas)
            self.leaders[name] = replicas[0]
            self.sizes[name] = size
            self.copies[name] = dict.fromkeys(replicas, size)

    def tick(self, seconds: float) -> None:
        for name, assignment in tuple(self.assignments.items()):
            if not assignment.is_moving:
                continue
            size, here = self.sizes[name], self.copies[name]
            if self.leaders[name] is None:
                continue
            for broker in assignment.adding:
                if broker in self.brokers:
                    here[broker] = min(size, int(here.get(broker, 0) + self.rate * seconds))
            if all(here.get(broker, 0) >= size for broker in assignment.target):
                self.assignments[name] = ReplicaAssignment(assignment.target)
                for broker in assignment.removing:
                    here.pop(broker, None)
                if self.leaders[name] not in assignment.target:
                    self.leaders[name] = assignment.target[-1]

    def isr(self, name: TopicPartition) -> tuple[int, ...]:
        return tuple(
            broker
            for broker in self.assignments[name].replicas
            if broker in self.brokers
            and self.copies[name].get(broker, 0) >= self.sizes[name]
            and (name, broker) not in self.lagging
        )

    def check(self) -> None:
        if self.down:
            raise Unreachable("nobody answers")

    async def describe_cluster(self) -> ClusterView:
        self.check()
        nodes = tuple(Node(id=broker, host="h", port=9092) for broker in sorted(self.brokers))
        return ClusterView(cluster_id=self.cluster_id, nodes=nodes)

    async def describe_topics(self, names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        self.check()
        found: dict[str, list[Partition]] = {}
        for name, assignment in sorted(self.assignments.items()):
            found.setdefault(name.topic, []).append(
                Partition(
                    number=name.partition,
                    replicas=assignment.replicas,
                    isr=self.isr(name),
                    leader=self.leaders[name],
                )
            )
        for name_ in names or ():
            if name_ not in found:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name_)
        return tuple(
            Topic(name=name_, partitions=tuple(partitions), id=self.topic_ids.get(name_, f"id of {name_}"))
            for name_, partitions in found.items()
            if names is None or name_ in names
        )

    async def describe_configs(
        self,
        of: Iterable[ConfigResource],
        keys: Collection[str] | None = None,
        patience_s: float | None = None,
    ) -> Mapping[ConfigResource, Mapping[str, Config] | BrokerError]:
        self.check()
        answer: dict[ConfigResource, Mapping[str, Config] | BrokerError] = {}
        known = {name.topic for name in self.assignments}
        for each in of:
            if each.of == "topic" and each.name not in known:
                answer[each] = BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif each.of == "broker" and each.name and int(each.name) not in self.brokers:
                answer[each] = BrokerError(ErrorCode.BROKER_NOT_AVAILABLE)
            else:
                source = "default broker" if each.of == "broker" and not each.name else each.of
                answer[each] = {
                    key: Config(name=key, value=value, source=source)
                    for key, value in self.set_.get(each, {}).items()
                    if keys is None or key in keys
                }
        return answer

    async def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> Mapping[ConfigResource, BrokerError | None]:
        self.check()
        self.calls.append(("alter_configs", dict(changes)))
        outcome: dict[ConfigResource, BrokerError | None] = {}
        for of, wanted in changes.items():
            if of in self.refuse_configs:
                outcome[of] = BrokerError(self.refuse_configs[of])
                continue
            here = self.set_.setdefault(of, {})
            for key, value in wanted.items():
                if value is None:
                    here.pop(key, None)
                else:
                    here[key] = value
            if not here:
                del self.set_[of]
            outcome[of] = None
        return outcome

    async def describe_log_dirs(
        self, brokers: Iterable[int], patience_s: float | None = None
    ) -> Mapping[int, BrokerLogDirs | BrokerError]:
        self.check()
        return {
            broker: BrokerLogDirs(
                log_dirs=(LogDir(path="/d", total_bytes=100 * TOTAL, usable_bytes=99 * TOTAL),),
                replicas=tuple(
                    ReplicaOnDisk(
                        partition=name, log_dir="/d", size_bytes=here[broker], lag_messages=0, future=False
                    )
                    for name, here in self.copies.items()
                    if broker in here
                ),
            )
            if broker in self.brokers - self.silent
            else BrokerError(ErrorCode.BROKER_NOT_AVAILABLE)
            for broker in brokers
        }

    async def alter_replica_log_dirs(
        self, targets: Mapping[TopicPartitionReplica, str]
    ) -> Mapping[TopicPartitionReplica, BrokerError | None]:
        raise NotImplementedError

    async def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> Mapping[TopicPartition, BrokerError | None]:
        self.check()
        self.calls.append(("reassign", dict(targets)))
        outcome: dict[TopicPartition, BrokerError | None] = {}
        for name, replicas in targets.items():
            if name not in self.assignments:
                outcome[name] = BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif name in self.refuse:
                outcome[name] = BrokerError(self.refuse[name])
            elif (
                replicas
                and not allow_replication_factor_change
                and len(replicas) != self.replication_factor(name)
            ):
                outcome[name] = BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR)
            elif replicas is None:
                self.cancel(name)
                outcome[name] = None
            else:
                self.assignments[name] = self.assignments[name].reassign_to(tuple(replicas))
                if not self.assignments[name].is_moving:
                    self.assignments[name] = ReplicaAssignment(tuple(replicas))
                outcome[name] = None
        moving = sum(each.is_moving for each in self.assignments.values())
        self.most_moving = max(self.most_moving, moving)
        return outcome

    def replication_factor(self, name: TopicPartition) -> int:
        return len(self.assignments[name].target)

    def cancel(self, name: TopicPartition) -> None:
        before = self.assignments[name]
        self.assignments[name] = ReplicaAssignment(before.origin)
        for broker in before.adding:
            self.copies[name].pop(broker, None)

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> Mapping[TopicPartition, PartitionReassignment]:
        self.check()
        wanted = None if partitions is None else set(partitions)
        return {
            name: PartitionReassignment(replicas=each.replicas, adding=each.adding, removing=each.removing)
            for name, each in self.assignments.items()
            if each.is_moving and (wanted is None or name in wanted)
        }

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, BrokerError | None]:
        self.check()
        names = tuple(partitions)
        self.calls.append(("elect", names))
        for name in names:
            self.leaders[name] = self.assignments[name].replicas[0]
        return dict.fromkeys(names)

    async def api_versions(self, broker: int) -> Mapping[int, tuple[int, int]]:
        return dict.fromkeys(range(90), (0, 9))

    async def permissions(self, topics: Sequence[str] = ()) -> Permissions:
        return self.allowed

    async def describe_metadata_quorum(self) -> None:
        return None

    async def controller(self) -> int | None:
        return min(self.brokers)

    async def create_topics(self, topics: Iterable[NewTopic]) -> Mapping[str, BrokerError | None]:
        raise NotImplementedError

    async def create_partitions(
        self, topic: str, partitions: int, by_hand: Sequence[Sequence[int]] | None = None
    ) -> None:
        raise NotImplementedError

    async def delete_topics(self, topics: Iterable[str]) -> Mapping[str, BrokerError | None]:
        raise NotImplementedError

    def remove(self, topic: str) -> None:
        for name in [each for each in self.assignments if each.topic == topic]:
            del self.assignments[name], self.leaders[name], self.copies[name], self.sizes[name]
        self.set_ = {of: values for of, values in self.set_.items() if of != ("topic", topic)}

    async def close(self) -> None:
        return
