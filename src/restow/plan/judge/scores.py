"""Count how evenly a plan spreads each goal, and how many of a topic's replicas crowd a broker."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import BrokerId, Move, Partition, Snapshot
    from restow.model.load import LoadModel
    from restow.plan.request.request import PlanRequest

    Loads = Mapping[str, tuple[float, float]]

_BAND = 0.09


@frozen
class Score:
    """How evenly a goal is spread over the brokers that may have some of it."""

    goal: str
    before: Mapping[BrokerId, float]
    after: Mapping[BrokerId, float]
    share: Mapping[BrokerId, float]
    """The even load of each broker, in proportion to its capacity."""

    def ratio(self) -> tuple[float, float]:
        """Return the largest and the smallest multiple of its share that a broker has afterwards."""
        ratios = [self.after[broker] / share for broker, share in self.share.items() if share > 0]
        return (max(ratios), min(ratios)) if ratios else (1.0, 1.0)

    def out_of_band(self, band: float, *, after: bool = True, counted: bool = False) -> float:
        """Return the sum of the brokers' distances from their bands, in shares of an average broker."""
        loads = self.after if after else self.before
        total = 0.0
        for broker, share in self.share.items():
            low, high = share * (1 - band), share * (1 + band)
            if counted:
                low, high = min(low, math.floor(share + 1e-9)), max(high, math.ceil(share - 1e-9))
            total += max(loads[broker] - high, low - loads[broker], 0.0)
        mean = sum(self.share.values()) / max(len(self.share), 1)
        return total / mean if mean > 0 else 0.0


def scores_of(
    snapshot: Snapshot, load: LoadModel | None, moves: Mapping[TopicPartition, Move], request: PlanRequest
) -> Mapping[str, Score]:
    rows = {} if load is None else {name: row for row, name in enumerate(load.partitions)}
    before: dict[str, dict[BrokerId, float]] = defaultdict(lambda: defaultdict(float))
    after: dict[str, dict[BrokerId, float]] = defaultdict(lambda: defaultdict(float))
    working = working_brokers(snapshot)
    expected = 0.0
    for name, partition in snapshot.all_partitions():
        carried = loads_of(partition, load, rows.get(name))
        move = moves.get(name)
        then = partition.replicas if move is None else move.after
        own = differences_of(partition)
        expected += _expected_bytes(partition, then, own, request)
        for table, replicas in ((before, partition.replicas), (after, then)):
            for broker in replicas:
                table["disk"][broker] += own.get(broker, 0)
        for table, replicas in ((before, partition.replicas), (after, then)):
            leader = next((each for each in replicas if each in working), replicas[0])
            for goal, (leading, following) in carried.items():
                for broker in replicas:
                    table[goal][broker] += leading if broker == leader else following
    able = sorted(able_brokers(snapshot, request))
    held = after["disk"]
    fixed = sum(held[broker] for broker in held if broker not in able)
    total = {"disk": expected - fixed}
    return {goal: _score(goal, snapshot, load, before[goal], after[goal], able, total) for goal in after}


def differences_of(partition: Partition) -> Mapping[BrokerId, int]:
    """Return by how many bytes present replicas differ from their leader's size."""
    size, replicas = partition.size_bytes, partition.replicas
    return {broker: own - size for broker, own in partition.own_sizes.items() if broker in replicas}


def _expected_bytes(
    partition: Partition, then: tuple[BrokerId, ...], own: Mapping[BrokerId, int], request: PlanRequest
) -> float:
    """Return what a partition's replicas take, if only those change their size that every plan copies."""
    kept = then if len(then) < len(partition.replicas) else partition.replicas
    stays = [own.get(broker, 0) for broker in kept if broker not in request.leaving]
    return partition.size_bytes * len(then) + float(sum(stays))


