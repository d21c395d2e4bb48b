"""Invariants that hold at every moment, whatever faults occur.

    in the brokers    one leader per partition and epoch; the leader is in its ISR; the high watermark is
                      within the log, also right after a start; a replica's leader epoch never goes back; a
                      leader takes no records while its ISR is smaller than min.insync.replicas; one acting
                      controller per epoch
    in their logs     what a high watermark covered stays; the ISR has all of it (`sim/committed.py`)
    in the store      what every single write must keep (`sim/written.py`)
    between brokers   outdated requests of controllers are refused (`sim/fencing.py`)

Only what has changed since the last look is looked at, and a cluster at rest rarely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.replication.partition import Role
from restow.sim.committed import CommittedRecords, PartitionKey, ReplicaAt
from restow.sim.fencing import Fencing
from restow.sim.written import WrittenStates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from restow.cluster.broker.services import Services
    from restow.cluster.log import PartitionLog
    from restow.cluster.replication.partition import HostedPartition
    from restow.cluster.replication.values import LeaderAndIsrPartition
    from restow.model import TopicPartition
    from restow.sim.cluster import SimCluster, SimNode

_LOOKS_AFTER_A_CHANGE = 8
_LOOK_AT_REST_ONE_IN = 8


class _ReplicaState(NamedTuple):
    """A replica at one look."""

    log: PartitionLog
    order: LeaderAndIsrPartition
    role: Role
    high_watermark: int
    end_offset: int


class Invariants:
    """Repeated checks of one cluster, which remember earlier states."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self.committed = CommittedRecords()
        self._leaders: dict[tuple[PartitionKey, int], int] = {}
        self._controllers: dict[int, int] = {}
        self._written = WrittenStates(cluster)
        self._fencing = Fencing(cluster)
        self._at_start: list[str] = []
        """What was wrong with logs when their broker had started."""
        for node in cluster.nodes.values():
            node.on_started = self._look_at_logs
        self._seen: dict[int, dict[HostedPartition, _ReplicaState]] = {each: {} for each in cluster.nodes}
        """The state of each replica at the last look."""
        self._last_change: tuple[int, ...] = ()
        self._looks_since_change = 0

    def check(self) -> Iterator[str]:
        """Yield the invariants that do not hold now."""
        for broken in (self._written.broken, self._fencing.broken, self._at_start):
            yield from broken
            broken.clear()
        if self._is_at_rest():
            return
        for node in self._running():
            yield from self._check_controller(node)
        yield from self.check_replicas()

    def check_replicas(self, *, anew: bool = False) -> Iterator[str]:
        """Yield what is wrong with changed replicas. With `anew`, look at all replicas and records again."""
        changed: dict[TopicPartition, None] = self.committed.newly_acknowledged()
        for node in self._running():
            seen = self._seen[node.id]
            hosted = node.broker.services.replicas.hosted()
            for partition in hosted:
                log, before = partition.log, seen.get(partition)
                watermark, end = log.high_watermark, log.end_offset
                if before is not None and not anew:
                    log_before, order, role, watermark_before, end_before = before
                    if (
                        end == end_before
                        and watermark == watermark_before
                        and order is partition.order  # a new order is a new object
                        and role is partition.role
                        and log is log_before
                    ):
                        continue
                now = _ReplicaState(log, partition.order, partition.role, watermark, end)
                seen[partition] = now
                changed[partition.topic_partition] = None
                if before is not None:
                    yield from _check_change(node, partition.topic_partition, before, now)
            if len(seen) > len(hosted):
                self._seen[node.id] = {partition: seen[partition] for partition in hosted}
        for node in self._cluster.nodes.values():
            node.disk.is_looked_at = True
        services = {node.id: node.broker.services for node in self._running()}
        broken: list[str] = []
        for name in changed:
            self._check_partition(name, services, broken, anew=anew)
        yield from broken
        for node in self._cluster.nodes.values():
            node.disk.is_looked_at = False

    def _check_partition(
        self, name: TopicPartition, services: Mapping[int, Services], broken: list[str], *, anew: bool
    ) -> None:
        """Check the replicas of one partition. This runs most often of all checks, so it makes little."""
        lives: dict[str | None, list[ReplicaAt]] = {}
        for broker, each in services.items():
            partition = each.replicas.partition(name)
            if partition is not None:
                topic_id = each.logs.topic_id_of(name)
                if topic_id not in lives:
                    lives[topic_id] = []
                lives[topic_id].append((broker, partition))
        for topic_id, replicas in lives.items():
            key = PartitionKey(name.topic, topic_id, name.partition)
            for broker, partition in replicas:
                log = partition.log
                if not log.start_offset <= log.high_watermark <= log.end_offset:
                    broken.extend(_check_log(str(key), broker, log))
                if partition.role is Role.LEADER:
                    broken.extend(self._check_leader(key, broker, partition.order))
            self.committed.check(key, replicas, broken, anew=anew)

    def _look_at_logs(self, node: SimNode) -> None:
        """Look at logs that were just loaded. Followers will soon hide what is wrong with them."""
        logs = node.broker.services.logs
        for name in logs.partitions:
            if (log := logs.get(name)) is not None:
                self._at_start.extend(_check_log(f"{name}", node.id, log))

    def _running(self) -> Iterator[SimNode]:
        return (node for node in self._cluster.nodes.values() if node.broker.is_running)

    def _is_at_rest(self) -> bool:
        """Return whether this look can be left out, because nothing has changed for a while."""
        nodes = self._cluster.nodes.values()
        change = (self._cluster.store.tree.zxid, *(node.disk.changes for node in nodes))
        if change != self._last_change:
            self._last_change, self._looks_since_change = change, 0
        self._looks_since_change += 1
        return self._looks_since_change > _LOOKS_AFTER_A_CHANGE and bool(
            self._looks_since_change % _LOOK_AT_REST_ONE_IN
        )

    def _check_controller(self, node: SimNode) -> Iterator[str]:
        epoch = node.broker.services.controller.epoch
        if epoch >= 0:
            known = self._controllers.setdefault(epoch, node.id)
            if known != node.id:
                yield f"two controllers of epoch {epoch}: brokers {known} and {node.id}"

    def _check_leader(self, key: PartitionKey, broker: int, order: LeaderAndIsrPartition) -> Sequence[str]:
        known = self._leaders.setdefault((key, order.leader_epoch), broker)
        if known == broker and broker in order.isr:
            return ()
        if known != broker:
            return [f"{key} has two leaders in epoch {order.leader_epoch}: brokers {known} and {broker}"]
        return [f"{key}: leader {broker} is not in its ISR {order.isr}"]


