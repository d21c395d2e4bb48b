"""Moves among broker processes on a real ZooKeeper, asked for by the node; the controller is killed too."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from harness.brokers import wait_for
from restow.cluster.store.znodes import Controller, ReassignPartitions, Topic
from restow.cluster.store.zookeeper import ZooKeeperStore
from restow.model import TopicPartition
from tests.faults.recording import quiet

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness.brokers import BrokerProcesses
    from restow.cluster.store import Store

pytestmark = pytest.mark.jvm

TOPIC = "moved"
COUNT = 40
BEFORE = dict.fromkeys(range(COUNT), (1, 2))
AFTER = {TopicPartition(TOPIC, number): (3, 1) for number in range(COUNT)}


def with_store(brokers: BrokerProcesses, work: Callable[[Store], Awaitable[Any]]) -> Any:
    """Do it in a session of its own with the brokers' ZooKeeper."""

    async def run() -> Any:
        store = await ZooKeeperStore.connect(f"{brokers.zookeeper.address}/restow")
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


async def ask(store: Store) -> int:
    """Write the request; who is controller."""
    await store.create(ReassignPartitions.PATH, ReassignPartitions(AFTER).encode())
    return Controller.decode((await store.get(Controller.PATH)).data).broker_id


async def is_done(store: Store) -> bool:
    topic = Topic.decode((await store.get(Topic.path(TOPIC))).data, TOPIC)
    found = {TopicPartition(TOPIC, number): each for number, each in topic.partitions.items()}
    return (
        all(not each.is_moving and each.replicas == AFTER[key] for key, each in found.items())
        and await store.exists(ReassignPartitions.PATH) is None
    )


@pytest.mark.parametrize("is_killed", [False, True], ids=["undisturbed", "controller killed"])
def test_moves_by_the_node(start_brokers: Callable[..., BrokerProcesses], *, is_killed: bool) -> None:
    brokers = start_brokers(configs={"zookeeper.session.timeout.ms": "2000"})
    admin = AdminClient(quiet(brokers.bootstrap))
    new = NewTopic(TOPIC, COUNT, replica_assignment=[list(BEFORE[number]) for number in range(COUNT)])
    admin.create_topics([new])[TOPIC].result(30)
    controller = with_store(brokers, ask)
    if is_killed:
        brokers[controller].kill()
        brokers[controller].start()
    wait_for("all partitions are where they should be", lambda: with_store(brokers, is_done))
