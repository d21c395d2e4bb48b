"""A snapshot as arrays: brokers, partitions and replicas become indices for the search."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.model.load import Resource
from restow.plan.goals import Facts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from restow.model import BrokerId, LogDir, Partition, Snapshot, TopicPartition
    from restow.model.load import LoadModel
    from restow.plan.search.problem import Bools, Floats, Ints

_MOST = 1e18
"""The most that a partition may carry, so that sums stay finite."""


@frozen
class Arrays:
    """Brokers are sorted by id, dead ones with replicas included; partitions are sorted by name."""

    brokers: tuple[BrokerId, ...]
    index: Mapping[BrokerId, int]
    alive: Bools
    """Live brokers with a working log dir."""
    cordoned: Bools
    """Live brokers that may receive no replicas, because all their working log dirs are cordoned."""
    cordoned_dirs: tuple[tuple[BrokerId, str], ...]
    rack: Ints
    """If no broker has a rack, each broker is its own; otherwise those without one share one."""
    rack_names: tuple[str, ...]
    """Each broker's rack name; empty if unknown."""
    names: tuple[TopicPartition, ...]
    partitions: tuple[Partition, ...]
    topic: Ints
    """Each partition's topic, by number."""
    offsets: Ints
    holder: Ints
    own: Floats | None
    """By how many bytes each replica differs from its leader's size; None if none does."""
    leader: Ints
    """The replica that should lead: the first one on a live broker, or the first."""
    settled: Bools
    """Partitions that have a leader and are not moving; the others are left alone."""
    lagging: Bools
    """Partitions with a live replica out of sync, which could not be elected."""
    internal: Bools
    """Partitions of Kafka's internal topics."""
    min_insync: Ints
    """Each partition's min.insync.replicas."""
    facts: Facts
    room: Floats
    """The most bytes of replicas that each broker may hold, counting the leader's size for every replica;
    infinite if sizes are unknown.
    """

    @property
    def counts(self) -> Ints:
        counts: Ints = np.diff(self.offsets)
        return counts

    @property
    def part_of(self) -> Ints:
        return np.repeat(np.arange(len(self.names)), self.counts)


def arrays_of(snapshot: Snapshot, load: LoadModel | None, fill: float) -> Arrays:
    """Return the snapshot as arrays, or raise an error that says what is wrong with it."""
    names, partitions = snapshot.names, snapshot.partitions
    if not names:
        raise InvalidInput("the cluster has no partitions: there is nothing to plan")
    if load is not None and load.cluster_id != snapshot.cluster_id:
        raise InvalidInput(
            f"the load model is of cluster {load.cluster_id!r}, but this is {snapshot.cluster_id!r}: "
            "give the load model of this cluster"
        )
    replicas = [each.replicas for each in partitions]
    seen = set(chain.from_iterable(replicas))
    brokers = tuple(sorted(seen | snapshot.broker.keys()))
    index = {broker: number for number, broker in enumerate(brokers)}
    counts = np.fromiter(map(len, replicas), np.int64, len(replicas))
    if not counts.all():
        raise InvalidInput(f"{names[int(np.argmin(counts))]} has no replicas in the snapshot: take a new one")
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    flat = chain.from_iterable(replicas)
    holder = np.fromiter(map(index.__getitem__, flat), np.int64, int(offsets[-1]))
    _refuse_twice(names, brokers, offsets, holder)
    cordoned = {broker.id for broker in snapshot.brokers if broker.cordoned}
    alive = np.array([_works(snapshot, broker) for broker in brokers], dtype=bool)
    per_topic = [len(topic.partitions) for topic in snapshot.topics]
    sizes = _sizes(names, partitions)
    own = _own(partitions, sizes, offsets)
    each = np.repeat(sizes, counts) if own is None else np.repeat(sizes, counts) + own
    held = np.bincount(holder, each, minlength=len(brokers)).astype(np.float64)
    return Arrays(
        brokers=brokers,
        index=index,
        alive=alive,
        cordoned=np.array([broker in cordoned for broker in brokers], dtype=bool),
        cordoned_dirs=tuple(
            (broker.id, each.path) for broker in snapshot.brokers for each in broker.log_dirs if each.cordoned
        ),
        rack=_racks(snapshot, brokers),
        rack_names=tuple(
            (there.rack or "") if (there := snapshot.broker.get(each)) else "" for each in brokers
        ),
        names=names,
        partitions=partitions,
        topic=np.repeat(np.arange(len(per_topic), dtype=np.int64), per_topic),
        offsets=offsets,
        holder=holder,
        own=own,
        leader=first_alive(offsets, holder, alive),
        settled=_settled(partitions),
        lagging=_lagging(
            partitions, frozenset(each for each, works in zip(brokers, alive, strict=True) if works)
        ),
        internal=np.repeat(np.array([topic.internal for topic in snapshot.topics], dtype=bool), per_topic),
        min_insync=np.repeat(
            np.array([topic.min_insync_replicas for topic in snapshot.topics], dtype=np.int64), per_topic
        ),
        facts=Facts(
            size_bytes=sizes,
            disk_bytes=_disks(snapshot, brokers),
            brokers=brokers,
            resources={} if load is None else _resources(load, names),
        ),
        room=_room(snapshot, brokers, fill, held),
    )


