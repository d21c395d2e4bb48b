"""Notifications of brokers, requests of tools, and invalid data in znodes."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast

import pytest

from restow.cluster.controller import ControllerConfig, ControllerStep, delete_topic
from restow.cluster.store import Create, Delete, Set
from restow.cluster.store.znodes import (
    DeleteTopic,
    IsrChangeNotification,
    LogDirEvent,
    PartitionStateZNode,
    PreferredReplicaElection,
    TopicZNode,
)
from restow.model import ReplicaAssignment, TopicPartition
from tests.unit.controller.fake_cluster import FakeCluster, fake_cluster, write_isr

if TYPE_CHECKING:
    from restow.cluster.store import Stat, Store

T0 = TopicPartition("t", 0)
QUICK = 0.001


def test_isr_change_of_a_leader_reaches_all_brokers() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            await cluster.start_controller(2)
            await cluster.create("t", {0: (0, 1)})
            await cluster.settled()
            await write_isr(cluster, T0, (0,))
            await cluster.until(lambda: all(b.metadata[T0].isr == [0] for b in cluster.brokers.values()))
            assert cluster.brokers[2].metadata[T0].zk_version == 1
            await cluster.until(lambda: cluster.has_nothing_under(IsrChangeNotification.PARENT))
            await write_isr(cluster, T0, (0, 1))
            await cluster.settled()

    asyncio.run(run())


def test_election_retries_when_the_leader_writes_its_isr_meanwhile() -> None:
    async def run() -> None:
        async with fake_cluster(4) as cluster:
            races = 0

            async def race(step: object) -> None:
                nonlocal races
                if step is ControllerStep.F1 and races == 0:
                    races += 1
                    await write_isr(cluster, T0, (0, 2))

            await cluster.start_controller(3, at=race)
            await cluster.create("t", {0: (0, 1, 2)})
            await cluster.settled()
            await cluster.stop_broker(0)
            await cluster.settled()
            state = await cluster.state("t", 0)
            assert (races, state.leader, state.isr) == (1, 2, (2,))

    asyncio.run(run())


def test_preferred_election_znode_is_carried_out_and_removed() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            await cluster.start_controller(2)
            await cluster.create("t", {0: (0, 1)})
            await cluster.settled()
            await cluster.stop_broker(0)
            await cluster.settled()
            await cluster.start_broker(0)
            await cluster.settled()
            await write_isr(cluster, T0, (1, 0))
            await cluster.settled()
            assert (await cluster.state("t", 0)).leader == 1
            request = PreferredReplicaElection((T0, TopicPartition("absent", 3))).encode()
            await cluster.store.create(PreferredReplicaElection.PATH, request)
            await cluster.until(lambda: cluster.brokers[2].metadata[T0].leader == 0)
            await cluster.until(lambda: is_gone(cluster, PreferredReplicaElection.PATH))
            await cluster.store.create(PreferredReplicaElection.PATH, b"junk")
            await cluster.until(lambda: is_gone(cluster, PreferredReplicaElection.PATH))

    asyncio.run(run())


async def is_gone(cluster: FakeCluster, path: str) -> bool:
    return await cluster.store.exists(path) is None


@pytest.mark.parametrize(("wanted", "leader"), [(True, 0), (False, 1)])
def test_leaders_are_rebalanced_only_if_enabled(*, wanted: bool, leader: int) -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            config = ControllerConfig(
                auto_leader_rebalance=wanted, rebalance_interval_s=QUICK, retry_backoff_s=QUICK
            )
            await cluster.start_controller(2, config)
            await cluster.create("t", {0: (0, 1)})
            await cluster.settled()
            await cluster.stop_broker(0)
            await cluster.settled()
            await cluster.start_broker(0)
            await cluster.settled()
            await write_isr(cluster, T0, (1, 0))
            if wanted:
                await cluster.until(lambda: cluster.brokers[2].metadata[T0].leader == 0)
            await cluster.settled()
            assert (await cluster.state("t", 0)).leader == leader

    asyncio.run(run())


def test_invalid_znodes_are_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    junk = ("early", "junk", "ids/8", "isr_change_", "log_dir_event_")

    async def run() -> None:
        async with fake_cluster(2) as cluster:
            await cluster.store.create(TopicZNode.path("early"), b"\xff\xfe")
            await cluster.store.create("/brokers/ids/seven", b"{}")
            controller = await cluster.start_controller(0)
            for parent in (IsrChangeNotification.PREFIX, LogDirEvent.PREFIX):
                await cluster.store.create(parent, b"[1]", sequential=True)
            await cluster.store.create(TopicZNode.path("junk"), b'{"version":9}')
            await cluster.store.create("/brokers/ids/8", b"nothing")
            await cluster.create("t", {0: (0, 1)})
            await cluster.until(lambda: T0 in cluster.brokers[1].metadata)
            await cluster.until(lambda: cluster.has_nothing_under(LogDirEvent.PARENT))
            await cluster.until(lambda: cluster.has_nothing_under(IsrChangeNotification.PARENT))
            await cluster.until(lambda: all(any(each in m for m in caplog.messages) for each in junk))
            assert controller.is_active
            assert controller.epoch == 1

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())


def test_invalid_topic_znode_is_served_once_corrected() -> None:
    async def run() -> None:
        async with fake_cluster(2) as cluster:
            await cluster.start_controller(0)
            await cluster.store.create(TopicZNode.path("t"), b"junk")
            await cluster.create("other", {0: (0,)})
            await cluster.until(lambda: TopicPartition("other", 0) in cluster.brokers[1].metadata)
            right = TopicZNode(topic_id=None, partitions={0: ReplicaAssignment((0, 1))})
            await cluster.store.set(TopicZNode.path("t"), right.encode())
            await cluster.settled()
            assert T0 in cluster.brokers[1].metadata

    asyncio.run(run())


def test_controller_gives_an_id_to_topic_without_one() -> None:
    async def run() -> None:
        async with fake_cluster(1) as cluster:
            old = b'{"version":1,"partitions":{"0":[0]}}'
            await cluster.store.create(TopicZNode.path("t"), old)
            await cluster.start_controller(0)
            await cluster.settled()
            path = TopicZNode.path("t")
            topic_id = TopicZNode.decode((await cluster.store.get(path)).data, path).topic_id
            assert topic_id is not None
            assert cluster.brokers[0].heard[-1].topic_states[0].topic_id.int != 0

    asyncio.run(run())


def test_topic_being_deleted_gets_no_more_partitions() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            await cluster.start_controller(2)
            await cluster.create("t", {0: (0, 1)})
            await cluster.settled()
            await cluster.stop_broker(1)
            await cluster.settled()
            await delete_topic(cluster.store, "t")
            path = TopicZNode.path("t")
            before = await cluster.store.get(path)
            topic = TopicZNode.decode(before.data, path)
            grown = TopicZNode(
                topic_id=topic.topic_id, partitions={**topic.partitions, 1: ReplicaAssignment((0, 1))}
            )
            await cluster.store.multi([Set(path, grown.encode())])

            async def written_back() -> bool:
                return (await cluster.store.get(path)).data == before.data

            await cluster.until(written_back)
            await cluster.start_broker(1)
            await cluster.until(lambda: is_gone(cluster, path))

    asyncio.run(run())


def test_delete_request_is_dropped_for_unknown_topic_or_when_disabled() -> None:
    async def run() -> None:
        async with fake_cluster(1) as cluster:
            controller = await cluster.start_controller(0, ControllerConfig(delete_topic=False))
            await cluster.create("t", {0: (0,)})
            await cluster.settled()
            await delete_topic(cluster.store, "t")
            await cluster.store.create(DeleteTopic.path("absent"))
            await cluster.until(lambda: cluster.has_nothing_under(DeleteTopic.PARENT))
            assert await cluster.topics() == ("t",)
            assert not controller.is_deleting("t")

    asyncio.run(run())


def test_deletion_waits_for_ongoing_reassignment() -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            moving = TopicZNode(
                topic_id="AAAAAAAAAAAAAAAAAAAAAQ",
                partitions={0: ReplicaAssignment((0, 1), adding=(1,))},
            )
            await cluster.store.create(TopicZNode.path("t"), moving.encode())
            for path in PartitionStateZNode.parents("t", 0):
                await cluster.store.create(path)
            behind = PartitionStateZNode(leader=0, leader_epoch=0, isr=(0,), controller_epoch=0)
            await cluster.store.create(PartitionStateZNode.path("t", 0), behind.encode())
            controller = await cluster.start_controller(2)
            await cluster.until(lambda: T0 in cluster.brokers[2].metadata)
            await delete_topic(cluster.store, "t")
            await cluster.until(lambda: controller.is_deleting("t"))
            await cluster.create("other", {0: (0,)})
            await cluster.until(lambda: TopicPartition("other", 0) in cluster.brokers[2].metadata)
            assert T0 in cluster.brokers[0].hosted
            assert await cluster.topics() == ("other", "t")

    asyncio.run(run())


def test_topic_removed_and_recreated_by_hand_is_a_new_topic() -> None:
    async def run() -> None:
        async with fake_cluster(2) as cluster:
            await cluster.start_controller(1)
            for topic_id in ("AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"):
                topic = TopicZNode(topic_id=topic_id, partitions={0: ReplicaAssignment((0, 1))})
                await cluster.store.create(TopicZNode.path("t"), topic.encode())
                await cluster.settled()
                await cluster.until(lambda: T0 in cluster.brokers[0].metadata)
                await remove_by_hand(cluster, TopicZNode.path("t"))
            told = {s.topic_id.int for b in cluster.brokers.values() for r in b.heard for s in r.topic_states}
            assert len(told) == 3

    asyncio.run(run())


async def remove_by_hand(cluster: FakeCluster, path: str) -> None:
    for name in await cluster.store.children(path):
        await remove_by_hand(cluster, f"{path}/{name}")
    await cluster.store.delete(path)


class Meddled:
    """A session on which a topic is created right after a read that did not find it."""

    def __init__(self, store: Store, topic: TopicZNode) -> None:
        self._store = store
        self._topic = topic
        self.meddled = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def exists(self, path: str) -> Stat | None:
        found = await self._store.exists(path)
        if path == TopicZNode.path("t") and found is None and not self.meddled.is_set():
            await self._store.create(path, self._topic.encode())
            self.meddled.set()
        return found


def test_topic_recreated_during_its_removal_is_watched_again() -> None:
    first, second, third = (
        TopicZNode(topic_id=f"AAAAAAAAAAAAAAAAAAAAA{last}", partitions={0: ReplicaAssignment((0, 1))})
        for last in "Qgw"
    )

    async def run() -> None:
        async with fake_cluster(2) as cluster:
            store = Meddled(cluster.brokers[1].session, second)
            await cluster.start_controller(1, store=cast("Store", store))
            await cluster.store.create(TopicZNode.path("t"), first.encode())
            await cluster.settled()
            await remove_by_hand(cluster, TopicZNode.path("t"))
            await store.meddled.wait()
            await cluster.settled()
            nodes = (
                TopicZNode.path("t"),
                *PartitionStateZNode.parents("t", 0),
                PartitionStateZNode.path("t", 0),
            )
            anew = Create(TopicZNode.path("t"), third.encode())
            await cluster.store.multi([*map(Delete, reversed(nodes)), anew])
            await cluster.settled()

    asyncio.run(run())
