"""A snapshot in numbers: brokers, partitions and replicas become indices before any search looks at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from restow.errors import InvalidInput
from restow.model.load import Resource
from restow.plan.goals import Facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from restow.model import BrokerId, Partition, Snapshot, TopicPartition
    from restow.model.load import LoadModel

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrays:
    """Brokers come sorted by id, live ones and those that only still have replicas; partitions by name."""

    brokers: tuple[BrokerId, ...]
    alive: NDArray[np.bool_]
    rack: Ints
    """Brokers without a rack count as one rack each, if no broker has one; else as one together."""
    names: tuple[TopicPartition, ...]
    offsets: Ints
    holder: Ints
    leader: Ints
    """The replica that leads each partition, or its first where none does."""
    facts: Facts
    room: Floats
    """The most bytes each broker's directories may hold of replicas, infinite where sizes are unknown."""


def arrays_of(snapshot: Snapshot, load: LoadModel | None, fill: float) -> Arrays:
    """Number everything. Partitions that the load model does not know carry nothing."""
    pairs = list(snapshot.all_partitions())
    names = tuple(name for name, _ in pairs)
    partitions = [partition for _, partition in pairs]
    seen = {broker for partition in partitions for broker in partition.replicas}
    brokers = tuple(sorted(seen | snapshot.broker.keys()))
    index = {broker: number for number, broker in enumerate(brokers)}
    counts = np.array([len(partition.replicas) for partition in partitions], dtype=np.int64)
    if not counts.all():
        empty = names[int(np.argmin(counts))]
        raise InvalidInput(f"{empty.topic}-{empty.partition} has no replicas in the snapshot: take a new one")
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    holder = np.array([index[broker] for each in partitions for broker in each.replicas], dtype=np.int64)
    places = [_place_of_leader(partition) for partition in partitions]
    facts = Facts(
        size_bytes=np.array([partition.size_bytes for partition in partitions], dtype=np.float64),
        disk_bytes=_disks(snapshot, brokers),
        brokers=brokers,
        resources={} if load is None else _resources(load, names),
    )
    return Arrays(
        brokers=brokers,
        alive=np.array([broker in snapshot.broker for broker in brokers]),
        rack=_racks(snapshot, brokers),
        names=names,
        offsets=offsets,
        holder=holder,
        leader=offsets[:-1] + np.array(places, dtype=np.int64),
        facts=facts,
        room=_room(snapshot, brokers, fill),
    )


def _place_of_leader(partition: Partition) -> int:
    if partition.leader is None or partition.leader not in partition.replicas:
        return 0
    return partition.replicas.index(partition.leader)


def _racks(snapshot: Snapshot, brokers: Sequence[BrokerId]) -> Ints:
    named = {broker.id: broker.rack for broker in snapshot.brokers}
    if all(rack is None for rack in named.values()):
        return np.arange(len(brokers), dtype=np.int64)
    number: dict[str | None, int] = {}
    return np.array([number.setdefault(named.get(each), len(number)) for each in brokers], dtype=np.int64)


def _disks(snapshot: Snapshot, brokers: Sequence[BrokerId]) -> Floats:
    """The size of each broker's working directories together; the average where it is unknown."""
    totals = {
        broker.id: [each.total_bytes for each in broker.log_dirs if not each.failed]
        for broker in snapshot.brokers
    }
    known = {
        broker: float(sum(size or 0 for size in sizes))
        for broker, sizes in totals.items()
        if sizes and None not in sizes
    }
    typical = float(np.mean(list(known.values()))) if known else 1.0
    return np.array([known.get(broker, typical) or 1.0 for broker in brokers])


def _room(snapshot: Snapshot, brokers: Sequence[BrokerId], fill: float) -> Floats:
    """What replicas may take: the share of the file systems that may be used, less what others use of it."""
    held: dict[BrokerId, float] = {}
    for _, partition in snapshot.all_partitions():
        for copy in partition.copies:
            held[copy.broker] = held.get(copy.broker, 0.0) + copy.size_bytes
    room = np.full(len(brokers), np.inf)
    for number, broker_id in enumerate(brokers):
        broker = snapshot.broker.get(broker_id)
        dirs = [each for each in broker.log_dirs if not each.failed] if broker else []
        if not dirs or any(each.total_bytes is None or each.usable_bytes is None for each in dirs):
            continue
        total = sum(each.total_bytes or 0 for each in dirs)
        used = total - sum(each.usable_bytes or 0 for each in dirs)
        others = max(used - held.get(broker_id, 0.0), 0.0)
        room[number] = max(total * fill - others, 0.0)
    return room


def _resources(load: LoadModel, names: Sequence[TopicPartition]) -> Mapping[str, Resource]:
    row = {name: number for number, name in enumerate(load.partitions)}
    rows = np.array([row.get(name, -1) for name in names], dtype=np.int64)
    return {
        resource: Resource(
            leading=_column(resource, given.leading, rows, load),
            following=_column(resource, given.following, rows, load),
            capacity=given.capacity,
        )
        for resource, given in load.resources.items()
    }


def _column(resource: str, given: Floats, rows: Ints, load: LoadModel) -> Floats:
    if len(given) != len(load.partitions):
        raise InvalidInput(
            f"the load model has {len(load.partitions)} partitions but {len(given)} values of {resource}"
        )
    odd = ~(np.isfinite(given) & (given >= 0))
    if odd.any():
        where = load.partitions[int(np.argmax(odd))]
        raise InvalidInput(
            f"the load model says {given[odd][0]} {resource} of {where.topic}-{where.partition}: "
            "loads are finite and not negative"
        )
    return np.where(rows >= 0, given[rows], 0.0) if len(given) else np.zeros(len(rows))
