"""What producers write and consumers read, partition by partition, and how partitions grow by it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from restow.errors import InvalidInput
from restow.model import TopicPartition
from restow.model.load import BYTES_IN, BYTES_OUT
from restow.sizes import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import Plan, Snapshot, Topic
    from restow.model.load import LoadModel

_WEEK_MS = 7 * 24 * 3600 * 1000
"""Kafka's default of `retention.ms`."""


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """Bytes per second in and out of the leader, and of each follower."""

    leader_in: float = 0.0
    leader_out: float = 0.0
    follower_in: float = 0.0
    follower_out: float = 0.0


NO_LOAD = PartitionLoad()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLoads:
    """The load of every partition. Without a load model nothing is written and nothing is read."""

    by_partition: Mapping[TopicPartition, PartitionLoad] = field(default_factory=dict)
    limits: Mapping[TopicPartition, float] = field(default_factory=dict)
    """The bytes at which retention holds each partition; one that is not here does not grow."""
    known: bool = False

    def of(self, name: TopicPartition) -> PartitionLoad:
        return self.by_partition.get(name, NO_LOAD)

    def growth(self, name: TopicPartition, size_bytes: float) -> float:
        """Return how fast a partition grows: by what is written, unless retention removes as much."""
        written = self.of(name).leader_in
        return written if size_bytes < self.limits.get(name, 0.0) else 0.0

    def size_after(self, name: TopicPartition, size_bytes: float, seconds: float) -> float:
        """Return a partition's size after a while."""
        written = self.of(name).leader_in * seconds
        return min(size_bytes + written, max(self.limits.get(name, 0.0), size_bytes))


def client_loads(load: LoadModel | None, snapshot: Snapshot, plan: Plan) -> ClientLoads:
    """Return the loads of a model; refuse one of another cluster, or one that lacks partitions that move."""
    if load is None:
        return ClientLoads()
    if load.cluster_id != snapshot.cluster_id:
        raise InvalidInput(
            f"the load model is of cluster {load.cluster_id}, but this is cluster {snapshot.cluster_id}: "
            "give the model of this cluster"
        )
    known = set(load.partitions)
    missing = [move.partition for move in plan.moves if move.partition not in known]
    if missing:
        raise InvalidInput(
            f"the load model has no load of {count(len(missing), 'partition')} of this plan, such as "
            f"{missing[0]}: make the model anew (`restow pipeline run`), or rehearse without it"
        )
    loads = _loads(load)
    limits = {}
    for topic in snapshot.topics:
        for each, name in zip(topic.partitions, _names(topic), strict=True):
            if name in loads:
                limits[name] = _limit(topic, loads[name].leader_in, each.size_bytes)
    return ClientLoads(by_partition=loads, limits=limits, known=True)


def _names(topic: Topic) -> list[TopicPartition]:
    return [TopicPartition(topic.name, each.number) for each in topic.partitions]


def _loads(load: LoadModel) -> dict[TopicPartition, PartitionLoad]:
    columns = []
    for name in (BYTES_IN, BYTES_OUT):
        resource = load.resources.get(name)
        zeros = [0.0] * len(load.partitions)
        columns.append(zeros if resource is None else resource.leading.tolist())
        columns.append(zeros if resource is None else resource.following.tolist())
    into, followed, out, read = columns
    rows = zip(load.partitions, into, out, followed, read, strict=True)
    return {name: PartitionLoad(*numbers) for name, *numbers in rows}


def _limit(topic: Topic, written: float, size_bytes: int) -> float:
    """Return the bytes at which retention holds a partition. A compacted one stays about as it is."""
    configs = topic.configs
    if "delete" not in configs.get("cleanup.policy", "delete"):
        return size_bytes
    keep_ms, keep_bytes = int(configs.get("retention.ms", _WEEK_MS)), int(configs.get("retention.bytes", -1))
    by_time = inf if keep_ms < 0 else written * keep_ms / 1000
    return max(float(size_bytes), min(by_time, inf if keep_bytes < 0 else keep_bytes))
