"""Brokers that die, return, lose a log dir or shut down."""

from __future__ import annotations

import asyncio

import pytest

from restow.cluster.controller import (
    ControllerError,
    ControllerStep,
    Election,
    NotController,
    delete_topic,
)
from restow.cluster.store.znodes import LogDirEvent
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.unit.controller.fake_cluster import FakeCluster, fake_cluster, lose_directory

T0 = TopicPartition("t", 0)


async def leader_and_isr(cluster: FakeCluster, partition: int = 0) -> tuple[int, tuple[int, ...]]:
    state = await cluster.state("t", partition)
    return state.leader, state.isr


def test_controller_elects_in_sync_replica_when_the_leader_dies() -> None:
    async def run() -> None:
        async with fake_cluster(4) as cluster:
            await cluster.start_controller(3)
            await cluster.create("t", {0: (1, 0, 2), 1: (0, 1)})
            await cluster.settled()
            await cluster.stop_broker(1)
            await cluster.settled()
            assert await leader_and_isr(cluster, 0) == (0, (0, 2))
            assert await leader_and_isr(cluster, 1) == (0, (0,))
            assert cluster.brokers[2].metadata[T0].offline_replicas == [1]
            await cluster.start_broker(1)
            await cluster.until(lambda: T0 in cluster.brokers[1].hosted)
            assert cluster.brokers[1].hosted[T0].leader == 0
            await cluster.until(lambda: cluster.brokers[2].metadata[T0].offline_replicas == [])

    asyncio.run(run())


def test_last_isr_member_stays_and_leads_again_when_its_broker_returns() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            await cluster.start_controller(2)
            await cluster.create("t", {0: (0, 1)})
            await cluster.settled()
            await cluster.stop_broker(1)
            await cluster.settled()
            await cluster.stop_broker(0)
            await cluster.settled()
            assert await leader_and_isr(cluster) == (-1, (0,))
            await cluster.start_broker(1)
            await cluster.settled()
            assert await leader_and_isr(cluster) == (-1, (0,))
            await cluster.start_broker(0)
            await cluster.settled()
            assert await leader_and_isr(cluster) == (0, (0,))

    asyncio.run(run())


def test_controller_elects_unclean_leader_if_the_topic_allows_it() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            await cluster.start_controller(2)
            await cluster.create("t", {0: (0, 1)}, unclean_leader_election_enable="true")
            await cluster.settled()
            await cluster.stop_broker(1)
            await cluster.settled()
            await cluster.stop_broker(0)
            await cluster.settled()
            await cluster.start_broker(1)
            await cluster.until(lambda: cluster.brokers[1].hosted[T0].leader == 1)
            assert await leader_and_isr(cluster) == (1, (1,))

    asyncio.run(run())


def test_controller_resends_everything_to_broker_that_restarted_unnoticed() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            controller = await cluster.start_controller(2)
            await cluster.create("t", {0: (0, 1), 1: (1, 0)})
            await cluster.settled()
            async with asyncio.TaskGroup() as group:
                group.create_task(cluster.stop_broker(0))
                group.create_task(cluster.start_broker(0))
            await cluster.settled()
            assert cluster.brokers[0].hosted.keys() == {T0, TopicPartition("t", 1)}
            assert controller.is_active

    asyncio.run(run())


def test_controller_sends_new_broker_metadata_of_every_topic_first() -> None:
    async def run() -> None:
        async with fake_cluster(2) as cluster:
            await cluster.start_controller(0)
            await cluster.create("t", {0: (0, 1)})
            await cluster.settled()
            await cluster.stop_broker(1)
            await cluster.settled()
            for broker_id in (1, 2):
                broker = await cluster.start_broker(broker_id)
                await cluster.settled()
                first = broker.heard[0]
                assert {each.id for each in first.live_brokers} >= {0, broker_id}
                assert [each.topic_name for each in first.topic_states] == ["t"]

    asyncio.run(run())


def test_partition_stays_new_until_a_replica_is_alive() -> None:
    async def run() -> None:
        async with fake_cluster(2) as cluster:
            await cluster.start_controller(1)
            await cluster.create("t", {0: (5, 6), 1: (0, 5)})
            await cluster.until(lambda: TopicPartition("t", 1) in cluster.brokers[1].metadata)
            await cluster.start_broker(5)
            await cluster.settled()
            assert await leader_and_isr(cluster, 0) == (5, (5,))
            assert await leader_and_isr(cluster, 1) == (0, (0,))

    asyncio.run(run())


def test_failed_log_dir_takes_only_its_replicas_offline() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            await cluster.start_controller(2)
            await cluster.create("t", {0: (0, 1), 1: (0, 1)})
            await cluster.settled()
            await lose_directory(cluster, 0, T0)
            await cluster.until(lambda: cluster.brokers[2].metadata[T0].leader == 1)
            assert await leader_and_isr(cluster, 0) == (1, (1,))
            assert await leader_and_isr(cluster, 1) == (0, (0, 1))
            assert cluster.brokers[2].metadata[T0].offline_replicas == [0]
            assert await cluster.store.children(LogDirEvent.PARENT) == ()
            await cluster.stop_broker(0)
            await cluster.start_broker(0)
            await cluster.settled()
            await cluster.until(lambda: cluster.brokers[2].metadata[T0].offline_replicas == [])

    asyncio.run(run())