def loads_of(partition: Partition, load: LoadModel | None, row: int | None) -> Loads:
    size = float(partition.size_bytes)
    carried = {"disk": (size, size), "replicas": (1.0, 1.0), "leaders": (1.0, 0.0)}
    if load is not None and row is not None:
        for name, resource in load.resources.items():
            carried[name] = (float(resource.leading[row]), float(resource.following[row]))
        if "bytes_in" in carried:
            carried["leader_bytes_in"] = (carried["bytes_in"][0], 0.0)
    return carried


def _score(
    goal: str,
    snapshot: Snapshot,
    load: LoadModel | None,
    before: Mapping[BrokerId, float],
    after: Mapping[BrokerId, float],
    able: list[BrokerId],
    known_total: Mapping[str, float],
) -> Score:
    strength = _strength(goal, snapshot, load, able)
    total = known_total.get(goal, sum(after.get(broker, 0.0) for broker in able))
    whole = sum(strength.values())
    everyone = sorted({*before, *after, *able})
    return Score(
        goal=goal,
        before={broker: before.get(broker, 0.0) for broker in everyone},
        after={broker: after.get(broker, 0.0) for broker in everyone},
        share={broker: total * strength[broker] / whole for broker in able},
    )


def _strength(
    goal: str, snapshot: Snapshot, load: LoadModel | None, able: list[BrokerId]
) -> Mapping[BrokerId, float]:
    """Return the capacity of each broker: its disk size, or what the load model says."""
    if goal == "disk":
        sizes = {broker.id: broker.disk_bytes for broker in snapshot.brokers}
        known = {broker: float(size) for broker, size in sizes.items() if size is not None}
    elif load is not None and goal in load.resources:
        known = {broker: float(value) for broker, value in load.resources[goal].capacity.items()}
    else:
        known = {}
    typical = sum(known.values()) / len(known) if known else 1.0
    return {broker: known.get(broker, typical) or 1.0 for broker in able}


def crowded(
    snapshot: Snapshot, moves: Mapping[TopicPartition, Move], request: PlanRequest
) -> Mapping[str, tuple[int, int]]:
    """Return replicas and leaders of topics beyond a broker's share plus band, before and after."""
    there = [broker.id for broker in snapshot.brokers if not broker.log_dirs or broker.working_dirs]
    able = set(there) - request.barred
    found = {"topic_replicas": [0, 0], "topic_leaders": [0, 0]}
    for topic in snapshot.topics:
        sides: list[list[tuple[BrokerId, ...]]] = [[], []]
        for partition in topic.partitions:
            move = moves.get(TopicPartition(topic.name, partition.number))
            sides[0].append(partition.replicas)
            sides[1].append(partition.replicas if move is None else move.after)
        total = sum(map(len, sides[1])), len(sides[1])
        for side, lists in enumerate(sides):
            replicas = Counter(broker for each in lists for broker in each)
            leaders = Counter(next((one for one in each if one in there), each[0]) for each in lists)
            for goal, counts, many in zip(found, (replicas, leaders), total, strict=True):
                most = _most(many, len(able), request.bands.get(goal, _BAND))
                found[goal][side] += sum(max(counts[broker] - most, 0) for broker in able)
    return {goal: (before, after) for goal, (before, after) in found.items()}


def _most(many: int, brokers: int, band: float | None) -> int:
    if band is None or not brokers:
        return many
    share = many / brokers
    return max(math.ceil(share - 1e-9), math.floor(share * (1 + band) + 1e-9))


def able_brokers(snapshot: Snapshot, request: PlanRequest) -> frozenset[BrokerId]:
    """Return the live brokers with a working, open log dir that may receive replicas."""
    open_ones = {
        broker.id
        for broker in snapshot.brokers
        if not broker.log_dirs or any(not each.failed and not each.cordoned for each in broker.log_dirs)
    }
    return frozenset(open_ones - request.barred - request.cordon)


def working_brokers(snapshot: Snapshot) -> frozenset[BrokerId]:
    """Return the live brokers with a working log dir."""
    return frozenset(
        broker.id
        for broker in snapshot.brokers
        if not broker.log_dirs or not all(each.failed for each in broker.log_dirs)
    )
