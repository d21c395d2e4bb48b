"""Random clusters with a random request: small, and with everything that a cluster can have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.model import Copy, LiveBroker, LogDir, Partition, Snapshot, Topic, TopicPartition
from restow.model.load import LoadModel, Resource
from restow.plan.request.request import PlanRequest

if TYPE_CHECKING:
    from typing import Any

    Random = np.random.Generator

GB = 10**9
GOALS = ("disk", "replicas", "leaders", "bytes_in", "bytes_out", "leader_bytes_in")


class Case(NamedTuple):
    """What a plan is made of."""

    snapshot: Snapshot
    load: LoadModel | None
    request: PlanRequest


def draw(seed: int) -> Case:
    """Return a random case; the same for the same seed."""
    rng = np.random.default_rng(seed)
    snapshot = _snapshot(rng)
    loaded = rng.random() < 0.5
    return Case(snapshot, _load(rng, snapshot) if loaded else None, _request(rng, snapshot))


def _snapshot(rng: Random) -> Snapshot:
    many = int(rng.integers(3, 7))
    everyone = range(many)
    down = {int(rng.integers(many))} if rng.random() < 0.3 else set[int]()
    racks, dirs = int(rng.integers(0, 5)), int(rng.integers(1, 3))
    odds = rng.uniform(0.2, 1.0, many)
    own_sizes, lags, alike = rng.random() < 0.5, rng.random() < 0.1, float(rng.choice([1.0, 4.0]))
    held = {(broker, number): 0 for broker in everyone for number in range(dirs)}
    topics = []
    for name in [f"t{number}" for number in range(int(rng.integers(1, 4)))]:
        factor = int(rng.integers(1, min(many, 3) + 1))
        partitions = []
        for number in range(int(rng.integers(2, 8))):
            replicas = tuple(map(int, rng.choice(many, factor, replace=False, p=odds / odds.sum())))
            live = [each for each in replicas if each not in down]
            size = int(rng.gamma(alike, GB / alike))
            behind = {live[-1]} if lags and len(live) > 1 and rng.random() < 0.3 else set[int]()
            copies = []
            for broker in live:
                times = 1.0
                if own_sizes and broker != live[0]:
                    times = float(rng.choice([0.0, 0.3, 1.0, 1.0, 1.4]))
                log_dir, own = int(rng.integers(dirs)), int(size * times)
                held[broker, log_dir] += own
                copies.append(Copy(broker=broker, log_dir=f"/d{log_dir}", size_bytes=own))
            partitions.append(
                Partition(
                    number=number,
                    replicas=replicas,
                    isr=tuple(each for each in live if each not in behind),
                    leader=live[0] if live else None,
                    copies=tuple(copies),
                )
            )
        topics.append(Topic(name=name, partitions=tuple(partitions)))
    known, capacity = rng.random() < 0.8, 2 * max(sum(held.values()) / many / dirs, 1.0)
    brokers = []
    for broker in everyone:
        if broker in down:
            continue
        log_dirs = []
        for number in range(dirs):
            used = held[broker, number] + int(rng.choice([0, 0.2]) * capacity * rng.random())
            total = max(int(capacity * rng.choice([0.7, 1.0, 1.5])), int(used * rng.uniform(1.0, 1.3)), 1)
            if rng.random() < 0.2:
                total = used + 1
            log_dirs.append(
                LogDir(
                    path=f"/d{number}",
                    total_bytes=total if known else None,
                    usable_bytes=total - used if known else None,
                    cordoned=bool(rng.random() < 0.05),
                )
            )
        rack = f"r{broker % racks}" if racks else None
        brokers.append(LiveBroker(id=broker, host="h", port=1, rack=rack, log_dirs=tuple(log_dirs)))
    return Snapshot(cluster_id="c", taken_ms=0, controller=None, brokers=tuple(brokers), topics=tuple(topics))


def _load(rng: Random, snapshot: Snapshot) -> LoadModel:
    coming = rng.exponential(1e5, len(snapshot.names))
    capacity = {each.id: float(rng.choice([1e6, 2e6])) for each in snapshot.brokers if rng.random() < 0.5}
    return LoadModel(
        cluster_id="c",
        made_ms=0,
        partitions=snapshot.names,
        resources={
            "bytes_in": Resource(leading=coming, following=coming, capacity=capacity),
            "bytes_out": Resource(leading=coming * 2, following=np.zeros(len(coming))),
        },
    )


def _request(rng: Random, snapshot: Snapshot) -> PlanRequest:
    band = float(rng.choice([0.2, 0.5, 0.9, 1.5]))
    bands: dict[str, float | None] = dict.fromkeys(GOALS, band)
    for goal in GOALS:
        if rng.random() < 0.6:
            bands[goal] = None if rng.random() < 0.95 else 0.02
    request = PlanRequest(bands=bands, seed=int(rng.integers(100)))
    live = [each.id for each in snapshot.brokers]
    one, other = (frozenset({int(each)}) for each in rng.choice(live, 2, replace=False))
    dead = frozenset(each for part in snapshot.partitions for each in part.replicas) - {*live}
    leaves = dead if dead and rng.random() < 0.7 else one
    changes: list[tuple[float, dict[str, Any]]] = [
        (0.3, {"drain": leaves}),
        (0.05, {"demote": other}),
        (0.08, {"leaders": True}),
        (0.1, {"fix_racks": True}),
        (0.15, {"spread_topics": True}),
        (0.1, {"replication_factors": {"t0": int(rng.integers(1, 4))}}),
        (0.15, {"except_topics": ("t1",)}),
        (0.1, {"except_brokers": other}),
        (0.1, {"except_partitions": frozenset({TopicPartition("t0", 0)})}),
        (0.1, {"cordon": other}),
        (0.05, {"most_moves": int(rng.integers(1, 8))}),
        (0.2, {"fill": float(rng.choice([0.7, 1.0]))}),
        (0.1, {"disks": True}),
    ]
    for odds, change in changes:
        if rng.random() < odds:
            request = replace(request, **change)
    even = rng.random()
    if even < 0.75:
        return replace(request, balance=True)
    if even < 0.85:
        return replace(request, relieve={"disk": float(rng.choice([1.0, 1.2]))})
    if even < 0.9 and not request.drain:
        return replace(request, add=one)
    if even < 0.95 and not (request.drain or request.except_brokers):
        return replace(request, replace={min(leaves - other, default=min(one)): min(other)})
    return request