def test_controller_forgets_failed_log_dirs_when_the_broker_restarts() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            paused, released = asyncio.Event(), asyncio.Event()

            async def pause(step: ControllerStep) -> None:
                if step is ControllerStep.C1 and cluster.unreachable:
                    paused.set()
                    await released.wait()

            await cluster.start_controller(2, at=pause)
            await cluster.create("t", {0: (0, 1)})
            await cluster.settled()
            cluster.unreachable.add(0)
            await lose_directory(cluster, 0, T0)
            await cluster.until(lambda: cluster.has_nothing_under(LogDirEvent.PARENT))
            await cluster.create("other", {0: (1,)})
            await paused.wait()
            await cluster.start_broker(9)
            former = cluster.brokers[0]
            heard = len(former.heard)
            cluster.unreachable.discard(0)
            await cluster.until(lambda: len(former.heard) > heard)
            await cluster.stop_broker(0)
            await cluster.start_broker(0)
            released.set()
            await cluster.until(lambda: cluster.brokers[2].live_brokers == {0, 1, 2, 9})
            await cluster.settled()
            assert cluster.brokers[2].metadata[T0].offline_replicas == []
            assert cluster.brokers[0].hosted.keys() == {T0}
            assert (await cluster.state("t", 0)).leader_epoch <= 2

    asyncio.run(run())


def test_controlled_shutdown_moves_leaders_away() -> None:
    async def run() -> None:
        async with fake_cluster(4) as cluster:
            controller = await cluster.start_controller(3)
            await cluster.create("t", {0: (0, 1, 2), 1: (1, 0), 2: (0,)})
            await cluster.settled()
            leaver = cluster.brokers[0]
            assert await controller.handle_controlled_shutdown(0, leaver.epoch) == ()
            assert await leader_and_isr(cluster, 0) == (1, (1, 2))
            assert await leader_and_isr(cluster, 1) == (1, (1,))
            assert await leader_and_isr(cluster, 2) == (0, (0,))
            await cluster.until(lambda: TopicPartition("t", 1) not in leaver.hosted)
            await cluster.stop_broker(0)
            await cluster.settled()

    asyncio.run(run())


def test_controlled_shutdown_returns_leaders_that_cannot_move() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            controller = await cluster.start_controller(2)
            await cluster.create("t", {0: (0, 1)})
            await cluster.settled()
            await cluster.stop_broker(1)
            await cluster.settled()
            assert await controller.handle_controlled_shutdown(0, cluster.brokers[0].epoch) == (T0,)
            await cluster.start_broker(1)
            assert await leader_and_isr(cluster) == (0, (0,))

    asyncio.run(run())


def test_controlled_shutdown_refuses_unregistered_broker_and_wrong_controller() -> None:
    async def run() -> None:
        async with fake_cluster(2) as cluster:
            controller = await cluster.start_controller(0)
            other = await cluster.start_controller(1)
            assert (controller.controller_id, other.controller_id) == (0, 0)
            with pytest.raises(ControllerError) as refused:
                await controller.handle_controlled_shutdown(7, -1)
            assert refused.value.code is ErrorCode.BROKER_NOT_AVAILABLE
            registered = cluster.brokers[1].epoch
            for epoch in (registered - 1, registered + 1, -1, 0, 2**63 - 1):
                with pytest.raises(ControllerError) as refused:
                    await controller.handle_controlled_shutdown(1, epoch)
                assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
            with pytest.raises(NotController):
                await other.handle_controlled_shutdown(1, -1)
            assert controller.is_active

    asyncio.run(run())


def test_deletion_waits_for_dead_broker_and_resumes_when_it_returns() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            await cluster.start_controller(2)
            await cluster.create("t", {0: (0, 1), 1: (2, 0)})
            await cluster.settled()
            await cluster.stop_broker(1)
            await cluster.settled()
            await delete_topic(cluster.store, "t")
            await cluster.start_broker(9)
            await cluster.until(lambda: cluster.brokers[2].live_brokers == {0, 2, 9})
            assert await cluster.topics() == ("t",)
            await cluster.start_broker(1)
            await cluster.until(lambda: no_topics(cluster))
            assert not any(broker.on_disk for broker in cluster.brokers.values())

    asyncio.run(run())


def test_deletion_resumes_on_broker_that_died_during_it() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            await cluster.start_controller(2)
            await cluster.create("t", {0: (0, 1), 1: (2, 0)})
            await cluster.settled()
            cluster.unreachable.add(1)
            await delete_topic(cluster.store, "t")
            await cluster.until(lambda: not cluster.brokers[0].on_disk | cluster.brokers[2].on_disk)
            await cluster.stop_broker(1)
            await cluster.until(lambda: cluster.brokers[2].live_brokers == {0, 2})
            assert await cluster.topics() == ("t",)
            await cluster.start_broker(1)
            await cluster.until(lambda: no_topics(cluster))
            assert not cluster.brokers[1].on_disk

    asyncio.run(run())


async def no_topics(cluster: FakeCluster) -> bool:
    return await cluster.topics() == ()


def test_elect_leaders_holds_requested_elections() -> None:
    async def run() -> None:
        async with fake_cluster(4) as cluster:
            controller = await cluster.start_controller(3)
            await cluster.create("t", {0: (0, 1), 1: (1, 0), 2: (2,)})
            await cluster.settled()
            await cluster.stop_broker(0)
            await cluster.settled()
            await cluster.stop_broker(2)
            await cluster.settled()
            one, two, absent = TopicPartition("t", 1), TopicPartition("t", 2), TopicPartition("t", 9)
            assert await controller.elect_leaders(Election.PREFERRED, [T0, one, absent]) == {
                T0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
                one: ErrorCode.ELECTION_NOT_NEEDED,
                absent: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            }
            assert await controller.elect_leaders(Election.UNCLEAN, None) == {
                two: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
            }
            assert await leader_and_isr(cluster) == (1, (1,))

    asyncio.run(run())
