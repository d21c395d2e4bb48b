"""What producers write and consumers read, by partition and hour of the week, and how partitions grow."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.model import TopicPartition
from restow.model.load import BYTES_IN, BYTES_OUT, WEEK_HOURS
from restow.plan.flow.clients import ClientTable
from restow.plan.flow.ground import Ground
from restow.sizes import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import BrokerId, Plan, Snapshot, Topic
    from restow.model.load import LoadModel
    from restow.plan.search.problem import Floats

HOUR_S = 3600.0
_THURSDAY_H = 72
"""The hour of the week in which 1970 began."""
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


class Holding(NamedTuple):
    """What is known of a partition at the start of a run."""

    bytes: float
    written: float
    """Bytes per second that producers add on average."""
    most: float
    """The bytes at which retention holds it."""
    places: Mapping[BrokerId, tuple[str, float]]
    """The log dir of each replica and its own size, as far as known."""
    moving: bool = False
    """Whether some of it may have been copied already."""
    strays: Mapping[BrokerId, float] = MappingProxyType({})
    """What brokers have of it although they are no replicas: a copy to such a broker goes on from there."""


@frozen
class ClientLoads:
    """The load of every partition. Without a load model nothing is written and nothing is read."""

    by_partition: Mapping[TopicPartition, PartitionLoad] = field(default_factory=dict)
    limits: Mapping[TopicPartition, float] = field(default_factory=dict)
    """The bytes at which retention holds each partition; one that is not here does not grow."""
    known: bool = False
    hours_in: Mapping[str, Floats] = field(default_factory=dict)
    hours_out: Mapping[str, Floats] = field(default_factory=dict)
    """By topic: multiples of the load in the hours of the week; a topic that is not here has none."""
    start_ms: int = 0
    tables: list[ClientTable] = field(default_factory=list, repr=False, compare=False)
    """The one table, once somebody has asked for it; shared by the loads of all starts."""
    grounds: list[Ground] = field(default_factory=list, repr=False, compare=False)
    """What is known of the cluster without a load; shared in the same way."""

    def starting(self, start_ms: int) -> ClientLoads:
        """Return the loads for a run that starts at this time."""
        return replace(self, start_ms=start_ms)

    def table(self, snapshot: Snapshot) -> ClientTable:
        """Return the loads of brokers and log dirs."""
        if not self.tables:
            self.tables.append(ClientTable(snapshot, self))
        return self.tables[0]

    def ground(self, snapshot: Snapshot) -> Ground:
        """Return the links of the cluster and the ways of copies on it."""
        if not self.grounds or self.grounds[0].snapshot is not snapshot:
            self.grounds[:] = [Ground(snapshot)]
        return self.grounds[0]

    def holding(self, snapshot: Snapshot, name: TopicPartition) -> Holding:
        """Return what a partition holds at the start."""
        found, written = snapshot.partition(name), self.of(name).leader_in
        most = self.limits.get(name, 0.0)
        if found is None:
            return Holding(0.0, written, most, {})
        own: dict[BrokerId, tuple[str, float]] = {}
        strays: dict[BrokerId, float] = {}
        moving = found.moving
        for broker, path, here, _, future in found.copies:
            if future:
                moving = True
            else:
                own[broker] = path, float(here)
                if broker not in found.replicas:
                    strays[broker] = float(here)
        leads = None if found.leader is None else own.get(found.leader)
        size = max((here for _, here in own.values()), default=0.0) if leads is None else leads[1]
        return Holding(size, written, max(size, most), own, moving, strays)

    @property
    def by_hour(self) -> bool:
        return bool(self.hours_in or self.hours_out)

    @property
    def _start_h(self) -> float:
        """Return the time of the start as hours since the week's beginning."""
        return (self.start_ms / 1000 / HOUR_S + _THURSDAY_H) % WEEK_HOURS

    def hour(self, number: int = 0) -> int:
        """Return which hour of the week the start lies in, or one that comes so many hours later."""
        return (int(self._start_h) + number) % WEEK_HOURS

    def edge_s(self, number: int) -> float:
        """Return when that hour begins, in seconds after the start."""
        return (number - self._start_h % 1) * HOUR_S

    def of(self, name: TopicPartition) -> PartitionLoad:
        """Return the load of a partition, on average."""
        return self.by_partition.get(name, NO_LOAD)

    def share(self, topic: str, hour: int) -> float:
        """Return what is written to a topic in an hour of the week, as a multiple of its mean."""
        shares = self.hours_in.get(topic)
        return 1.0 if shares is None else float(shares[hour])

    def growth(self, name: TopicPartition, size_bytes: float) -> float:
        """Return how fast a partition grows on average: by what is written, unless retention holds it."""
        return self.of(name).leader_in if size_bytes < self.limits.get(name, 0.0) else 0.0

    def usual_s(self, topic: str, seconds: float) -> float:
        """Return how many seconds of usual load are written to a topic in the first seconds of a run."""
        shares = self.hours_in.get(topic)
        if shares is None:
            return seconds
        until_s, number = seconds + (self._start_h % 1) * HOUR_S, int(self._start_h)
        hours, rest_s = divmod(until_s, HOUR_S)
        weeks, hours = divmod(int(hours), WEEK_HOURS)
        whole = float(np.take(shares, range(number, number + hours), mode="wrap").sum())
        now = float(shares[(number + hours) % WEEK_HOURS])
        before_s = float(shares[number]) * (self._start_h % 1) * HOUR_S
        return (weeks * float(shares.sum()) + whole) * HOUR_S + now * rest_s - before_s


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
    return ClientLoads(
        by_partition=loads,
        limits=limits,
        known=True,
        hours_in=_hours(load, BYTES_IN),
        hours_out=_hours(load, BYTES_OUT),
    )


def _hours(load: LoadModel, resource: str) -> dict[str, Floats]:
    """Return the loads by hour; one that was never sampled is the mean of the others."""
    given = {} if resource not in load.resources else load.resources[resource].hours
    known = {topic: shares for topic, shares in given.items() if not np.isnan(shares).all()}
    return {topic: np.where(np.isnan(each), np.nanmean(each), each) for topic, each in known.items()}


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