def mask_of(arrays: Arrays, brokers: Collection[BrokerId]) -> Bools:
    """Return for each broker whether it is one of these."""
    return np.array([broker in brokers for broker in arrays.brokers], dtype=bool)


def first_alive(offsets: Ints, holder: Ints, alive: Bools) -> Ints:
    """Return the first replica of each partition on a working broker, or the first of all."""
    replicas = np.arange(len(holder))
    able = alive[holder] if len(alive) else np.zeros(0, dtype=bool)
    first = np.minimum.reduceat(np.where(able, replicas, len(holder)), offsets[:-1])
    return np.where(first < len(holder), first, offsets[:-1]).astype(np.int64)


def _refuse_twice(
    names: Sequence[TopicPartition], brokers: Sequence[BrokerId], offsets: Ints, holder: Ints
) -> None:
    """Refuse a partition that lists a broker twice."""
    counts = np.diff(offsets)
    part_of = np.repeat(np.arange(len(counts)), counts)
    for apart in range(1, int(counts.max())):
        again = (holder[apart:] == holder[:-apart]) & (part_of[apart:] == part_of[:-apart])
        if again.any():
            at = int(np.argmax(again))
            raise InvalidInput(
                f"the snapshot lists broker {brokers[holder[at]]} twice among the replicas of "
                f"{names[int(part_of[at])]}: take a new one"
            )


def _works(snapshot: Snapshot, broker: BrokerId) -> bool:
    there = snapshot.broker.get(broker)
    return there is not None and (not there.log_dirs or not all(each.failed for each in there.log_dirs))


def _lagging(partitions: Sequence[Partition], alive: frozenset[BrokerId]) -> Bools:
    """Return partitions with a live replica out of sync; only those with a short ISR are examined."""
    return np.array(
        [
            len(isr) < len(replicas) and any(each in alive and each not in isr for each in replicas)
            for _, replicas, isr, _, _, _, _ in partitions
        ],
        dtype=bool,
    )


def _settled(partitions: Sequence[Partition]) -> Bools:
    return np.array(
        [
            leader is not None and not (adding or removing)
            for _, _, _, leader, adding, removing, _ in partitions
        ]
    )


def _sizes(names: Sequence[TopicPartition], partitions: Sequence[Partition]) -> Floats:
    sizes = np.array([each.size_bytes for each in partitions], dtype=np.float64)
    if (sizes < 0).any():
        raise InvalidInput(f"the snapshot says that {names[int(np.argmin(sizes))]} has a negative size")
    return sizes


def _own(partitions: Sequence[Partition], sizes: Floats, offsets: Ints) -> Floats | None:
    """Return by how much each replica's own size differs from its leader's, as far as brokers tell it."""
    found: dict[int, float] = {}
    for number, (partition, size) in enumerate(zip(partitions, sizes.tolist(), strict=True)):
        for broker, _, own, _, future in partition.copies:
            if own != size and not future and broker in partition.replicas:
                found[int(offsets[number]) + partition.replicas.index(broker)] = own - size
    if not found:
        return None
    differs = np.zeros(int(offsets[-1]))
    differs[list(found)] = list(found.values())
    return differs


def _racks(snapshot: Snapshot, brokers: Sequence[BrokerId]) -> Ints:
    named = {broker.id: broker.rack for broker in snapshot.brokers}
    if all(rack is None for rack in named.values()):
        return np.arange(len(brokers), dtype=np.int64)
    number: dict[str | None, int] = {}
    return np.array([number.setdefault(named.get(each), len(number)) for each in brokers], dtype=np.int64)


