"""Observe a cluster while partitions move on it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.client import BrokerError
from restow.execute.run.steps import partitions_of
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.client import Admin, PartitionReassignment
    from restow.model import BrokerId, Copy, LogDir, Partition, Step, TopicPartition
    from restow.runtime.clock import Clock


PATIENCE_S = 2.0
"""How much longer than most others a broker may take to answer. A look must not stand still for its sake."""


@frozen
class Observation:
    """The whole cluster at one moment, as far as moves need it."""

    at_s: float
    alive: frozenset[BrokerId] = frozenset()
    silent: frozenset[BrokerId] = frozenset()
    """Brokers in the metadata that do not answer: they have died a moment ago, or hang."""
    partitions: Mapping[TopicPartition, Partition] = field(default_factory=dict)
    moves: Mapping[TopicPartition, PartitionReassignment] = field(default_factory=dict)
    copies: Mapping[TopicPartition, Mapping[BrokerId, Copy]] = field(default_factory=dict)
    """The replica in use, by broker."""
    futures: Mapping[TopicPartition, Mapping[BrokerId, Copy]] = field(default_factory=dict)
    """The future replica that will replace the one in use, by broker."""
    dirs: Mapping[BrokerId, tuple[LogDir, ...]] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    in_progress: frozenset[TopicPartition] = frozenset()
    """Partitions whose reassignment the caller knew to be in progress when the observation began."""
    latency_s: float = 0.0
    """How long the metadata request took."""

    def size_of(self, partition: TopicPartition) -> int:
        """Return the size of the leader's replica, or the largest known."""
        copies = self.copies.get(partition, {})
        known = self.partitions.get(partition)
        leader = None if known is None else known.leader
        if leader is not None and leader in copies:
            return copies[leader].size_bytes
        return max((copy.size_bytes for copy in copies.values()), default=0)

    def hindrance(self, step: Step) -> str | None:
        """Say why a step cannot begin now; None if it can."""
        for broker in step.adding:
            if broker not in self.alive:
                return f"broker {broker} is not there"
        now = self.partitions.get(step.partition)
        if now is None:
            return None
        if now.leader is None:
            return "it has no leader to copy from"
        lagging = [b for b in step.before if b in step.after and b not in now.isr]
        if lagging and step.removing:
            return f"its replica on broker {lagging[0]} is not in sync, so none may go"
        return None

    def cannot_throttle(self, step: Step) -> str | None:
        """Say which broker cannot be told the throttle of a step; None if all that copy can."""
        now = self.partitions.get(step.partition)
        for broker in (*(() if now is None else (now.leader,)), *step.adding):
            if broker in self.silent:
                return f"broker {broker} does not answer, so its throttle cannot be set"
        return None

    @property
    def answering(self) -> frozenset[BrokerId]:
        """Return the brokers that are in the metadata and answer."""
        return self.alive - self.silent

    @property
    def under_replicated(self) -> frozenset[TopicPartition]:
        """Return partitions with a replica out of sync, except moving ones, where that is expected.

        The metadata is read before the list of reassignments. A reassignment that ends in between is no
        longer listed, so those known from before are left out, too.
        """
        return frozenset(
            name
            for name, each in self.partitions.items()
            if len(each.isr) < len(each.replicas) and name not in self.moves and name not in self.in_progress
        )

    def lacking_more_than(self, before: Observation) -> frozenset[TopicPartition]:
        """Return partitions that were not under-replicated before, and lack more than dead brokers."""
        new = self.under_replicated - before.under_replicated
        missing = {name: {*self.partitions[name].replicas} - {*self.partitions[name].isr} for name in new}
        return frozenset(name for name in new if missing[name] & before.alive)

    @property
    def offline(self) -> frozenset[TopicPartition]:
        return frozenset(name for name, each in self.partitions.items() if each.leader is None)


async def look(admin: Admin, clock: Clock, in_progress: Iterable[TopicPartition] = ()) -> Observation:
    """Ask the cluster for everything. A broker that does not describe its log dirs is missing from `dirs`.

    `in_progress` are the partitions whose reassignment the caller knows to be in progress.
    """
    known = frozenset(in_progress)
    began_s = clock.monotonic_s()
    view = await admin.describe_cluster()
    latency_s = clock.monotonic_s() - began_s
    alive = frozenset(node.id for node in view.nodes)
    topics = await admin.describe_topics()
    moves = await admin.list_partition_reassignments()
    disks = await admin.describe_log_dirs(sorted(alive), PATIENCE_S)
    copies: dict[TopicPartition, dict[BrokerId, Copy]] = {}
    futures: dict[TopicPartition, dict[BrokerId, Copy]] = {}
    dirs: dict[BrokerId, tuple[LogDir, ...]] = {}
    silent = set()
    for broker, told in disks.items():
        if isinstance(told, BrokerError):
            if told.code is ErrorCode.BROKER_NOT_AVAILABLE:
                silent.add(broker)
            continue
        dirs[broker] = told.log_dirs
        for each in told.replicas:
            here = (futures if each.future else copies).setdefault(each.partition, {})
            here[broker] = each.copy_on(broker)
    return Observation(
        at_s=clock.monotonic_s(),
        alive=alive,
        silent=frozenset(silent),
        partitions=partitions_of(topics),
        moves=moves,
        copies=copies,
        futures=futures,
        dirs=dirs,
        topic_ids={topic.name: topic.id for topic in topics if topic.id is not None},
        in_progress=known,
        latency_s=latency_s,
    )
