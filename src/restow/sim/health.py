"""What is wrong with a cluster without faults: it must become healthy within a bound."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from restow.cluster.replication.partition import Role
from restow.model import TopicPartition
from restow.sim.states import NOBODY, controller_of, state_of, topics_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.model import ReplicaAssignment
    from restow.sim.cluster import SimCluster, SimNode

_LOG = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)")
_MARKED = re.compile(r".+\.[0-9a-f]+-(delete|stray|future)")


def unhealthy(cluster: SimCluster) -> Iterator[str]:
    """Yield what is not as it should be."""
    for node in cluster.nodes.values():
        if not node.broker.is_running:
            yield f"broker {node.id} is not running"
            return
    if controller_of(cluster.store.tree) == NOBODY:
        yield "there is no controller"
    assigned = {
        TopicPartition(topic, number): replicas
        for topic, node in topics_in(cluster.store.tree)
        for number, replicas in node.partitions.items()
    }
    for partition, replicas in assigned.items():
        yield from _check_partition(cluster, partition, replicas)
    for node in cluster.nodes.values():
        yield from _check_log_dirs(node, assigned)
        yield from _check_metadata(cluster, node, assigned)


def _check_partition(
    cluster: SimCluster, partition: TopicPartition, assignment: ReplicaAssignment
) -> Iterator[str]:
    replicas = assignment.replicas
    if assignment.adding or assignment.removing:
        yield f"{partition} is still being reassigned: {assignment}"
    state = state_of(cluster.store.tree, partition)
    if state is None:
        yield f"{partition} has no state"
        return
    if state.leader not in replicas:
        yield f"{partition} has the leader {state.leader}, not one of {replicas}"
    if sorted(state.isr) != sorted(replicas):
        yield f"{partition} has the ISR {state.isr} instead of {replicas}"
    ends = {}
    for broker in replicas:
        hosted = cluster.nodes[broker].broker.services.replicas.partition(partition)
        wanted = Role.LEADER if broker == state.leader else Role.FOLLOWER
        if hosted is None or hosted.role is not wanted or hosted.leader_epoch != state.leader_epoch:
            yield f"{partition} is not {wanted.value} on broker {broker} in epoch {state.leader_epoch}"
        else:
            ends[broker] = hosted.log.end_offset, hosted.log.high_watermark
    if len(set(ends.values())) > 1:
        yield f"{partition} has replicas with different ends and high watermarks: {ends}"


def _check_log_dirs(node: SimNode, assigned: dict[TopicPartition, ReplicaAssignment]) -> Iterator[str]:
    services = node.broker.services
    if services.logs.offline:
        yield f"broker {node.id} has offline log dirs: {services.logs.offline}"
    for hosted in services.replicas.hosted():
        if not _is_assigned(hosted.topic_partition, node.id, assigned):
            yield f"broker {node.id} hosts {hosted.topic_partition}, which is not assigned to it"
    homes: dict[TopicPartition, str] = {}
    for path in node.log_dirs:
        for name in node.disk.list(path):
            if _MARKED.fullmatch(name):
                yield f"broker {node.id} still has {path}/{name}"
            elif found := _LOG.fullmatch(name):
                partition = TopicPartition(found["topic"], int(found["partition"]))
                if not _is_assigned(partition, node.id, assigned):
                    yield f"broker {node.id} has a stray log {path}/{name}"
                if partition in homes:
                    yield f"broker {node.id} has {partition} twice, in {homes[partition]} and {path}"
                homes[partition] = path


def _check_metadata(
    cluster: SimCluster, node: SimNode, assigned: dict[TopicPartition, ReplicaAssignment]
) -> Iterator[str]:
    """Compare what a broker tells clients with the store, except for the ISR, of which it may hear late."""
    known = node.broker.services.metadata
    if known.brokers.keys() != cluster.nodes.keys():
        yield f"broker {node.id} knows the brokers {list(known.brokers)}"
    for topic in sorted(known.topics.keys() - {partition.topic for partition in assigned}):
        yield f"broker {node.id} knows the topic {topic}, which does not exist"
    for partition, assignment in assigned.items():
        told, state = known.partition(partition), state_of(cluster.store.tree, partition)
        if told is None or state is None:
            yield f"broker {node.id} knows nothing of {partition}"
        elif (told.leader_id, told.leader_epoch) != (state.leader, state.leader_epoch):
            yield f"broker {node.id} tells the leader {told.leader_id} of {partition}, not {state.leader}"
        elif told.replicas != assignment.replicas:
            yield (
                f"broker {node.id} tells the replicas {told.replicas} of {partition}, "
                f"not {assignment.replicas}"
            )


def _is_assigned(
    partition: TopicPartition, broker: int, assigned: dict[TopicPartition, ReplicaAssignment]
) -> bool:
    found = assigned.get(partition)
    return found is not None and broker in found.replicas
