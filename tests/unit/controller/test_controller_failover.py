"""A controller that dies at any step: its successor finishes the work, and it can do nothing any more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from restow.cluster.controller import Step, delete_topic, expand_topic
from restow.cluster.store.znodes import Controller, PreferredReplicaElection
from restow.model import TopicPartition
from tests.unit.controller.fake_cluster import FakeCluster, fake_cluster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Pause:
    """Stops a controller where it is told to, and lets it go on when it is too late."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self.armed = False
        self.reached = asyncio.Event()
        self.released = asyncio.Event()

    async def __call__(self, step: Step) -> None:
        if self.armed and step is self._step and not self.reached.is_set():
            self.reached.set()
            await self.released.wait()


async def tree(cluster: FakeCluster, path: str = "/") -> dict[str, tuple[bytes, int]]:
    """Every node with its data and version."""
    node = await cluster.store.get(path)
    found = {path: (node.data, node.stat.version)}
    for name in await cluster.store.children(path):
        found |= await tree(cluster, f"{path.rstrip('/')}/{name}")
    return found


async def depose(cluster: FakeCluster) -> None:
    """As if the controller's session had been lost without its hearing of it: the office is free."""
    await cluster.store.delete(Controller.PATH)


def heard_of(controller_id: int, cluster: FakeCluster) -> int:
    """How many requests of that controller brokers took for good."""
    requests = [each for broker in cluster.brokers.values() for each in broker.heard]
    return sum(each.controller_id == controller_id for each in requests)


async def create(cluster: FakeCluster) -> None:
    await cluster.create("new", {0: (0, 1), 1: (1, 2), 2: (2, 0)})


async def expand(cluster: FakeCluster) -> None:
    await expand_topic(cluster.store, "old", {2: (0, 1), 3: (2, 1)})


async def delete(cluster: FakeCluster) -> None:
    await delete_topic(cluster.store, "old")


async def lose_a_broker(cluster: FakeCluster) -> None:
    await cluster.stop_broker(1)


async def ask_for_preferred_leaders(cluster: FakeCluster) -> None:
    request = PreferredReplicaElection((TopicPartition("old", 0), TopicPartition("old", 1)))
    await cluster.store.create(PreferredReplicaElection.PATH, request.encode())


WORK: list[tuple[Callable[[FakeCluster], Awaitable[None]], tuple[Step, ...]]] = [
    (create, (Step.C1, Step.C2, Step.W1, Step.C3)),
    (expand, (Step.C1, Step.C2, Step.W1, Step.C3)),
    (delete, (Step.D1, Step.D2, Step.D3, Step.D4, Step.D5, Step.D6)),
    (lose_a_broker, (Step.F1, Step.W1, Step.F2, Step.F3)),
    (ask_for_preferred_leaders, (Step.P1,)),
]


@pytest.mark.parametrize(
    ("work", "step"),
    [(work, step) for work, steps in WORK for step in steps],
    ids=lambda each: each.name if isinstance(each, Step) else each.__name__,
)
def test_the_successor_finishes_and_the_deposed_changes_nothing(
    work: Callable[[FakeCluster], Awaitable[None]], step: Step
) -> None:
    async def run() -> None:
        async with fake_cluster(4) as cluster:
            pause = Pause(step)
            first = await cluster.start_controller(3, at=pause)
            await cluster.create("old", {0: (0, 1), 1: (1, 2)})
            await cluster.settled()
            pause.armed = True
            await work(cluster)
            async with asyncio.timeout(10):
                await pause.reached.wait()
            await depose(cluster)
            second = await cluster.start_controller(0)
            await cluster.until(lambda: second.is_active)
            await cluster.settled()
            assert second.epoch == first.epoch + 1
            before = await tree(cluster)
            told = heard_of(3, cluster)
            pause.released.set()
            await cluster.until(lambda: not first.is_active)
            for _ in range(50):
                await asyncio.sleep(0)
            assert await tree(cluster) == before
            assert heard_of(3, cluster) == told

    asyncio.run(run())
