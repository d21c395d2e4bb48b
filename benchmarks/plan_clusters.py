"""Clusters to plan on: recorded ones from a folder, or made up, of any size."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from restow.model import Copy, LiveBroker, Move, Partition, Snapshot, Topic, TopicPartition
from restow.model.load import LoadModel, Resource
from restow.plan.search import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from restow.plan.search import Solution

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

GOALS = ("disk", "bytes_in", "bytes_out", "cpu", "replicas", "leaders", "leader_bytes_in")
_PER_TOPIC = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Partitions in columns; the first replica of each leads."""

    name: str
    rack: Ints
    offsets: Ints
    home: Ints
    size: Floats
    coming: Floats
    going: Floats
    cpu_leader: Floats
    cpu_follower: Floats

    @property
    def replicas(self) -> int:
        return len(self.home)


def read(folder: Path) -> Iterator[Cluster]:
    """Read every cluster of a folder: NAME.brokers.csv.gz and NAME.partitions.csv.gz."""
    for path in sorted(folder.glob("*.brokers.csv.gz")):
        name = path.name.removesuffix(".brokers.csv.gz")
        with gzip.open(path, "rt") as text:
            brokers = list(csv.DictReader(text))
        with gzip.open(folder / f"{name}.partitions.csv.gz", "rt") as text:
            rows = list(csv.DictReader(text))
        index = {row["broker"]: number for number, row in enumerate(brokers)}
        racks = sorted({row["rack"] for row in brokers})
        replicas = [_leader_first(row["replicas"].split(";"), row["leader"]) for row in rows]
        counts = [len(each) for each in replicas]
        column = {key: np.array([float(row[key]) for row in rows]) for key in rows[0] if key[:3] in _NUMBERS}
        yield Cluster(
            name=name,
            rack=np.array([racks.index(row["rack"]) for row in brokers], dtype=np.int64),
            offsets=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            home=np.array([index[broker] for each in replicas for broker in each], dtype=np.int64),
            size=column["disk_mb"] * 1e6,
            coming=column["nw_in_kb"] * 1e3,
            going=column["nw_out_kb"] * 1e3,
            cpu_leader=column["cpu_leader"],
            cpu_follower=column["cpu_follower"],
        )


_NUMBERS = ("dis", "nw_", "cpu")


def _leader_first(replicas: list[str], leader: str) -> list[str]:
    return [leader, *(each for each in replicas if each != leader)]


def skewed(
    brokers: int, replicas: int, *, racks: int = 10, power: float = 1.0, seed: int = 1, name: str = ""
) -> Cluster:
    """Make up a skewed cluster: three replicas in three racks, sizes exponential."""
    rng = np.random.default_rng(seed)
    partitions = replicas // 3
    per_rack = brokers // racks
    home = np.empty((partitions, 3), dtype=np.int64)
    for first in range(0, partitions, 500_000):
        many = min(500_000, partitions - first)
        chosen = np.argpartition(rng.random((many, racks)), 2, axis=1)[:, :3]
        within = (per_rack * rng.random((many, 3)) ** 1.35).astype(np.int64)
        home[first : first + many] = chosen + racks * within
    size = rng.exponential(1.0, partitions) ** power
    coming = size * rng.uniform(0.5, 1.5, partitions)
    return Cluster(
        name=name or f"{brokers} brokers, {replicas:,} replicas",
        rack=np.arange(per_rack * racks, dtype=np.int64) % racks,
        offsets=np.arange(0, 3 * partitions + 1, 3, dtype=np.int64),
        home=home.reshape(-1),
        size=np.ceil(size * 1e9),
        coming=coming * 1e5,
        going=coming * 2e5 * rng.uniform(0.5, 1.5, partitions),
        cpu_leader=coming * rng.uniform(0.8, 1.2, partitions),
        cpu_follower=coming * 0.3,
    )


def larger(cluster: Cluster, brokers: int, times: int, seed: int = 5) -> Cluster:
    """Return a cluster with the partitions of another so many times, each time on some of more brokers."""
    rng = np.random.default_rng(seed)
    rack = np.arange(brokers, dtype=np.int64) % (int(cluster.rack.max()) + 1)
    homes = []
    for _ in range(times):
        to = np.empty(len(cluster.rack), np.int64)
        for each in range(int(rack.max()) + 1):
            old = np.flatnonzero(cluster.rack == each)
            to[old] = rng.choice(np.flatnonzero(rack == each), len(old), replace=False)
        homes.append(to[cluster.home])

    def varied(column: Floats) -> Floats:
        return np.ceil(np.tile(column, times) * rng.uniform(0.8, 1.25, times * len(column)))

    return Cluster(
        name=f"{cluster.name} {times} times on {brokers} brokers",
        rack=rack,
        offsets=np.concatenate(([0], np.cumsum(np.tile(np.diff(cluster.offsets), times)))).astype(np.int64),
        home=np.concatenate(homes),
        size=varied(cluster.size),
        coming=varied(cluster.coming),
        going=varied(cluster.going),
        cpu_leader=varied(cluster.cpu_leader * 1e6),
        cpu_follower=varied(cluster.cpu_follower * 1e6),
    )


