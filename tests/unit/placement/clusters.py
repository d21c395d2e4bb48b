"""Clusters and requests for hypothesis, and a slow reference placement to compare with."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from restow.placement import Broker

RACKS = ("a", "b", "c", "d", "Z", "10", "9", "", "é", "\uffee", "\U0001f600")

# The time of an example depends on the machine's load, not on placement.
at_leisure = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True)
class Case:
    brokers: list[Broker]
    partitions: int
    replication_factor: int
    start: int
    first: int


@st.composite
def cases(draw: st.DrawFn, *, racks: bool) -> Case:
    ids = draw(st.lists(st.integers(0, 300), min_size=1, max_size=24, unique=True))
    names = draw(st.lists(st.sampled_from(RACKS), min_size=1, max_size=len(RACKS), unique=True))
    # Preferring the first name makes uneven racks common.
    rack = st.sampled_from(names) | st.just(names[0]) if racks else st.none()
    return Case(
        brokers=[Broker(number, draw(rack)) for number in ids],
        partitions=draw(st.integers(1, 4 * len(ids))),
        replication_factor=draw(st.integers(1, len(ids))),
        start=draw(st.integers(0, 3 * len(ids)) | st.integers(0, 10_000)),
        first=draw(st.integers(-2, 3 * len(ids)) | st.integers(0, 10_000)),
    )


def slowly_placed(case: Case) -> list[list[int]]:
    """Place as the specification says: partition by partition, candidate by candidate."""
    racks = {broker.id: broker.rack for broker in case.brokers}
    aware = None not in racks.values()
    order = _alternating(case.brokers) if aware else [broker.id for broker in case.brokers]
    rack_count = len(set(racks.values()))
    n = len(order)
    shift = case.start
    placed = []
    first_partition = max(0, case.first)
    for partition in range(first_partition, first_partition + case.partitions):
        if partition > 0 and partition % n == 0:
            shift += 1
        first = (partition + case.start) % n
        replicas = [order[first]]
        candidates = 0
        while len(replicas) < case.replication_factor:
            turn = shift * rack_count if aware else shift
            broker = order[(first + 1 + (turn + candidates) % (n - 1)) % n]
            candidates += 1
            used = {racks[replica] for replica in replicas}
            rack_taken = aware and racks[broker] in used and len(used) < rack_count
            broker_taken = aware and broker in replicas
            if not rack_taken and not broker_taken:
                replicas.append(broker)
        placed.append(replicas)
    return placed


def _alternating(brokers: list[Broker]) -> list[int]:
    waiting = {
        rack: sorted(broker.id for broker in brokers if broker.rack == rack)
        for rack in sorted(
            {broker.rack or "" for broker in brokers}, key=lambda rack: rack.encode("utf-16-be")
        )
    }
    order = []
    while any(waiting.values()):
        order += [ids.pop(0) for ids in waiting.values() if ids]
    return order
