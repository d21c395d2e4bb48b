"""Who would notice a run: clients of leaders that move, clients of busy brokers by hour, and disks."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np

from restow.model import by_topic
from restow.plan.flow.clients import IN, OUT
from restow.plan.flow.loads import HOUR_S
from restow.rehearse.answer import HourRehearsal, TopicRehearsal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.execute.predict.by_events import LeaderChange
    from restow.model import BrokerId, Partition, Plan, Snapshot, TopicPartition
    from restow.plan.flow.loads import ClientLoads
    from restow.plan.flow.movement import Movement


def topics_told(changes: Iterable[LeaderChange], loads: ClientLoads) -> tuple[TopicRehearsal, ...]:
    """Return the topics whose leaders move, those with the most clients' bytes first."""
    found = []
    for topic, names in by_topic((each.partition.topic, each.partition) for each in changes).items():
        written, read = (
            sum(getattr(loads.of(name), way) for name in set(names)) if loads.known else None
            for way in ("leader_in", "leader_out")
        )
        found.append(TopicRehearsal(topic=topic, leaders_moved=len(names), written=written, read=read))
    return tuple(
        sorted(
            found, key=lambda each: (-(each.written or 0) - (each.read or 0), -each.leaders_moved, each.topic)
        )
    )


def hours_told(movement: Movement) -> dict[BrokerId, tuple[HourRehearsal, ...]]:
    """Return what copying adds to each broker, hour by hour, beside what its clients do in that hour."""
    loads, history, brokers = movement.loads, movement.history, movement.links.brokers
    if not history.at_s:
        return {}
    size, ends = len(brokers), np.array(history.at_s)
    spans = np.diff(ends, prepend=0.0)
    rates = history.rates_by_link()[: 2 * size].astype(np.float64).reshape(2, size, -1)
    numbers = ((ends - spans / 2 - loads.edge_s(0)) // HOUR_S).astype(np.int64)
    found: dict[BrokerId, list[HourRehearsal]] = {broker: [] for broker in brokers}
    for number in np.unique(numbers).tolist():
        now = numbers == number
        copied = rates[:, :, now] @ (spans[now] / spans[now].sum())
        clients = loads.table(movement.ground.snapshot).rates(loads.hour(number)) if loads.known else None
        begins_ms = loads.start_ms + max(0, int(loads.edge_s(number) * 1000))
        for at, broker in enumerate(brokers):
            found[broker].append(
                HourRehearsal(
                    begins_ms=begins_ms,
                    copied_in=float(copied[IN, at]),
                    copied_out=float(copied[OUT, at]),
                    clients_in=None if clients is None else float(clients[IN, at]),
                    clients_out=None if clients is None else float(clients[OUT, at]),
                )
            )
    return {broker: tuple(each) for broker, each in found.items()}


def read_from_disk(plan: Plan, snapshot: Snapshot, loads: ClientLoads, page_cache: float | None) -> int:
    """Return the bytes that senders read from disk: what is not in their page cache.

    That holds what was written last to all replicas of a broker: of each partition, the more the more is
    written to it. Without a load model, partitions share it by their sizes. Unknown, it holds nothing.
    """
    if not page_cache:
        return plan.bytes_to_copy
    sent: Counter[tuple[BrokerId, TopicPartition]] = Counter()
    for move in plan.moves:
        found = snapshot.partition(move.partition)
        sender = move.before[0] if found is None or found.leader is None else found.leader
        sent[sender, move.partition] += move.size_bytes * len(move.adding)
        for broker in move.dir_changes:
            sent[broker, move.partition] += move.own_size(broker)
    by_rate = loads.known and any(loads.of(name).leader_in for name in snapshot.names)

    def weight(name: TopicPartition, partition: Partition) -> float:
        return loads.of(name).leader_in if by_rate else float(partition.size_bytes)

    senders = {broker for broker, _ in sent}
    whole: defaultdict[BrokerId, float] = defaultdict(float)
    for name, partition in snapshot.all_partitions():
        for broker in senders.intersection(partition.replicas):
            whole[broker] += weight(name, partition)
    total = 0.0
    for (broker, name), size in sent.items():
        found = snapshot.partition(name)
        share = 0.0 if found is None or not whole[broker] else weight(name, found) / whole[broker]
        total += max(0.0, size - page_cache * share)
    return int(total)
