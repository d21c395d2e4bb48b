"""Reassignments step by step: what holds at each step, and what must never happen."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

import pytest

from restow.cluster.controller import ControllerStep, Election
from restow.model import ReplicaAssignment
from restow.wire.between_brokers import LeaderAndIsrRequest, StopReplicaRequest
from tests.unit.controller.moves import (
    LABELS,
    T0,
    alter,
    ask_by_node,
    assignment,
    change_isr,
    finish,
    moving_cluster,
    request_is_gone,
    turns,
)

if TYPE_CHECKING:
    from tests.unit.controller.fake_cluster import FakeBroker, FakeCluster

U = ["U0", "U1", "U2"]
A = ["A1", "A2"]
B = [f"B{number}" for number in range(1, 9)]


def orders(broker: FakeBroker, kind: type) -> list[object]:
    """Return a broker's requests about the partition, oldest first."""
    return [
        state
        for request in broker.heard
        if isinstance(request, kind)
        for topic in request.topic_states
        for state in topic.partition_states
        if topic.topic_name == "t"
    ]


def test_reassignment_runs_its_steps_in_order() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            await ask_by_node(cluster, t=(1, 2))
            await cluster.until(lambda: watcher.labels() == U + A)
            await finish(cluster, controller)
            assert watcher.labels() == U + A + B
            assert [step.name for step in LABELS] == U + A + B

    asyncio.run(run())


MOVING = ReplicaAssignment((1, 2, 0), adding=(2,), removing=(0,))


async def at_u0(cluster: FakeCluster) -> None:
    assert await assignment(cluster) == ReplicaAssignment((0, 1))


async def at_u1(cluster: FakeCluster) -> None:
    assert await assignment(cluster) == MOVING
    assert (await cluster.state("t", 0)).leader_epoch == 0


async def at_a1(cluster: FakeCluster) -> None:
    assert (await cluster.state("t", 0)).leader_epoch == 1
    for broker_id in (0, 1, 2):
        broker = cluster.brokers[broker_id]
        await cluster.until(lambda broker=broker: broker.hosted[T0].leader_epoch == 1)
        told = broker.hosted[T0]
        assert told.replicas == [1, 2, 0]
        assert (told.adding_replicas, told.removing_replicas) == ([2], [0])
        assert told.is_new == (broker_id == 2)


async def at_b2(cluster: FakeCluster) -> None:
    assert await assignment(cluster) == MOVING
    assert (await cluster.state("t", 0)).isr == (0, 1, 2)


async def at_b3(cluster: FakeCluster) -> None:
    state = await cluster.state("t", 0)
    assert (state.leader, state.isr) == (1, (0, 1, 2))
    await cluster.until(lambda: cluster.brokers[1].hosted[T0].leader == 1)
    assert cluster.brokers[1].hosted[T0].replicas == [1, 2]
    assert T0 in cluster.brokers[0].on_disk
    assert not orders(cluster.brokers[0], StopReplicaRequest)


async def at_b4(cluster: FakeCluster) -> None:
    assert (await cluster.state("t", 0)).isr == (1, 2)
    await cluster.until(lambda: T0 not in cluster.brokers[0].hosted)
    assert T0 in cluster.brokers[0].on_disk


async def at_b5(cluster: FakeCluster) -> None:
    await cluster.until(lambda: T0 not in cluster.brokers[0].on_disk)
    assert await assignment(cluster) == MOVING


async def at_b6(cluster: FakeCluster) -> None:
    assert await assignment(cluster) == ReplicaAssignment((1, 2))
    assert not await request_is_gone(cluster)


async def at_b7(cluster: FakeCluster) -> None:
    assert await request_is_gone(cluster)


async def at_b8(cluster: FakeCluster) -> None:
    await cluster.until(lambda: all(b.metadata[T0].replicas == [1, 2] for b in cluster.brokers.values()))


CHECKS = {
    ControllerStep.U0: at_u0,
    ControllerStep.U1: at_u1,
    ControllerStep.A1: at_a1,
    ControllerStep.B2: at_b2,
    ControllerStep.B3: at_b3,
    ControllerStep.B4: at_b4,
    ControllerStep.B5: at_b5,
    ControllerStep.B6: at_b6,
    ControllerStep.B7: at_b7,
    ControllerStep.B8: at_b8,
}


def test_reassignment_state_is_right_at_each_step() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, _, watcher):
            seen: list[ControllerStep] = []

            async def look(step: ControllerStep) -> None:
                await CHECKS[step](cluster)
                seen.append(step)

            watcher.then = {step: partial(look, step) for step in CHECKS}
            await ask_by_node(cluster, t=(1, 2))
            await finish(cluster)
            assert seen == list(CHECKS)

    asyncio.run(run())


@pytest.mark.parametrize("target", [(0, 1, 2), (2, 0, 1)], ids=str)
def test_adding_replicas_keeps_the_leader(target: tuple[int, ...]) -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            assert await alter(controller, target) is None
            assert (await assignment(cluster)).adding == (2,)
            await finish(cluster, controller)
            state = await cluster.state("t", 0)
            assert (state.leader, set(state.isr)) == (0, {0, 1, 2})
            assert await assignment(cluster) == ReplicaAssignment(target)
            assert watcher.labels() == U + A + B

    asyncio.run(run())


