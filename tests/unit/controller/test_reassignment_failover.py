"""A controller that dies before or after any step of a reassignment: its successor finishes it.

"Before" a step means after the previous one; U0 is before U1. W1, between write and notification, is tested
as well.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from restow.cluster.controller import ControllerStep, delete_topic
from restow.cluster.store.znodes import PartitionStateZNode
from restow.model import ReplicaAssignment
from tests.unit.controller.fake_cluster import PATIENCE_S, fake_cluster
from tests.unit.controller.moves import (
    LABELS,
    alter,
    ask_by_node,
    assignment,
    catch_up,
    drop_strays,
    files_are_right,
    finish,
)
from tests.unit.controller.test_controller_failover import Pause, depose, heard_of, tree

if TYPE_CHECKING:
    from restow.cluster.controller import Controller
    from tests.unit.controller.fake_cluster import FakeCluster

WITHOUT_A = tuple(step for step in LABELS if not step.name.startswith("A"))
"""The steps of a reassignment that needs no catching up."""
Begin = "Callable[[FakeCluster, Controller], Awaitable[object]]"


async def by_node(cluster: FakeCluster, _: Controller) -> None:
    await ask_by_node(cluster, t=(2, 1))


async def by_api(_: FakeCluster, controller: Controller) -> None:
    await alter(controller, (2, 1))


async def reorder(_: FakeCluster, controller: Controller) -> None:
    await alter(controller, (1, 0))


async def shrink(_: FakeCluster, controller: Controller) -> None:
    await alter(controller, (1,))


WORK: list[tuple[Begin, tuple[int, ...], tuple[ControllerStep, ...]]] = [
    (by_node, (2, 1), (*LABELS, ControllerStep.W1)),
    (by_api, (2, 1), (*LABELS, ControllerStep.W1)),
    (reorder, (1, 0), WITHOUT_A),
    (shrink, (1,), WITHOUT_A),
]


def is_undone(begin: Begin, step: ControllerStep) -> bool:
    """Return whether the reassignment is lost, because the controller died before it was written."""
    return step is ControllerStep.U0 and begin is not by_node


@pytest.mark.parametrize(
    ("begin", "target", "step"),
    [(begin, target, step) for begin, target, steps in WORK for step in steps],
    ids=lambda each: each.name if isinstance(each, ControllerStep) else getattr(each, "__name__", ""),
)
def test_successor_finishes_the_reassignment(
    begin: Begin, target: tuple[int, ...], step: ControllerStep
) -> None:
    async def run() -> None:
        async with fake_cluster(5) as cluster:
            pause = Pause(step)
            first = await cluster.start_controller(4, at=pause)
            await cluster.create("t", {0: (0, 1)})
            await cluster.settled()
            pause.armed = True
            asked = asyncio.create_task(begin(cluster, first))
            async with asyncio.timeout(PATIENCE_S):
                while not pause.reached.is_set():
                    await catch_up(cluster)
                    await asyncio.sleep(0.001)
            await depose(cluster)
            second = await cluster.start_controller(3)
            await cluster.until(lambda: second.is_active)
            await drop_strays(cluster)
            await finish(cluster)
            expected = (0, 1) if is_undone(begin, step) else target
            assert await assignment(cluster) == ReplicaAssignment(expected)
            state = await cluster.state("t", 0)
            assert set(state.isr) == set(expected)
            assert await second.list_reassignments(None) == {}
            before, told = await tree(cluster), heard_of(4, cluster)
            pause.released.set()
            await asyncio.gather(asked, return_exceptions=True)
            await cluster.until(lambda: not first.is_active)
            for _ in range(50):
                await asyncio.sleep(0)
            assert await tree(cluster) == before
            assert heard_of(4, cluster) == told
            assert await files_are_right(cluster)

    asyncio.run(run())


@pytest.mark.parametrize("step", WITHOUT_A, ids=lambda step: step.name)
def test_reassignment_ends_at_target_or_origin_when_controller_dies_during_cancel(
    step: ControllerStep,
) -> None:
    async def run() -> None:
        async with fake_cluster(5) as cluster:
            pause = Pause(step)
            first = await cluster.start_controller(4, at=pause)
            await cluster.create("t", {0: (0, 1)})
            await cluster.settled()
            await alter(first, (2, 1))
            pause.armed = True
            asked = asyncio.create_task(alter(first, None))
            async with asyncio.timeout(PATIENCE_S):
                await pause.reached.wait()
            await depose(cluster)
            second = await cluster.start_controller(3)
            await cluster.until(lambda: second.is_active)
            await drop_strays(cluster)
            await finish(cluster)
            expected = (2, 1) if step is ControllerStep.U0 else (1, 0)
            assert await assignment(cluster) == ReplicaAssignment(expected)
            pause.released.set()
            await asyncio.gather(asked, return_exceptions=True)

    asyncio.run(run())


@pytest.mark.parametrize("victim", [0, 1, 2], ids=["leader", "follower", "target"])
@pytest.mark.parametrize("step", LABELS, ids=lambda step: step.name)
def test_reassignment_finishes_when_a_broker_dies_at_any_step(step: ControllerStep, victim: int) -> None:
    async def run() -> None:
        async with fake_cluster(5) as cluster:
            killed = False

            async def kill(at: ControllerStep) -> None:
                nonlocal killed
                if at is step and not killed:
                    killed = True
                    await cluster.stop_broker(victim)

            controller = await cluster.start_controller(4, at=kill)
            await cluster.create("t", {0: (0, 1)})
            await cluster.settled()
            await alter(controller, (1, 2))

            async def wait() -> bool:
                await catch_up(cluster)
                return killed

            await cluster.until(wait)
            for _ in range(20):
                await catch_up(cluster)
                await asyncio.sleep(0.001)
            await drop_strays(cluster)
            await cluster.start_broker(victim)
            await finish(cluster)
            assert await assignment(cluster) == ReplicaAssignment((1, 2))

            async def all_in_sync() -> bool:
                await catch_up(cluster)
                return set((await cluster.state("t", 0)).isr) == {1, 2}

            await cluster.until(all_in_sync)
            assert (await cluster.state("t", 0)).leader in (1, 2)

    asyncio.run(run())


def test_new_controller_continues_reassignment_and_deletion() -> None:
    async def run() -> None:
        async with fake_cluster(5) as cluster:
            first = await cluster.start_controller(4)
            await cluster.create("t", {0: (0, 1)})
            await cluster.settled()
            await alter(first, (2, 1))
            await delete_topic(cluster.store, "t")
            await cluster.until(lambda: first.is_deleting("t"))
            await cluster.stop_broker(4)
            second = await cluster.start_controller(3)
            await cluster.until(lambda: second.is_active)
            assert await cluster.topics() == ("t",)

            async def is_gone() -> bool:
                await catch_up(cluster)
                return not await cluster.topics()

            await cluster.until(is_gone)
            await cluster.until(lambda: files_are_right(cluster))

    asyncio.run(run())


@pytest.mark.parametrize("leader", [0, 2], ids=["a follower", "the leader"])
def test_new_controller_removes_unassigned_replica_from_the_isr(leader: int) -> None:
    """A cancel was written, and its controller died before it could take the replica out of the ISR."""

    async def run() -> None:
        async with fake_cluster(4) as cluster:
            await cluster.create("t", {0: (0, 1)})
            for path in PartitionStateZNode.parents("t", 0):
                await cluster.store.create(path)
            left = PartitionStateZNode(leader=leader, leader_epoch=4, isr=(0, 1, 2), controller_epoch=0)
            await cluster.store.create(PartitionStateZNode.path("t", 0), left.encode())
            controller = await cluster.start_controller(3)
            await cluster.until(lambda: controller.is_active)
            await cluster.settled()
            state = await cluster.state("t", 0)
            assert (state.leader, state.isr) == (0, (0, 1))
            assert state.leader_epoch > 4

    asyncio.run(run())
