"""Stray logs: their partitions were reassigned or deleted while this broker was down.

The controller sends StopReplica only to live brokers, and when a dead one is back the reassignment is over.
So a broker compares its logs with the topics in the store before it registers. A log is removed if its topic
is gone, was created again with another id, or is assigned to other brokers.

A reassignment may end between that comparison and the registration, and a controller may die before it has
sent its decision. So a broker compares again when it gets requests from a new controller, or from its first
one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from restow.cluster.log.errors import LogError
from restow.cluster.store import StoreError, UnreadableNode
from restow.cluster.store.znodes import TopicZNode
from restow.wire.between_brokers import StopReplicaRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.broker.services import Services
    from restow.cluster.log import LogManager
    from restow.cluster.store import Store, StoreNode
    from restow.model import TopicPartition
    from restow.wire.messages import Message

log = logging.getLogger(__name__)


async def remove_strays(store: Store, logs: LogManager, broker_id: int) -> tuple[TopicPartition, ...]:
    """Rename the directories of stray logs, to delete them later. Return their partitions."""
    strays = await _find_strays(store, logs, broker_id)
    for partition in strays:
        log.warning("%s is no longer assigned to broker %d: removing its log", partition, broker_id)
        try:
            logs.delete_stray(partition)
        except LogError as error:
            log.warning("the log of %s cannot be removed: %s", partition, error)
    return strays


async def stop_strays(broker: Services) -> None:
    """Stop and delete replicas that were taken from this broker without a StopReplica request.

    Controller requests wait meanwhile. A new replica is in the topic's znode before any broker is asked to
    create it.
    """
    async with broker.controller_requests.turn:
        try:
            strays = await _find_strays(broker.store, broker.logs, broker.broker_id)
        except StoreError as error:
            log.warning("stray logs cannot be found: %s", error)
            return
        if strays:
            log.warning("no longer assigned to broker %d, and removed: %s", broker.broker_id, strays)
            broker.replicas.stop_replicas(
                _order_to_delete(strays, broker.controller_requests.controller_epoch)
            )


def _order_to_delete(partitions: Iterable[TopicPartition], controller_epoch: int) -> Message:
    make = StopReplicaRequest.StopReplicaTopicState
    return StopReplicaRequest(
        controller_epoch=controller_epoch,
        topic_states=[
            make(
                topic_name=partition.topic,
                partition_states=[
                    make.StopReplicaPartitionState(
                        partition_index=partition.partition, leader_epoch=-1, delete_partition=True
                    )
                ],
            )
            for partition in partitions
        ],
    )


async def _find_strays(store: Store, logs: LogManager, broker_id: int) -> tuple[TopicPartition, ...]:
    held = dict.fromkeys((*logs.partitions, *logs.futures.partitions))
    names = sorted({partition.topic for partition in held})
    nodes = await store.get_each([TopicZNode.path(name) for name in names])
    gone = {name for name, node in zip(names, nodes, strict=True) if node is None}
    topics = {name: topic for name, node in zip(names, nodes, strict=True) if (topic := _read(name, node))}
    return tuple(
        partition
        for partition in held
        if partition.topic in gone
        or (partition.topic in topics and _is_stray(partition, topics[partition.topic], logs, broker_id))
    )


def _read(name: str, node: StoreNode | None) -> TopicZNode | None:
    """Decode a topic, once for all its partitions. An unreadable one proves nothing, so its logs stay."""
    try:
        return None if node is None else TopicZNode.decode(node.data, TopicZNode.path(name))
    except UnreadableNode as error:
        log.warning("stray logs of %s cannot be found: %s", name, error)
        return None


def _is_stray(partition: TopicPartition, topic: TopicZNode, logs: LogManager, broker_id: int) -> bool:
    known_id = logs.topic_id_of(partition)
    if None not in (known_id, topic.topic_id) and known_id != topic.topic_id:
        return True
    assigned = topic.partitions.get(partition.partition)
    return assigned is None or broker_id not in assigned.replicas
