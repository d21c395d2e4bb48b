"""Reassignments through the znode among broker processes on ZooKeeper; the controller is killed, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from harness.brokers import wait_for
from restow.cluster.store.znodes import ControllerZNode, ReassignPartitions, TopicZNode
from restow.model import TopicPartition
from tests.faults.recording import quiet
from tests.faults.tree import with_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.brokers import BrokerProcesses
    from restow.cluster.store import Store

pytestmark = pytest.mark.jvm

TOPIC = "moved"
COUNT = 40
SESSION = {"zookeeper.session.timeout.ms": "20000"}
"""Session timeout, long enough for brokers that are not killed."""


async def controller_of(store: Store) -> int:
    return ControllerZNode.decode((await store.get(ControllerZNode.PATH)).data).broker_id


async def ask(store: Store, replicas: tuple[int, ...]) -> None:
    """Write a request to reassign all partitions there."""
    target = {TopicPartition(TOPIC, number): replicas for number in range(COUNT)}
    await store.create(ReassignPartitions.PATH, ReassignPartitions(target).encode())


async def is_done(store: Store, replicas: tuple[int, ...]) -> bool:
    topic = TopicZNode.decode((await store.get(TopicZNode.path(TOPIC))).data, TOPIC)
    return (
        all(not each.is_moving and each.replicas == replicas for each in topic.partitions.values())
        and await store.exists(ReassignPartitions.PATH) is None
    )


@pytest.mark.parametrize("is_killed", [False, True], ids=["undisturbed", "controller killed"])
def test_reassignment_through_znode_finishes(
    start_brokers: Callable[..., BrokerProcesses], *, is_killed: bool
) -> None:
    """The controller is not a target: while a target is down, the next controller would refuse it."""
    brokers = start_brokers(harms=is_killed, configs=SESSION)
    controller = with_store(brokers, controller_of)
    leader, new = (broker for broker in brokers if broker != controller)
    admin = AdminClient(quiet(brokers.bootstrap))
    topic = NewTopic(TOPIC, COUNT, replica_assignment=[[leader, controller]] * COUNT)
    admin.create_topics([topic])[TOPIC].result(120)
    with_store(brokers, lambda store: ask(store, (new, leader)))
    if is_killed:
        brokers[controller].kill()
        brokers[controller].start()
    wait_for(
        "all partitions are where they should be",
        lambda: with_store(brokers, lambda store: is_done(store, (new, leader))),
        120,
    )
