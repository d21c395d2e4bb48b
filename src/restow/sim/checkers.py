"""Invariants of the brokers that hold at every moment, whatever faults occur."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.cluster.replication.partition import HostedPartition
    from restow.model import TopicPartition
    from restow.sim.cluster import SimCluster


class InvariantViolation(NamedTuple):
    """A violated invariant."""

    at_s: float
    what: str

    def __str__(self) -> str:
        return f"{self.at_s:.3f} s: {self.what}"


class Invariants:
    """Repeated checks of one cluster, which remember earlier states."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self._leaders: dict[tuple[TopicPartition, int], int] = {}

    def check(self) -> Iterator[str]:
        """Yield the invariants that do not hold now."""
        for node in self._cluster.nodes.values():
            if node.broker.is_running:
                for partition in node.broker.services.replicas.hosted():
                    yield from self._check_replica(node.id, partition)

    def _check_replica(self, broker: int, partition: HostedPartition) -> Iterator[str]:
        name, log = partition.topic_partition, partition.log
        if log.high_watermark > log.end_offset:
            yield f"{name} on broker {broker}: high watermark {log.high_watermark} > end {log.end_offset}"
        if not partition.is_leader:
            return
        epoch = partition.leader_epoch
        known = self._leaders.setdefault((name, epoch), broker)
        if known != broker:
            yield f"{name} has two leaders in epoch {epoch}: brokers {known} and {broker}"
        if broker not in partition.isr:
            yield f"{name}: leader {broker} is not in its ISR {partition.isr}"
        replicas = partition.order.replicas
        if not set(partition.isr) <= set(replicas):
            yield f"{name}: ISR {partition.isr} is not within the replicas {replicas}"
