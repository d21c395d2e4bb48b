"""Topics that are created, expanded and deleted, as brokers learn of it."""

from __future__ import annotations

import asyncio

from restow.cluster.controller import create_partitions, delete_topic
from restow.cluster.store.znodes import EntityConfig, TopicZNode
from restow.model import TopicPartition
from tests.unit.controller.fake_cluster import FakeCluster, fake_cluster


def leaders(cluster: FakeCluster, broker_id: int) -> dict[TopicPartition, int]:
    return {partition: state.leader for partition, state in cluster.brokers[broker_id].metadata.items()}


def test_new_topic_gets_leaders_and_all_brokers_learn_of_it() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            await cluster.start_controller(0)
            await cluster.create("t", {0: (0, 1), 1: (1, 2), 2: (2, 0)})
            expected = {TopicPartition("t", 0): 0, TopicPartition("t", 1): 1, TopicPartition("t", 2): 2}
            await cluster.until(lambda: all(leaders(cluster, each) == expected for each in range(3)))
            state = await cluster.state("t", 1)
            assert (state.leader, state.leader_epoch, state.isr, state.controller_epoch) == (1, 0, (1, 2), 1)
            assert cluster.brokers[0].hosted.keys() == {TopicPartition("t", 0), TopicPartition("t", 2)}
            assert all(state.is_new for state in cluster.brokers[0].hosted.values())

    asyncio.run(run())


def test_controller_sends_many_partitions_in_one_request_per_broker() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            await cluster.start_controller(0)
            await cluster.create("t", {each: (each % 3, (each + 1) % 3) for each in range(500)})
            await cluster.until(lambda: all(len(leaders(cluster, each)) == 500 for each in range(3)))
            for broker in cluster.brokers.values():
                told = [len(r.topic_states) for r in broker.heard if hasattr(r, "live_leaders")]
                assert told == [1]

    asyncio.run(run())


def test_new_partitions_do_not_change_existing_ones() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            await cluster.start_controller(0)
            await cluster.create("t", {0: (0, 1)})
            await cluster.until(lambda: len(leaders(cluster, 2)) == 1)
            await create_partitions(cluster.store, "t", {1: (2, 1)})
            await cluster.until(lambda: len(leaders(cluster, 0)) == 2)
            assert (await cluster.state("t", 0)).leader_epoch == 0
            assert (await cluster.state("t", 1)).leader == 2

    asyncio.run(run())


def test_deleted_topic_leaves_no_znodes_or_replicas() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            await cluster.start_controller(0)
            await cluster.create("t", {0: (0, 1), 1: (1, 2)}, retention_ms="1000")
            await cluster.create("kept", {0: (0, 1, 2)})
            await cluster.until(lambda: len(leaders(cluster, 2)) == 3)
            await delete_topic(cluster.store, "t")
            await cluster.until(lambda: gone(cluster, "t"))
            assert await cluster.topics() == ("kept",)
            for broker in cluster.brokers.values():
                assert broker.on_disk == {TopicPartition("kept", 0)}
                assert broker.metadata.keys() == {TopicPartition("kept", 0)}

    asyncio.run(run())


async def gone(cluster: FakeCluster, topic: str) -> bool:
    """Return whether its znode, its config and the delete request are gone."""
    paths = (TopicZNode.path(topic), EntityConfig.topic_path(topic), f"/admin/delete_topics/{topic}")
    return not any([await cluster.store.exists(path) for path in paths])
