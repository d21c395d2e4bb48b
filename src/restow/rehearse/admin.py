"""The admin of a rehearsed cluster: the executor asks it as it asks any other.

Every request takes a little virtual time. Nothing moves but through the flow model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.client import (
    BrokerError,
    BrokerLogDirs,
    ClusterView,
    Config,
    ConfigResource,
    Node,
    PartitionReassignment,
    ReplicaOnDisk,
)
from restow.execute.throttle.throttles import DIR_RATE, FOLLOWER_RATE, LEADER_RATE
from restow.model import Partition, Topic, TopicPartition
from restow.model.permissions import Permissions
from restow.plan.flow.copies import CopyKey
from restow.plan.schedule.traffic import Way
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import NoReturn

    from restow.client import NewTopic, TopicPartitionReplica
    from restow.model import BrokerId, LogDir
    from restow.rehearse.clock import RehearsalClock
    from restow.rehearse.cluster import RehearsedCluster

_RATES = {LEADER_RATE: Way.SENT, FOLLOWER_RATE: Way.RECEIVED, DIR_RATE: Way.WITHIN}
_MIN_INSYNC = "min.insync.replicas"


_NO_TOPICS = "a rehearsal neither makes nor changes topics"


class RehearsedAdmin:
    """`restow.client.Admin` on a rehearsed cluster."""

    def __init__(self, cluster: RehearsedCluster, clock: RehearsalClock, request_s: float) -> None:
        self._cluster, self._clock, self._request_s = cluster, clock, request_s
        snapshot = cluster.snapshot
        self._configs: dict[ConfigResource, dict[str, str]] = {
            ConfigResource("broker", ""): dict(snapshot.default_configs)
        }
        for broker in snapshot.brokers:
            self._configs[ConfigResource("broker", str(broker.id))] = dict(broker.configs)
        for topic in snapshot.topics:
            self._configs[ConfigResource("topic", topic.name)] = dict(topic.configs)
        self._topics = {topic.name: topic for topic in snapshot.topics}
        for of, key, value in self._rates():
            self._throttle(of, key, value)
        cluster.movement.links_changed()
        cluster.changed.update(self._topics)

    def _rates(self) -> list[tuple[str, str, str]]:
        """Return the throttles that somebody has set before."""
        return [
            (of.name, key, value)
            for of, configs in self._configs.items()
            if of.of == "broker" and of.name
            for key, value in configs.items()
            if key in _RATES
        ]

    def _throttle(self, broker: str, key: str, value: str | None) -> None:
        rate = None if value is None else float(value)
        self._cluster.movement.links.throttle(_RATES[key], int(broker), rate)

    async def _asked(self) -> None:
        await self._clock.pass_time(self._request_s)
        self._cluster.catch_up(self._clock.monotonic_s())
        for name in self._cluster.changed:
            self._topics[name] = self._topic(self._topics[name])
        self._cluster.changed.clear()

    def _topic(self, topic: Topic) -> Topic:
        states = self._cluster.partitions_of(topic.name, (each.number for each in topic.partitions))
        partitions = tuple(
            Partition(
                number=each.number,
                replicas=state.assignment.replicas,
                isr=tuple(b for b in state.assignment.replicas if b in state.in_sync),
                leader=state.leader,
            )
            for each, state in zip(topic.partitions, states, strict=True)
        )
        return Topic(name=topic.name, partitions=partitions, id=topic.id, internal=topic.internal)

    async def describe_cluster(self) -> ClusterView:
        await self._asked()
        nodes = (each for each in self._cluster.snapshot.brokers if each.id in self._cluster.alive)
        return ClusterView(
            cluster_id=self._cluster.snapshot.cluster_id,
            nodes=tuple(Node(id=each.id, host=each.host, port=each.port, rack=each.rack) for each in nodes),
        )

    async def describe_topics(self, names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        await self._asked()
        if names is None:
            return tuple(self._topics.values())
        for name in names:
            if name not in self._topics:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
        return tuple(self._topics[name] for name in names)

    async def describe_configs(
        self,
        of: Iterable[ConfigResource],
        keys: Collection[str] | None = None,
        patience_s: float | None = None,  # noqa: ARG002  (the protocol's)
    ) -> Mapping[ConfigResource, Mapping[str, Config] | BrokerError]:
        await self._asked()
        answer: dict[ConfigResource, Mapping[str, Config] | BrokerError] = {}
        for each in of:
            if each not in self._configs:
                answer[each] = BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                continue
            source = "default broker" if each == ("broker", "") else each.of
            told = {
                key: Config(name=key, value=value, source=source)
                for key, value in self._configs[each].items()
                if keys is None or key in keys
            }
            if each.of == "topic" and _MIN_INSYNC not in told:
                least = str(self._cluster.snapshot.topic[each.name].min_insync_replicas)
                told[_MIN_INSYNC] = Config(name=_MIN_INSYNC, value=least, source="default")
            answer[each] = told
        return answer

    async def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> Mapping[ConfigResource, BrokerError | None]:
        await self._asked()
        for of, wanted in changes.items():
            here = self._configs[of]
            for key, value in wanted.items():
                if value is None:
                    here.pop(key, None)
                else:
                    here[key] = value
                if of.of == "broker" and key in _RATES:
                    self._throttle(of.name, key, value)
        self._cluster.movement.links_changed()
        return dict.fromkeys(changes)

    async def describe_log_dirs(
        self,
        brokers: Iterable[BrokerId],
        patience_s: float | None = None,  # noqa: ARG002  (the protocol's)
    ) -> Mapping[BrokerId, BrokerLogDirs | BrokerError]:
        await self._asked()
        left = self._cluster.left()
        replicas: dict[BrokerId, list[ReplicaOnDisk]] = {broker: [] for broker in brokers}
        for name in self._cluster.states:
            for broker, each in self._replicas(name, left):
                if broker in replicas:
                    replicas[broker].append(each)
        return {
            broker: BrokerLogDirs(log_dirs=self._log_dirs(broker), replicas=tuple(found))
            if broker in self._cluster.alive
            else BrokerError(ErrorCode.BROKER_NOT_AVAILABLE)
            for broker, found in replicas.items()
        }

    def _replicas(
        self, name: TopicPartition, left: Mapping[CopyKey, float]
    ) -> list[tuple[BrokerId, ReplicaOnDisk]]:
        state, movement = self._cluster.states[name], self._cluster.movement
        known = self._cluster.snapshot.partition(name)
        own = {} if known is None else known.own_sizes
        size, now = movement.size_of(name), []
        for broker, path in state.lies.items():
            here = size if movement.loads.known else own.get(broker, size)
            now.append((broker, _on_disk(name, path, here)))
            future = self._cluster.future_dir(name, broker)
            if future is not None:
                copied = here - left.get(CopyKey(name, broker, True), here)
                now.append((broker, _on_disk(name, future, copied, future=True)))
        coming = {broker for broker in state.assignment.adding if broker not in state.lies}
        for broker, path in movement.arrivals(name).items():
            if broker in coming:
                copied = size - left.get(CopyKey(name, broker), size if self._waits(name, broker) else 0.0)
                now.append((broker, _on_disk(name, path, copied)))
        return now

    def _waits(self, name: TopicPartition, broker: BrokerId) -> bool:
        """Return whether a copy has not begun, or is not over: without a rate nothing is there yet."""
        return CopyKey(name, broker) in self._cluster.movement.copying(name)

    def _log_dirs(self, broker: BrokerId) -> tuple[LogDir, ...]:
        movement = self._cluster.movement
        found = []
        for each in self._cluster.snapshot.broker[broker].log_dirs:
            used = movement.used[movement.links.dir_of(broker, each.path)]
            room = None if each.total_bytes is None else max(0, each.total_bytes - int(used))
            known = each.usable_bytes is not None
            found.append(replace(each, usable_bytes=room) if known else each)
        return tuple(found)

    async def alter_replica_log_dirs(
        self, targets: Mapping[TopicPartitionReplica, str]
    ) -> Mapping[TopicPartitionReplica, BrokerError | None]:
        await self._asked()
        return {
            which: None
            if self._cluster.move_dir(which.partition, which.broker, path)
            else BrokerError(ErrorCode.REPLICA_NOT_AVAILABLE)
            for which, path in targets.items()
        }

    async def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[BrokerId] | None],
        *,
        allow_replication_factor_change: bool = True,  # noqa: ARG002  (nobody else changes it)
    ) -> Mapping[TopicPartition, BrokerError | None]:
        await self._asked()
        for name, replicas in targets.items():
            if replicas is None:
                self._cluster.cancel(name)
            else:
                self._cluster.reassign(name, tuple(replicas))
        return dict.fromkeys(targets)

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> Mapping[TopicPartition, PartitionReassignment]:
        await self._asked()
        wanted = self._cluster.moving if partitions is None else self._cluster.moving & set(partitions)
        return {
            name: PartitionReassignment(
                replicas=each.replicas,
                adding=each.adding,
                removing=each.removing,
            )
            for name in sorted(wanted)
            for each in (self._cluster.states[name].assignment,)
        }

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, BrokerError | None]:
        await self._asked()
        not_now = BrokerError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
        return {name: None if self._cluster.elect(name) else not_now for name in partitions}

    async def api_versions(self, broker: BrokerId) -> Mapping[int, tuple[int, int]]:  # noqa: ARG002
        return dict.fromkeys(range(90), (0, 9))

    async def permissions(self, topics: Sequence[str] = ()) -> Permissions:  # noqa: ARG002
        return Permissions()

    async def describe_metadata_quorum(self) -> None:
        return None

    async def controller(self) -> BrokerId | None:
        return min(self._cluster.alive, default=None)

    async def create_topics(self, topics: Iterable[NewTopic]) -> NoReturn:
        raise NotImplementedError(_NO_TOPICS)

    async def create_partitions(
        self, topic: str, partitions: int, by_hand: Sequence[Sequence[BrokerId]] | None = None
    ) -> None:
        raise NotImplementedError(_NO_TOPICS)

    async def delete_topics(self, topics: Iterable[str]) -> NoReturn:
        raise NotImplementedError(_NO_TOPICS)

    async def close(self) -> None:
        return


def _on_disk(name: TopicPartition, path: str, size: float, *, future: bool = False) -> ReplicaOnDisk:
    return ReplicaOnDisk(
        partition=name, log_dir=path, size_bytes=max(0, int(size)), lag_messages=0, future=future
    )
