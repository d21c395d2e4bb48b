"""Invariants that hold at every moment, whatever faults occur.

    in the brokers    one leader per partition and epoch; the leader is in its ISR; the high watermark is
                      within the log; one acting controller per epoch
    in their logs     what a high watermark covered stays; the ISR has all of it (`sim/committed.py`)
    in the store      leader epochs and the controller epoch never go back; the leader is in the ISR

Only what has changed since the last look is looked at, and a cluster at rest rarely.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from restow.cluster.store.znodes import ControllerEpoch, PartitionStateZNode
from restow.model import TopicPartition
from restow.sim.committed import CommittedRecords, PartitionKey, ReplicaAt
from restow.sim.states import NOBODY, topics_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from restow.cluster.broker.services import Services
    from restow.cluster.replication.partition import HostedPartition
    from restow.sim.cluster import SimCluster, SimNode

_LOOKS_AFTER_A_CHANGE = 8
_LOOK_AT_REST_ONE_IN = 8


class Invariants:
    """Repeated checks of one cluster, which remember earlier states."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self.committed = CommittedRecords()
        self._leaders: dict[tuple[PartitionKey, int], int] = {}
        self._controllers: dict[int, int] = {}
        self._store = StoreInvariants(cluster)
        self._seen: dict[int, dict[HostedPartition, object]] = {each: {} for each in cluster.nodes}
        """The state of each replica at the last look."""
        self._last_change: tuple[int, ...] = ()
        self._looks_since_change = 0

    def check(self) -> Iterator[str]:
        """Yield the invariants that do not hold now."""
        if self._is_at_rest():
            return
        yield from self._store.check()
        for node in self._running():
            yield from self._check_controller(node)
        yield from self.check_replicas()

    def check_replicas(self, *, anew: bool = False) -> Iterator[str]:
        """Yield what is wrong with changed replicas. With `anew`, look at all replicas and records again."""
        changed: dict[TopicPartition, None] = self.committed.newly_acknowledged()
        for node in self._running():
            before = self._seen[node.id]
            now: dict[HostedPartition, object] = {}
            for partition in node.broker.services.replicas.hosted():
                log = partition.log
                state = log, partition.order, partition.role, log.high_watermark, log.end_offset
                now[partition] = state
                if anew or before.get(partition) != state:
                    changed[partition.topic_partition] = None
            self._seen[node.id] = now
        for node in self._cluster.nodes.values():
            node.disk.is_looked_at = True
        services = {node.id: node.broker.services for node in self._running()}
        for name in changed:
            yield from self._check_partition(name, services, anew=anew)
        for node in self._cluster.nodes.values():
            node.disk.is_looked_at = False

    def _check_partition(
        self, name: TopicPartition, services: Mapping[int, Services], *, anew: bool
    ) -> Iterator[str]:
        lives: defaultdict[str | None, list[ReplicaAt]] = defaultdict(list)
        for broker, each in services.items():
            partition = each.replicas.partition(name)
            if partition is not None:
                lives[each.logs.topic_id_of(name)].append(ReplicaAt(broker, partition))
        for topic_id, replicas in lives.items():
            key = PartitionKey(name.topic, topic_id, name.partition)
            for broker, partition in replicas:
                yield from self._check_replica(key, broker, partition)
            yield from self.committed.check(key, replicas, anew=anew)

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

    def _check_replica(self, key: PartitionKey, broker: int, partition: HostedPartition) -> Iterator[str]:
        log = partition.log
        if not log.start_offset <= log.high_watermark <= log.end_offset:
            yield (
                f"{key} on broker {broker}: high watermark {log.high_watermark} "
                f"is not within {log.start_offset} and {log.end_offset}"
            )
        if not partition.is_leader:
            return
        epoch = partition.leader_epoch
        known = self._leaders.setdefault((key, epoch), broker)
        if known != broker:
            yield f"{key} has two leaders in epoch {epoch}: brokers {known} and {broker}"
        if broker not in partition.isr:
            yield f"{key}: leader {broker} is not in its ISR {partition.isr}"


class StoreInvariants:
    """What the znodes of partitions and of the controller must be like."""

    def __init__(self, cluster: SimCluster) -> None:
        self._tree = cluster.store.tree
        self._zxid = -1
        self._controller_epoch = 0
        self._seen: dict[tuple[str | None, TopicPartition], tuple[int, int]] = {}
        """Transaction and leader epoch of each state that was looked at."""

    def check(self) -> Iterator[str]:
        if self._tree.zxid == self._zxid:
            return
        self._zxid = self._tree.zxid
        yield from self._check_controller_epoch()
        for topic, node in topics_in(self._tree):
            for number in node.partitions:
                yield from self._check_state(node.topic_id, TopicPartition(topic, number))

    def _check_controller_epoch(self) -> Iterator[str]:
        node = self._tree.find(ControllerEpoch.PATH)
        epoch = 0 if node is None else ControllerEpoch.decode(node.data).epoch
        if epoch < self._controller_epoch:
            yield f"the controller epoch went back from {self._controller_epoch} to {epoch}"
        self._controller_epoch = epoch

    def _check_state(self, topic_id: str | None, partition: TopicPartition) -> Iterator[str]:
        path = PartitionStateZNode.path(*partition)
        node = self._tree.find(path)
        if node is None:
            return
        key = topic_id, partition
        zxid, epoch = self._seen.get(key, (-1, -1))
        if node.stat.mzxid == zxid:
            return
        state = PartitionStateZNode.decode(node.data, path)
        self._seen[key] = node.stat.mzxid, state.leader_epoch
        if state.leader_epoch < epoch:
            yield f"the leader epoch of {partition} went back from {epoch} to {state.leader_epoch}"
        if not state.isr:
            yield f"{partition} has an empty ISR"
        elif state.leader not in (*state.isr, NOBODY):
            yield f"{partition}: leader {state.leader} is not in its ISR {state.isr}"
