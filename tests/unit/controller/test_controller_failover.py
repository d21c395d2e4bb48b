"""A controller that dies at any step: its successor finishes the work, and the old one changes nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from restow.cluster.controller import ControllerStep, create_partitions, delete_topic
from restow.cluster.store.znodes import ControllerZNode, PreferredReplicaElection
from restow.model import TopicPartition
from tests.unit.controller.fake_cluster import (
    PATIENCE_S,
    FakeCluster,
    fake_cluster,
    lose_directory,
    write_isr,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from restow.cluster.controller import Controller


class Pause:
    """Stops a controller at a step, and continues it when another was elected."""

    def __init__(self, step: ControllerStep) -> None:
        self._step = step
        self.armed = False
        self.reached = asyncio.Event()
        self.released = asyncio.Event()

    async def __call__(self, step: ControllerStep) -> None:
        if self.armed and step is self._step and not self.reached.is_set():
            self.reached.set()
            await self.released.wait()


async def tree(cluster: FakeCluster, path: str = "/") -> dict[str, tuple[bytes, int]]:
    """Return every znode with its data and version."""
    node = await cluster.store.get(path)
    found = {path: (node.data, node.stat.version)}
    for name in await cluster.store.children(path):
        found |= await tree(cluster, f"{path.rstrip('/')}/{name}")
    return found


async def depose(cluster: FakeCluster) -> None:
    """Remove `/controller`, as if the session had expired unnoticed by the controller."""
    await cluster.store.delete(ControllerZNode.PATH)


def heard_of(controller_id: int, cluster: FakeCluster) -> int:
    """Return how many requests of that controller brokers accepted."""
    requests = [each for broker in cluster.brokers.values() for each in broker.heard]
    return sum(each.controller_id == controller_id for each in requests)


async def create(cluster: FakeCluster) -> None:
    await cluster.create("new", {0: (0, 1), 1: (1, 2), 2: (2, 0)})


async def expand(cluster: FakeCluster) -> None:
    await create_partitions(cluster.store, "old", {2: (0, 1), 3: (2, 1)})


async def delete(cluster: FakeCluster) -> None:
    await delete_topic(cluster.store, "old")


async def lose_a_broker(cluster: FakeCluster) -> None:
    await cluster.stop_broker(1)


async def lose_a_directory(cluster: FakeCluster) -> None:
    await lose_directory(cluster, 1, TopicPartition("old", 1))


async def change_an_isr(cluster: FakeCluster) -> None:
    await write_isr(cluster, TopicPartition("old", 0), (0,))


async def ask_for_preferred_leaders(cluster: FakeCluster) -> None:
    request = PreferredReplicaElection((TopicPartition("old", 0), TopicPartition("old", 1)))
    await cluster.store.create(PreferredReplicaElection.PATH, request.encode())


WORK: list[tuple[Callable[[FakeCluster], Awaitable[None]], tuple[ControllerStep, ...]]] = [
    (create, (ControllerStep.C1, ControllerStep.C2, ControllerStep.W1, ControllerStep.C3)),
    (expand, (ControllerStep.C1, ControllerStep.C2, ControllerStep.W1, ControllerStep.C3)),
    (
        delete,
        (
            ControllerStep.D1,
            ControllerStep.D2,
            ControllerStep.D3,
            ControllerStep.D4,
            ControllerStep.D5,
            ControllerStep.D6,
        ),
    ),
    (lose_a_broker, (ControllerStep.F1, ControllerStep.W1, ControllerStep.F2, ControllerStep.F3)),
    (lose_a_directory, (ControllerStep.F1, ControllerStep.W1, ControllerStep.F2, ControllerStep.F3)),
    (change_an_isr, (ControllerStep.N1,)),
    (ask_for_preferred_leaders, (ControllerStep.P1,)),
]


@pytest.mark.parametrize(
    ("work", "step"),
    [(work, step) for work, steps in WORK for step in steps],
    ids=lambda each: each.name if isinstance(each, ControllerStep) else each.__name__,
)
def test_successor_finishes_the_work_and_deposed_controller_changes_nothing(
    work: Callable[[FakeCluster], Awaitable[None]], step: ControllerStep
) -> None:
    async def run() -> None:
        async with fake_cluster(4) as cluster:
            pause = Pause(step)
            first = await cluster.start_controller(3, at=pause)
            await cluster.create("old", {0: (0, 1), 1: (1, 2)})
            await cluster.settled()
            pause.armed = True
            await work(cluster)
            async with asyncio.timeout(PATIENCE_S):
                await pause.reached.wait()
            await depose(cluster)
            second = await cluster.start_controller(0)
            await cluster.until(lambda: second.is_active)
            await cluster.settled()
            assert second.epoch == first.epoch + 1
            await too_late(cluster, first, 3, pause)

    asyncio.run(run())


@pytest.mark.parametrize(
    "step",
    [ControllerStep.E1, ControllerStep.E2, ControllerStep.E3, ControllerStep.E4, ControllerStep.E5],
    ids=lambda step: step.name,
)
def test_new_controller_may_be_deposed_while_it_reads_the_store(step: ControllerStep) -> None:
    async def run() -> None:
        async with fake_cluster(4) as cluster:
            first = await cluster.start_controller(3)
            await cluster.create("old", {0: (0, 1), 1: (1, 2)})
            await cluster.settled()
            await first.stop()
            await cluster.create("unseen", {0: (1, 0), 1: (2, 1)})
            await delete_topic(cluster.store, "old")
            await cluster.stop_broker(1)
            await cluster.start_broker(1)
            pause = Pause(step)
            pause.armed = True
            begun = asyncio.create_task(cluster.start_controller(2, at=pause))
            async with asyncio.timeout(PATIENCE_S):
                await pause.reached.wait()
            await depose(cluster)
            third = await cluster.start_controller(0)
            await cluster.until(lambda: third.is_active)
            await cluster.settled()
            assert await cluster.topics() == ("unseen",)
            assert third.epoch == 3
            await too_late(cluster, cluster.controllers[1], 2, pause)
            await begun

    asyncio.run(run())


@pytest.mark.parametrize("step", [ControllerStep.S1, ControllerStep.S2], ids=lambda step: step.name)
def test_controlled_shutdown_is_retried_at_next_controller_after_a_deposition(step: ControllerStep) -> None:
    async def run() -> None:
        async with fake_cluster(4) as cluster:
            pause = Pause(step)
            pause.armed = True
            first = await cluster.start_controller(3, at=pause)
            await cluster.create("old", {0: (1, 0), 1: (2, 1)})
            await cluster.settled()
            asked = asyncio.create_task(first.handle_controlled_shutdown(1, cluster.brokers[1].epoch))
            async with asyncio.timeout(PATIENCE_S):
                await pause.reached.wait()
            await depose(cluster)
            second = await cluster.start_controller(0)
            assert await second.handle_controlled_shutdown(1, cluster.brokers[1].epoch) == ()
            assert (await cluster.state("old", 0)).isr == (0,)
            assert (await cluster.state("old", 1)).isr == (2,)
            await too_late(cluster, first, 3, pause)
            await asyncio.gather(asked, return_exceptions=True)

    asyncio.run(run())


async def too_late(cluster: FakeCluster, controller: Controller, broker_id: int, pause: Pause) -> None:
    """Continue a deposed controller: it writes nothing, and brokers refuse its requests."""
    before = await tree(cluster)
    told = heard_of(broker_id, cluster)
    pause.released.set()
    await cluster.until(lambda: not controller.is_active and controller.epoch == -1)
    for _ in range(50):
        await cluster.store.exists(ControllerZNode.PATH)
    assert await tree(cluster) == before
    assert heard_of(broker_id, cluster) == told
