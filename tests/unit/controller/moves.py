"""Helpers for reassignment tests: request them, let followers catch up, and inspect the result."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from restow.cluster.controller import Controller, ControllerStep, ReassignmentTarget, Refusal
from restow.cluster.store import BadVersion, NoNode
from restow.cluster.store.znodes import (
    IsrChangeNotification,
    PartitionStateZNode,
    ReassignPartitions,
    TopicZNode,
)
from restow.model import ReplicaAssignment, TopicPartition
from tests.unit.controller.fake_cluster import FakeCluster, fake_cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

T0 = TopicPartition("t", 0)
LABELS = tuple(step for step in ControllerStep if step.name[0] in "UAB")
"""Every step of a reassignment, in order."""


class Watcher:
    """Records the steps of a controller, and runs actions at them."""

    def __init__(self) -> None:
        self.passed: list[ControllerStep] = []
        self.then: dict[ControllerStep, Callable[[], Awaitable[object]]] = {}

    async def __call__(self, step: ControllerStep) -> None:
        self.passed.append(step)
        if step in self.then:
            await self.then[step]()

    def labels(self) -> list[str]:
        """The steps of reassignments."""
        return [step.name for step in self.passed if step in LABELS]


@asynccontextmanager
async def moving_cluster(
    replicas: tuple[int, ...] = (0, 1), brokers: int = 5
) -> AsyncIterator[tuple[FakeCluster, Controller, Watcher]]:
    """A topic t of one partition, and a controller on the last broker, which has no replica."""
    async with fake_cluster(brokers) as cluster:
        watcher = Watcher()
        controller = await cluster.start_controller(brokers - 1, at=watcher)
        await cluster.create("t", {0: replicas})
        await cluster.settled()
        watcher.passed.clear()
        yield cluster, controller, watcher


async def assignment(cluster: FakeCluster, partition: TopicPartition = T0) -> ReplicaAssignment:
    """Return the assignment in the topic's znode."""
    path = TopicZNode.path(partition.topic)
    return TopicZNode.decode((await cluster.store.get(path)).data, path).partitions[partition.partition]


async def alter(
    controller: Controller, target: tuple[int, ...] | None, partition: TopicPartition = T0
) -> Refusal | None:
    """Request reassignments like a client."""
    return (await controller.alter_reassignments({partition: ReassignmentTarget(target)}))[partition]


async def ask_by_node(cluster: FakeCluster, **targets: tuple[int, ...]) -> None:
    """Request reassignments of each topic's partition 0 by the znode, as older tools do."""
    wanted = {TopicPartition(topic, 0): target for topic, target in targets.items()}
    await cluster.store.create(ReassignPartitions.PATH, ReassignPartitions(wanted).encode())


async def request_is_gone(cluster: FakeCluster) -> bool:
    return await cluster.store.exists(ReassignPartitions.PATH) is None


async def change_isr(
    cluster: FakeCluster,
    partition: TopicPartition = T0,
    *,
    joins: tuple[int, ...] = (),
    leaves: tuple[int, ...] = (),
) -> None:
    """Change the ISR like a leader: write the state and leave a notification."""
    path = PartitionStateZNode.path(*partition)
    while True:
        node = await cluster.store.get(path)
        state = PartitionStateZNode.decode(node.data, path)
        isr = tuple(each for each in dict.fromkeys(state.isr + joins) if each not in leaves)
        if isr == state.isr:
            return
        after = PartitionStateZNode(
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=isr,
            controller_epoch=state.controller_epoch,
        )
        with suppress(BadVersion):
            await cluster.store.set(path, after.encode(), node.stat.version)
            note = IsrChangeNotification((partition,)).encode()
            await cluster.store.create(IsrChangeNotification.PREFIX, note, sequential=True)
            return


async def catch_up(cluster: FakeCluster) -> None:
    """Add every live follower that follows a live leader to that leader's ISR."""
    for leader in list(cluster.brokers.values()):
        if leader.id in cluster.unreachable:
            continue
        for partition, state in list(leader.hosted.items()):
            if state.leader != leader.id:
                continue
            with suppress(NoNode):
                current = await cluster.state(*partition)
                if (current.leader, current.leader_epoch) != (leader.id, state.leader_epoch):
                    continue
                follow = tuple(
                    each
                    for each in state.replicas
                    if each not in cluster.unreachable
                    and each in cluster.brokers
                    and partition in cluster.brokers[each].hosted
                    and cluster.brokers[each].hosted[partition].leader_epoch == state.leader_epoch
                )
                await change_isr(cluster, partition, joins=follow)


async def at_rest(cluster: FakeCluster) -> bool:
    """Return whether no reassignment is ongoing or requested."""
    for name in await cluster.topics():
        topic = TopicZNode.decode((await cluster.store.get(TopicZNode.path(name))).data, name)
        if any(each.is_moving for each in topic.partitions.values()):
            return False
    return await request_is_gone(cluster)


async def finish(cluster: FakeCluster, controller: Controller | None = None) -> None:
    """Let followers catch up until no reassignment is left, then wait until all brokers know.

    That may be so before the last steps of an event: wait until the controller has done these, too.
    """

    async def is_over() -> bool:
        await catch_up(cluster)
        return await at_rest(cluster)

    await cluster.until(is_over)
    await cluster.settled()
    await cluster.until(lambda: files_are_right(cluster))
    if controller is not None:
        await controller.list_reassignments(None)


async def files_are_right(cluster: FakeCluster) -> bool:
    """Return whether every live broker has exactly its assigned replicas."""
    assigned: dict[int, set[TopicPartition]] = {each: set() for each in cluster.brokers}
    for name in await cluster.topics():
        topic = TopicZNode.decode((await cluster.store.get(TopicZNode.path(name))).data, name)
        for number, each in topic.partitions.items():
            for broker_id in each.replicas:
                assigned[broker_id].add(TopicPartition(name, number))
    live = cluster.brokers.keys() - cluster.unreachable
    return all(cluster.brokers[each].on_disk == assigned[each] for each in live)


async def drop_strays(cluster: FakeCluster) -> None:
    """Drop stray replicas, as brokers do at start or for a new controller."""
    for broker in cluster.brokers.values():
        for partition in tuple(broker.on_disk):
            if broker.id not in (await assignment(cluster, partition)).replicas:
                broker.on_disk.discard(partition)
                broker.hosted.pop(partition, None)


async def turns(count: int = 50) -> None:
    """Let other tasks run."""
    for _ in range(count):
        await asyncio.sleep(0)
