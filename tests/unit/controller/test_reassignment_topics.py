"""Reassignments of topics that are deleted, expanded, leaderless or removed by hand."""

from __future__ import annotations

import asyncio

import pytest

from restow.cluster.controller import ControllerError, ControllerStep, create_partitions, delete_topic
from restow.cluster.store.znodes import PartitionStateZNode
from restow.model import ReplicaAssignment, TopicPartition
from tests.unit.controller.moves import (
    T0,
    alter,
    ask_by_node,
    assignment,
    at_rest,
    catch_up,
    files_are_right,
    finish,
    moving_cluster,
    request_is_gone,
    turns,
)


def test_deletion_waits_for_the_end_of_a_reassignment() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            await alter(controller, (0, 2))
            await delete_topic(cluster.store, "t")
            await cluster.until(lambda: controller.is_deleting("t"))
            await turns()
            assert T0 in cluster.brokers[1].on_disk
            assert await cluster.topics() == ("t",)

            async def is_gone() -> bool:
                await catch_up(cluster)
                return not await cluster.topics()

            await cluster.until(is_gone)
            assert "B8" in watcher.labels()
            await cluster.until(lambda: files_are_right(cluster))

    asyncio.run(run())


def test_deletion_finishes_after_target_broker_of_reassignment_returns() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await alter(controller, (0, 2))
            await delete_topic(cluster.store, "t")
            await cluster.until(lambda: controller.is_deleting("t"))
            await cluster.stop_broker(2)
            await cluster.until(lambda: 2 not in cluster.brokers[0].live_brokers)
            await cluster.start_broker(2)

            async def is_gone() -> bool:
                await catch_up(cluster)
                return not await cluster.topics()

            await cluster.until(is_gone)
            await cluster.until(lambda: files_are_right(cluster))

    asyncio.run(run())


def test_kafka_9038_only_topic_under_reassignment_cannot_be_expanded() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await cluster.create("other", {0: (0, 1)})
            await cluster.settled()
            await alter(controller, (0, 2))
            with pytest.raises(ControllerError) as refused:
                await create_partitions(cluster.store, "t", {1: (0, 1)})
            assert refused.value.code.name == "REASSIGNMENT_IN_PROGRESS"
            await create_partitions(cluster.store, "other", {1: (1, 2)})
            await cluster.until(lambda: TopicPartition("other", 1) in cluster.brokers[2].hosted)
            await finish(cluster)
            await create_partitions(cluster.store, "t", {1: (0, 1)})
            await cluster.settled()

    asyncio.run(run())


def test_partitions_added_during_assignment_write_are_kept() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):

            async def expand() -> None:
                watcher.then.clear()
                await create_partitions(cluster.store, "t", {1: (1, 2)})

            watcher.then[ControllerStep.U0] = expand
            await alter(controller, (0, 2))
            await cluster.until(lambda: TopicPartition("t", 1) in cluster.brokers[2].hosted)
            await finish(cluster)
            assert await assignment(cluster, TopicPartition("t", 1)) == ReplicaAssignment((1, 2))

    asyncio.run(run())


def test_reassignment_elects_first_leader_of_leaderless_partition() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await cluster.stop_broker(2)
            await cluster.stop_broker(3)
            await cluster.until(lambda: cluster.brokers[0].live_brokers == {0, 1, 4})
            await cluster.create("dark", {0: (2, 3)})
            dark = TopicPartition("dark", 0)

            async def moved() -> bool:
                return await alter(controller, (1, 0), dark) is None

            await cluster.until(moved)
            await cluster.until(lambda: dark in cluster.brokers[1].hosted)
            state = await cluster.state("dark", 0)
            assert (state.leader, state.isr) == (1, (1, 0))
            assert await at_rest(cluster)

    asyncio.run(run())


def test_reassignment_of_consumer_offsets_works() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await cluster.create("__consumer_offsets", {0: (0, 1)})
            await cluster.settled()
            assert await alter(controller, (2,), TopicPartition("__consumer_offsets", 0)) is None
            await finish(cluster)
            assert (await cluster.state("__consumer_offsets", 0)).leader == 2

    asyncio.run(run())


def test_reassignment_of_topic_removed_by_hand_is_dropped() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await cluster.create("u", {0: (0, 1)})
            await cluster.settled()
            await ask_by_node(cluster, t=(0, 2), u=(0, 3))
            await cluster.until(lambda: T0 in cluster.brokers[2].hosted)
            for path in (PartitionStateZNode.path("t", 0), *reversed(PartitionStateZNode.parents("t", 0))):
                await cluster.store.delete(path)
            await cluster.store.delete("/brokers/topics/t")

            async def is_over() -> bool:
                await catch_up(cluster)
                return await request_is_gone(cluster)

            await cluster.until(is_over)
            assert await controller.list_reassignments(None) == {}
            assert await assignment(cluster, TopicPartition("u", 0)) == ReplicaAssignment((0, 3))

    asyncio.run(run())
