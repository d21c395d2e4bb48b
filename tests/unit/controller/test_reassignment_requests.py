"""Reassignment requests through API and znode: refused, replaced, cancelled, and never stuck."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from restow.cluster.controller import ControllerStep, NotController, ReassignmentTarget, delete_topic
from restow.cluster.store import BadVersion
from restow.cluster.store.znodes import PartitionStateZNode
from restow.model import ReplicaAssignment, TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.unit.controller.moves import (
    T0,
    alter,
    ask_by_node,
    assignment,
    change_isr,
    files_are_right,
    finish,
    moving_cluster,
    request_is_gone,
)

if TYPE_CHECKING:
    from tests.unit.controller.fake_cluster import FakeCluster

U0 = TopicPartition("u", 0)
MISSING = TopicPartition("t", 7)


@pytest.mark.parametrize(
    ("target", "says"),
    [((), "empty"), ((1, 1), "twice"), ((0, -1), "below 0"), ((0, 9), "not alive: [9]")],
    ids=["empty", "duplicate", "negative", "unknown"],
)
def test_alter_refuses_bad_target_and_accepts_the_others(target: tuple[int, ...], says: str) -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await cluster.create("u", {0: (0, 1)})
            await cluster.settled()
            outcomes = await controller.alter_reassignments(
                {T0: ReassignmentTarget(target), U0: ReassignmentTarget((2, 1))}
            )
            refusal = outcomes[T0]
            assert refusal is not None
            assert refusal.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
            assert says in refusal.message
            assert outcomes[U0] is None
            assert await assignment(cluster) == ReplicaAssignment((0, 1))
            assert set(await controller.list_reassignments(None)) == {U0}
            await finish(cluster)

    asyncio.run(run())


def test_kafka_16455_alter_refuses_unknown_partition_and_accepts_the_others() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            nowhere = TopicPartition("nowhere", 0)
            outcomes = await controller.alter_reassignments(
                {
                    MISSING: ReassignmentTarget((0, 1)),
                    nowhere: ReassignmentTarget((0,)),
                    T0: ReassignmentTarget((0, 2)),
                }
            )
            codes = {each: None if found is None else found.code for each, found in outcomes.items()}
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert codes == {MISSING: unknown, nowhere: unknown, T0: None}
            await finish(cluster)

    asyncio.run(run())


def test_alter_refuses_to_add_dead_broker_but_lets_it_stay() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            for gone in (1, 2):
                await cluster.stop_broker(gone)
            await cluster.until(lambda: cluster.brokers[0].live_brokers == {0, 3, 4})
            refusal = await alter(controller, (0, 1, 2))
            assert refusal is not None
            assert refusal.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
            assert await alter(controller, (0, 1, 3)) is None

    asyncio.run(run())


def test_alter_refuses_to_add_broker_that_is_shutting_down() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await controller.handle_controlled_shutdown(2, cluster.brokers[2].epoch)
            refusal = await alter(controller, (0, 2))
            assert refusal is not None
            assert refusal.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT

    asyncio.run(run())


def test_cancel_is_refused_without_a_reassignment() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (_, controller, _):
            for partition in (T0, MISSING):
                refusal = await alter(controller, None, partition)
                assert refusal is not None
                assert refusal.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

    asyncio.run(run())


def test_alter_refuses_topic_being_deleted() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await cluster.stop_broker(1)
            await delete_topic(cluster.store, "t")
            await cluster.until(lambda: controller.is_deleting("t"))
            refusal = await alter(controller, (0, 2))
            assert refusal is not None
            assert refusal.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    asyncio.run(run())


def test_alter_refuses_new_replication_factor_if_forbidden() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            target = ReassignmentTarget((0, 1, 2), allow_replication_factor_change=False)
            refusal = (await controller.alter_reassignments({T0: target}))[T0]
            assert refusal is not None
            assert refusal.code is ErrorCode.INVALID_REPLICATION_FACTOR
            assert await alter(controller, (0, 1, 2)) is None
            back = ReassignmentTarget((3, 2), allow_replication_factor_change=False)
            assert (await controller.alter_reassignments({T0: back}))[T0] is None
            await finish(cluster)

    asyncio.run(run())


def test_reassignment_requests_need_the_controller() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, _, _):
            other = await cluster.start_controller(0)
            with pytest.raises(NotController):
                await alter(other, (0, 2))
            with pytest.raises(NotController):
                await other.list_reassignments(None)

    asyncio.run(run())


def test_list_returns_reassignments_until_they_are_done() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await alter(controller, (2, 1))
            moving = {T0: ReplicaAssignment((2, 1, 0), adding=(2,), removing=(0,))}
            assert await controller.list_reassignments(None) == moving
            assert await controller.list_reassignments([T0, MISSING]) == moving
            assert await controller.list_reassignments([MISSING]) == {}
            await finish(cluster)
            assert await controller.list_reassignments(None) == {}
            assert await controller.list_reassignments([T0]) == {}

    asyncio.run(run())


# Replaced and cancelled reassignments


@pytest.mark.parametrize("first_way", ["api", "node"])
@pytest.mark.parametrize("joined", [False, True], ids=["not in sync yet", "in sync"])
def test_new_target_replaces_ongoing_reassignment(first_way: str, *, joined: bool) -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            if first_way == "api":
                await alter(controller, (2, 3))
            else:
                await ask_by_node(cluster, t=(2, 3))
            await cluster.until(lambda: T0 in cluster.brokers[2].hosted)
            if joined:
                await change_isr(cluster, joins=(2,))
            assert await alter(controller, (3, 1)) is None
            assert await request_is_gone(cluster)
            assert await assignment(cluster) == ReplicaAssignment((3, 1, 0), adding=(3,), removing=(0,))
            await cluster.until(lambda: T0 not in cluster.brokers[2].on_disk)
            assert 2 not in (await cluster.state("t", 0)).isr
            await finish(cluster)
            assert await assignment(cluster) == ReplicaAssignment((3, 1))

    asyncio.run(run())


def test_leader_dropped_by_new_target_hands_over_before_deletion() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            await alter(controller, (2, 3))
            await change_isr(cluster, joins=(2,))
            await cluster.stop_broker(0)
            await cluster.stop_broker(1)
            await cluster.until(lambda: is_led_by(cluster, 2))
            for back in (0, 1):
                await cluster.start_broker(back)
            await cluster.until(lambda: cluster.brokers[3].live_brokers == set(range(5)))
            await change_isr(cluster, joins=(0,))
            watcher.passed.clear()
            assert await alter(controller, (3, 1)) is None
            assert "A1" in watcher.labels()
            state = await cluster.state("t", 0)
            assert (state.leader, state.isr) == (0, (0,))
            await finish(cluster)
            assert await assignment(cluster) == ReplicaAssignment((3, 1))

    asyncio.run(run())


async def is_led_by(cluster: FakeCluster, leader: int) -> bool:
    return (await cluster.state("t", 0)).leader == leader


@pytest.mark.parametrize("joined", [False, True], ids=["not in sync yet", "in sync"])
def test_kafka_13972_cancelled_reassignment_leaves_no_replicas(*, joined: bool) -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await alter(controller, (2, 3))
            await cluster.until(lambda: T0 in cluster.brokers[3].hosted)
            if joined:
                await change_isr(cluster, joins=(3,))
            assert await alter(controller, None) is None
            assert set((await assignment(cluster)).replicas) == {0, 1}
            assert await controller.list_reassignments(None) == {}
            await finish(cluster)
            assert await files_are_right(cluster)
            assert (await cluster.state("t", 0)).leader == 0

    asyncio.run(run())


def test_kafka_9672_leader_cannot_add_replica_to_isr_during_cancel() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            await alter(controller, (2, 1))
            await cluster.until(lambda: T0 in cluster.brokers[2].hosted)
            path = PartitionStateZNode.path("t", 0)
            version = (await cluster.store.get(path)).stat.version
            state = await cluster.state("t", 0)
            late = PartitionStateZNode(
                leader=0, leader_epoch=state.leader_epoch, isr=(0, 1, 2), controller_epoch=1
            ).encode()

            async def write_late() -> None:
                with pytest.raises(BadVersion):
                    await cluster.store.set(path, late, version)

            watcher.then[ControllerStep.U2] = write_late
            assert await alter(controller, None) is None
            assert (await cluster.state("t", 0)).isr == (0, 1)
            watcher.then.clear()
            await finish(cluster)

    asyncio.run(run())


def test_cancel_restores_the_replicas_in_the_order_of_the_reassignment() -> None:
    async def run() -> None:
        async with moving_cluster((1, 2, 3)) as (cluster, controller, _):
            await alter(controller, (3, 0))
            await alter(controller, None)
            await finish(cluster)
            assert await assignment(cluster) == ReplicaAssignment((3, 1, 2))

    asyncio.run(run())


def test_kafka_14424_cancel_is_refused_if_no_leader_would_remain() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await alter(controller, (2, 3))
            await cluster.until(lambda: T0 in cluster.brokers[2].hosted)
            await change_isr(cluster, joins=(2,))
            for gone in (0, 1):
                await cluster.stop_broker(gone)
            await cluster.until(lambda: is_led_by(cluster, 2))
            for target in (None, (3, 1)):
                refusal = await alter(controller, target)
                assert refusal is not None
                assert refusal.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
            assert await is_led_by(cluster, 2)
            assert T0 in cluster.brokers[2].on_disk
            await cluster.start_broker(0)
            await cluster.until(lambda: T0 in cluster.brokers[0].hosted)
            await change_isr(cluster, joins=(0,))
            assert await alter(controller, None) is None
            assert (await cluster.state("t", 0)).leader == 0
            await cluster.start_broker(1)
            await finish(cluster)

    asyncio.run(run())