@pytest.mark.parametrize(("target", "leader"), [((0, 1), 0), ((2, 0), 0), ((1, 2), 1), ((2, 1), 2)], ids=str)
def test_removing_replicas_keeps_the_leader_if_it_stays(target: tuple[int, ...], leader: int) -> None:
    async def run() -> None:
        async with moving_cluster((0, 1, 2)) as (cluster, controller, watcher):
            assert await alter(controller, target) is None
            await finish(cluster, controller)
            state = await cluster.state("t", 0)
            assert (state.leader, set(state.isr)) == (leader, set(target))
            assert watcher.labels() == U + B

    asyncio.run(run())


def test_new_leader_is_in_sync_target_replica() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1, 2)) as (cluster, controller, _):
            await change_isr(cluster, leaves=(1,))
            assert await alter(controller, (1, 2)) is None
            await turns()
            assert (await cluster.state("t", 0)).leader == 0
            await finish(cluster)
            assert (await cluster.state("t", 0)).leader == 1

    asyncio.run(run())


def test_reordering_replicas_changes_only_the_preferred_leader() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1, 2)) as (cluster, controller, watcher):
            assert await alter(controller, (2, 1, 0)) is None
            await cluster.settled()
            assert await assignment(cluster) == ReplicaAssignment((2, 1, 0))
            assert watcher.labels() == U + B
            for broker in cluster.brokers.values():
                assert not orders(broker, StopReplicaRequest)
            assert not any(state.is_new for state in orders(cluster.brokers[2], LeaderAndIsrRequest)[1:])
            assert (await cluster.state("t", 0)).leader == 0
            await controller.elect_leaders(Election.PREFERRED, [T0])
            assert (await cluster.state("t", 0)).leader == 2
            await cluster.settled()

    asyncio.run(run())


def test_reassignment_to_current_replicas_completes_at_once() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            assert await alter(controller, (0, 1)) is None
            await ask_by_node(cluster, t=(0, 1))
            await cluster.until(lambda: request_is_gone(cluster))
            await finish(cluster, controller)
            assert watcher.labels() == B + B

    asyncio.run(run())


def test_kafka_15665_reassignment_completes_only_with_whole_target_in_isr() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            await alter(controller, (2, 3, 1))
            await change_isr(cluster, joins=(2,))
            await turns()
            assert watcher.labels() == U + A
            assert T0 in cluster.brokers[0].on_disk
            await change_isr(cluster, joins=(3,), leaves=(1,))
            await turns()
            assert watcher.labels() == U + A
            await change_isr(cluster, joins=(1,))
            await finish(cluster, controller)
            assert watcher.labels() == U + A + B

    asyncio.run(run())


def test_isr_change_repeats_no_step_and_logs_missing_replicas(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            await alter(controller, (2, 3))
            await turns()
            epoch = (await cluster.state("t", 0)).leader_epoch
            with caplog.at_level(logging.INFO):
                await change_isr(cluster, joins=(3,))
                await cluster.until(lambda: "1 of 2 replicas have caught up, missing are [2]" in caplog.text)
            assert watcher.labels() == U + A
            assert (await cluster.state("t", 0)).leader_epoch == epoch

    asyncio.run(run())


def test_reassignment_waits_again_when_target_replica_leaves_the_isr() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):

            async def fall_behind() -> None:
                watcher.then.clear()
                await change_isr(cluster, leaves=(2,))

            watcher.then[ControllerStep.B2] = fall_behind
            await alter(controller, (2, 0))
            await change_isr(cluster, joins=(2,))
            await cluster.until(lambda: watcher.labels()[-2:] == ["A1", "A2"] and "B3" in watcher.labels())
            assert await assignment(cluster) == ReplicaAssignment((2, 0, 1), adding=(2,), removing=(1,))
            await turns()
            assert T0 in cluster.brokers[1].on_disk
            assert not orders(cluster.brokers[1], StopReplicaRequest)
            await finish(cluster)
            assert await assignment(cluster) == ReplicaAssignment((2, 0))

    asyncio.run(run())


def test_kafka_9672_isr_is_a_subset_of_the_replicas() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1, 2)) as (cluster, controller, watcher):

            async def compare() -> None:
                found = await assignment(cluster)
                assert set((await cluster.state("t", 0)).isr) <= set(found.replicas)

            watcher.then = dict.fromkeys(ControllerStep, compare)
            await alter(controller, (2, 3))
            await finish(cluster)
            await alter(controller, (0,))
            await finish(cluster)
            assert (await cluster.state("t", 0)).isr == (0,)

    asyncio.run(run())


def test_kafka_9212_all_brokers_learn_the_raised_leader_epoch() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await alter(controller, (0, 1, 2))
            epoch = (await cluster.state("t", 0)).leader_epoch
            assert epoch == 1
            await cluster.until(
                lambda: {b.metadata[T0].leader_epoch for b in cluster.brokers.values()} == {epoch}
            )

    asyncio.run(run())


def test_metadata_shows_adding_replicas() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await alter(controller, (2, 1))
            await cluster.until(
                lambda: all(b.metadata[T0].replicas == [2, 1, 0] for b in cluster.brokers.values())
            )

    asyncio.run(run())