def _disks(snapshot: Snapshot, brokers: Sequence[BrokerId]) -> Floats:
    """Return the size of each broker's working log dirs together; the average if unknown."""
    for broker in snapshot.brokers:
        for each in broker.working_dirs:
            _check_sizes(broker.id, each)
    sizes = {broker.id: broker.disk_bytes for broker in snapshot.brokers}
    known = {broker: float(size) for broker, size in sizes.items() if size is not None}
    typical = float(np.mean(list(known.values()))) if known else 1.0
    return np.array([known.get(broker, typical) or 1.0 for broker in brokers])


def _check_sizes(broker: BrokerId, log_dir: LogDir) -> None:
    """Refuse a file system without size, or with more room than size."""
    total, usable = log_dir.total_bytes, log_dir.usable_bytes
    where = f"log dir {log_dir.path} of broker {broker}"
    if total is not None and total <= 0:
        raise InvalidInput(
            f"{where} is on a file system of {total:,} bytes, so the broker has no share of the data: "
            "mount the disk and take a new snapshot"
        )
    if total is not None and usable is not None and not 0 <= usable <= total:
        raise InvalidInput(
            f"{where} has {usable:,} usable bytes of {total:,}, which contradict each other: "
            "take a new snapshot"
        )


def _room(snapshot: Snapshot, brokers: Sequence[BrokerId], fill: float, held: Floats) -> Floats:
    """Return what each broker holds (`held`) plus what fits into its open log dirs.

    Cordoned log dirs keep their replicas and receive no more. One that is too full takes no room from the
    others.
    """
    room = np.full(len(brokers), np.inf)
    if not any(broker.log_dirs for broker in snapshot.brokers):
        return room
    lies: dict[tuple[BrokerId, str], int] = {}
    for _, partition in snapshot.all_partitions():
        for broker_id, path, size, _, _ in partition.copies:
            lies[broker_id, path] = lies.get((broker_id, path), 0) + size
    for number, broker_id in enumerate(brokers):
        broker = snapshot.broker.get(broker_id)
        dirs = broker.working_dirs if broker else ()
        if not dirs or any(each.total_bytes is None or each.usable_bytes is None for each in dirs):
            continue
        free = [
            (each.total_bytes or 0) * fill - max(used, lies.get((broker_id, each.path), 0))
            for each in dirs
            if not each.cordoned
            for used in [(each.total_bytes or 0) - (each.usable_bytes or 0)]
        ]
        some = [size for size in free if size > 0]
        room[number] = max(held[number] + sum(some or free), 0.0)
    return room


def _resources(load: LoadModel, names: Sequence[TopicPartition]) -> Mapping[str, Resource]:
    rows = _rows(load, names)
    return {
        resource: Resource(
            leading=checked(resource, given.leading, load)[rows],
            following=checked(resource, given.following, load)[rows],
            capacity=_capacities(resource, given.capacity),
        )
        for resource, given in load.resources.items()
    }


def _capacities(resource: str, given: Mapping[BrokerId, float]) -> Mapping[BrokerId, float]:
    """Return the capacities of a resource, or refuse them."""
    for broker, capacity in given.items():
        if not 0 < capacity <= _MOST:
            raise InvalidInput(
                f"the load model says that broker {broker} has a capacity of {capacity:g} {resource}: give a "
                "number above 0, or leave the broker out to count it as average"
            )
    return given


def _rows(load: LoadModel, names: Sequence[TopicPartition]) -> Ints:
    """Return the rows of these partitions in the load model. Mostly the order is the same."""
    if load.partitions == names:
        return np.arange(len(names), dtype=np.int64)
    row = {name: number for number, name in enumerate(load.partitions)}
    missing = [name for name in names if name not in row]
    if missing:
        raise InvalidInput(
            f"the load model knows nothing of {len(missing):,} of {len(names):,} partitions, the first "
            f"of them {missing[0]}: make it anew, or complete it with zeros"
        )
    return np.fromiter((row[name] for name in names), np.int64, len(names))


def checked(resource: str, given: Floats, load: LoadModel) -> Floats:
    """Return a column of a load model, or refuse it."""
    if len(given) != len(load.partitions):
        raise InvalidInput(
            f"the load model has {len(load.partitions)} partitions but {len(given)} values of {resource}"
        )
    odd = ~((given >= 0) & (given <= _MOST))
    if odd.any():
        where = load.partitions[int(np.argmax(odd))]
        raise InvalidInput(
            f"the load model says {given[odd][0]} {resource} of {where}: loads are from 0 to {_MOST:g}"
        )
    return given