def _check_log(name: str, broker: int, log: PartitionLog) -> Iterator[str]:
    if not log.start_offset <= log.high_watermark <= log.end_offset:
        yield (
            f"{name} on broker {broker}: high watermark {log.high_watermark} "
            f"is not within {log.start_offset} and {log.end_offset}"
        )


def _check_change(
    node: SimNode, name: TopicPartition, before: _ReplicaState, now: _ReplicaState
) -> Iterator[str]:
    """Compare a replica with itself at the last look.

    All records are written with acks=all, which a leader refuses as long as its ISR is too small. Compacted
    topics are left out, because the coordinator removes old offsets with fewer acknowledgements.
    """
    if now.order.leader_epoch < before.order.leader_epoch:
        yield (
            f"{name} on broker {node.id}: the leader epoch went back from {before.order.leader_epoch} "
            f"to {now.order.leader_epoch}"
        )
    if now.end_offset == before.end_offset or now.order != before.order or now.role is not Role.LEADER:
        return
    required = node.broker.services.configs.min_insync_replicas(name.topic)
    if len(now.order.isr) < min(required, len(now.order.replicas)) and not now.log.config.cleanup_compact:
        yield (
            f"{name} on broker {node.id} took the records {before.end_offset} to {now.end_offset}, but its "
            f"ISR {now.order.isr} is smaller than min.insync.replicas"
        )