def even(brokers: int, replicas: int, *, racks: int = 10, seed: int = 3) -> Cluster:
    """Make up a cluster whose replicas are on random brokers of three racks: even but for chance."""
    rng = np.random.default_rng(seed)
    partitions = replicas // 3
    chosen = np.argpartition(rng.random((partitions, racks)), 2, axis=1)[:, :3]
    home = chosen + racks * rng.integers(brokers // racks, size=(partitions, 3))
    made = skewed(brokers, replicas, racks=racks)
    return replace(made, home=home.reshape(-1), name=f"{made.name}, even")


def problem_of(cluster: Cluster, band: float, goals: tuple[str, ...] = GOALS) -> Problem:
    """Return the problem to bring these goals into a band around the mean; others do not matter."""
    counts = np.diff(cluster.offsets)
    one, none = np.ones(len(counts)), np.zeros(len(counts))
    columns = (
        (cluster.size, cluster.size),
        (cluster.coming, cluster.coming),
        (cluster.going, none),
        (cluster.cpu_leader, cluster.cpu_follower),
        (one, one),
        (one, none),
        (cluster.coming, none),
    )
    leading = np.stack([each for each, _ in columns], axis=1)
    following = np.stack([each for _, each in columns], axis=1)
    total = leading.sum(axis=0) + (counts - 1) @ following
    mean = np.tile(total / len(cluster.rack), (len(cluster.rack), 1))
    matters = np.array([goal in goals for goal in GOALS])
    return Problem(
        rack=cluster.rack,
        offsets=cluster.offsets,
        home=cluster.home,
        leader=cluster.offsets[:-1].copy(),
        leading=leading,
        following=following,
        lower=np.where(matters, mean * (1 - band), 0.0),
        upper=np.where(matters, mean * (1 + band), 2 * total + 1),
        room=np.full(len(cluster.rack), np.inf),
        racks_wanted=np.minimum(counts, len(np.unique(cluster.rack))),
        receives=np.ones(len(cluster.rack), dtype=bool),
        may_lead=np.ones(len(cluster.rack), dtype=bool),
        forced=np.zeros(cluster.replicas, dtype=bool),
        movable=np.ones(cluster.replicas, dtype=bool),
        may_change_leader=np.ones(len(counts), dtype=bool),
    )


def snapshot_of(cluster: Cluster) -> Snapshot:
    """Return the cluster as a snapshot."""
    homes, ends = cluster.home.tolist(), cluster.offsets.tolist()
    sizes = cluster.size.astype(np.int64).tolist()
    topics: list[list[Partition]] = []
    for number, size in enumerate(sizes):
        if number % _PER_TOPIC == 0:
            topics.append([])
        replicas = tuple(homes[ends[number] : ends[number + 1]])
        copies = tuple(Copy(broker=broker, log_dir="/data", size_bytes=size) for broker in replicas)
        topics[-1].append(
            Partition(
                number=number % _PER_TOPIC, replicas=replicas, isr=replicas, leader=replicas[0], copies=copies
            )
        )
    brokers = tuple(
        LiveBroker(id=number, host="localhost", port=9092, rack=str(rack))
        for number, rack in enumerate(cluster.rack.tolist())
    )
    return Snapshot(
        cluster_id=cluster.name,
        taken_ms=0,
        controller=0,
        brokers=brokers,
        topics=tuple(
            Topic(name=f"t{number:06}", partitions=tuple(each)) for number, each in enumerate(topics)
        ),
    )


def moves_of(cluster: Cluster, solution: Solution) -> tuple[Move, ...]:
    """Return the moves of a solution."""
    moved = np.add.reduceat(solution.holder != cluster.home, cluster.offsets[:-1]) > 0
    changed = np.flatnonzero(moved | (solution.leader != cluster.offsets[:-1]))
    homes, holders, ends = cluster.home.tolist(), solution.holder.tolist(), cluster.offsets.tolist()
    moves = []
    for number in changed.tolist():
        first, last = ends[number], ends[number + 1]
        after = holders[first:last]
        after.insert(0, after.pop(int(solution.leader[number]) - first))
        moves.append(
            Move(
                partition=TopicPartition(f"t{number // _PER_TOPIC:06}", number % _PER_TOPIC),
                before=tuple(homes[first:last]),
                after=tuple(after),
                size_bytes=int(cluster.size[number]),
            )
        )
    return tuple(moves)


def loads_of(cluster: Cluster) -> LoadModel:
    """Return the loads of the partitions."""
    many = len(cluster.size)
    return LoadModel(
        cluster_id=cluster.name,
        made_ms=0,
        partitions=tuple(
            TopicPartition(f"t{number // _PER_TOPIC:06}", number % _PER_TOPIC) for number in range(many)
        ),
        resources={
            "bytes_in": Resource(leading=cluster.coming, following=cluster.coming),
            "bytes_out": Resource(leading=cluster.going, following=np.zeros(many)),
            "cpu": Resource(leading=cluster.cpu_leader, following=cluster.cpu_follower),
        },
    )
