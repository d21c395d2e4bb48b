"""AlterPartition at the controller: what is accepted, refused and written.

`tests/apache/test_isr_changes_like_kafka.py` compares the refusals that Kafka with ZooKeeper has, too.
"""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from restow.cluster.controller import ControllerError, IsrChange, IsrChangeKey, ReassignmentTarget
from restow.cluster.store.znodes import FeatureState, TopicZNode
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.unit.controller.fake_cluster import FakeCluster, fake_cluster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from restow.cluster.controller import Controller

T0 = TopicPartition("t", 0)
KEY = IsrChangeKey("t", 0)
SHRUNK = IsrChange(leader=0, leader_epoch=0, isr=(0,), partition_epoch=0)


def with_topic(work: Callable[[FakeCluster, Controller], Awaitable[None]]) -> None:
    """Run work on four brokers, of which 3 is controller, 0 leads and 1 follows."""

    async def run() -> None:
        async with fake_cluster(4) as cluster:
            controller = await cluster.start_controller(3)
            await cluster.create("t", {0: (0, 1)})
            await cluster.settled()
            await work(cluster, controller)

    asyncio.run(run())


async def alter(
    cluster: FakeCluster, controller: Controller, change: IsrChange, key: IsrChangeKey = KEY
) -> Any:
    answers = await controller.alter_isrs(change.leader, cluster.brokers[change.leader].epoch, {key: change})
    assert answers.keys() == {key}
    return answers[key]


def test_accepted_isr_is_written_and_sent_to_all_brokers() -> None:
    async def work(cluster: FakeCluster, controller: Controller) -> None:
        told = await alter(cluster, controller, SHRUNK)
        assert (told.leader, told.leader_epoch, told.isr, told.version) == (0, 0, (0,), 1)
        await cluster.until(lambda: all(b.metadata[T0].isr == [0] for b in cluster.brokers.values()))
        back = SHRUNK._replace(isr=(0, 1), partition_epoch=1, broker_epochs=(-1, cluster.brokers[1].epoch))
        assert (await alter(cluster, controller, back)).version == 2
        assert (await alter(cluster, controller, back)).version == 2
        await cluster.settled()

    with_topic(work)


def test_topic_can_be_named_by_its_id() -> None:
    async def work(cluster: FakeCluster, controller: Controller) -> None:
        topic = TopicZNode.decode((await cluster.store.get(TopicZNode.path("t"))).data, "t")
        assert topic.topic_id is not None
        key = IsrChangeKey(UUID(bytes=urlsafe_b64decode(topic.topic_id + "==")), 0)
        assert (await alter(cluster, controller, SHRUNK, key)).isr == (0,)
        stranger = IsrChangeKey(UUID(int=1), 0)
        assert await alter(cluster, controller, SHRUNK, stranger) == ErrorCode.UNKNOWN_TOPIC_ID

    with_topic(work)


@pytest.mark.parametrize(
    "change",
    [
        SHRUNK._replace(leader=1, isr=(0, 1)),
        SHRUNK._replace(leader=1, isr=(1,)),
        SHRUNK._replace(isr=(1,)),
        SHRUNK._replace(isr=(0, 1, 2)),
        SHRUNK._replace(isr=()),
    ],
    ids=["not the leader", "takes the lead", "without the leader", "not a replica", "nobody"],
)
def test_isr_that_its_leader_cannot_mean_is_refused(change: IsrChange) -> None:
    async def work(cluster: FakeCluster, controller: Controller) -> None:
        assert await alter(cluster, controller, change) == ErrorCode.INVALID_REQUEST
        assert cluster.brokers[2].metadata[T0].isr == [0, 1]

    with_topic(work)


def test_isr_with_an_earlier_registration_of_a_broker_is_refused() -> None:
    async def work(cluster: FakeCluster, controller: Controller) -> None:
        await alter(cluster, controller, SHRUNK)
        earlier = cluster.brokers[1].epoch - 1
        change = SHRUNK._replace(isr=(0, 1), partition_epoch=1, broker_epochs=(-1, earlier))
        assert await alter(cluster, controller, change) == ErrorCode.INELIGIBLE_REPLICA

    with_topic(work)


def test_isr_with_a_broker_that_shuts_down_is_refused() -> None:
    async def work(cluster: FakeCluster, controller: Controller) -> None:
        await controller.handle_controlled_shutdown(1, cluster.brokers[1].epoch)
        await cluster.until(lambda: cluster.brokers[0].hosted[T0].isr == [0])
        state = cluster.brokers[0].hosted[T0]
        change = IsrChange(0, state.leader_epoch, (0, 1), state.partition_epoch)
        assert await alter(cluster, controller, change) == ErrorCode.INELIGIBLE_REPLICA

    with_topic(work)


@pytest.mark.parametrize("broker", [0, 9], ids=["another epoch", "unknown"])
def test_request_of_an_unregistered_broker_is_refused(broker: int) -> None:
    async def work(_: FakeCluster, controller: Controller) -> None:
        with pytest.raises(ControllerError) as refused:
            await controller.alter_isrs(broker, 1, {KEY: SHRUNK})
        assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH

    with_topic(work)


def test_isr_change_of_a_leader_completes_a_move() -> None:
    async def work(cluster: FakeCluster, controller: Controller) -> None:
        assert await controller.alter_reassignments({T0: ReassignmentTarget((0, 2))}) == {T0: None}
        await cluster.until(lambda: T0 in cluster.brokers[2].hosted)
        state = cluster.brokers[0].hosted[T0]
        change = IsrChange(0, state.leader_epoch, (0, 1, 2), state.partition_epoch)
        assert (await alter(cluster, controller, change)).isr == (0, 1, 2)
        await cluster.until(lambda: list(cluster.brokers[0].hosted[T0].replicas) == [0, 2])
        await cluster.until(lambda: T0 not in cluster.brokers[1].on_disk)

    with_topic(work)


def test_controller_creates_the_features_that_apache_brokers_expect() -> None:
    async def run() -> None:
        async with fake_cluster(1) as cluster:
            controller = await cluster.start_controller(0)
            path = FeatureState.PATH
            assert (await cluster.store.get(path)).data == b'{"features":{},"version":2,"status":1}'
            finalized = FeatureState(features={"some.version": 3})
            for before, after in [
                (finalized.encode(), finalized.encode()),
                (FeatureState(status=0).encode(), FeatureState().encode()),
                (b"not JSON", b"not JSON"),
            ]:
                await cluster.store.set(path, before)
                await controller.stop()
                controller = await cluster.start_controller(0)
                assert (await cluster.store.get(path)).data == after

    asyncio.run(run())
