"""Whatever happens in whatever order, all brokers end up knowing and serving what the store says."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from typing import TypeAlias

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from restow.cluster.controller import TopicError, delete_topic, expand_topic
from restow.cluster.store import NodeExists, NoNode
from restow.cluster.store.znodes import Controller, PreferredReplicaElection, Topic
from restow.model import TopicPartition
from tests.unit.controller.fake_cluster import FakeCluster, fake_cluster

BROKERS = (0, 1, 2, 3)
NAMES = st.sampled_from(("a", "b", "c"))
REPLICAS = st.lists(st.sampled_from(BROKERS), min_size=2, max_size=2, unique=True).map(tuple)

Work: TypeAlias = Callable[[], Coroutine[object, object, None]]


class Schedule(RuleBasedStateMachine):
    """Every live broker stands for controller. Changes come faster than the controller deals with them."""

    cluster: FakeCluster

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.epochs: dict[TopicPartition, tuple[str | None, int]] = {}
        logging.disable(logging.CRITICAL)

    def teardown(self) -> None:
        logging.disable(logging.NOTSET)
        self.runner.run(self.end())
        self.runner.close()

    async def end(self) -> None:
        try:
            await self.revive()
            await self.cluster.settled()
            for broker in self.cluster.brokers.values():
                assert (
                    broker.on_disk == broker.hosted.keys() == self.placed_on(broker.id, await self.topics())
                )
        finally:
            await self.stack.aclose()

    async def revive(self) -> None:
        for broker_id in sorted(self.cluster.unreachable):
            await self.cluster.start_broker(broker_id)
            await self.cluster.start_controller(broker_id)

    async def topics(self) -> dict[str, Topic]:
        names = await self.cluster.topics()
        nodes = await self.cluster.store.get_each([Topic.path(name) for name in names])
        return {name: Topic.decode(node.data, name) for name, node in zip(names, nodes, strict=True) if node}

    @staticmethod
    def placed_on(broker_id: int, topics: dict[str, Topic]) -> set[TopicPartition]:
        return {
            TopicPartition(name, number)
            for name, topic in topics.items()
            for number, assignment in topic.partitions.items()
            if broker_id in assignment.replicas
        }

    @initialize()
    def begin(self) -> None:
        async def begin() -> None:
            self.cluster = await self.stack.enter_async_context(fake_cluster(len(BROKERS)))
            for broker_id in BROKERS:
                await self.cluster.start_controller(broker_id)

        self.runner.run(begin())

    @rule(name=NAMES, replicas=st.lists(REPLICAS, min_size=1, max_size=3))
    def create(self, name: str, replicas: list[tuple[int, ...]]) -> None:
        async def create() -> None:
            with suppress(NodeExists):
                await self.cluster.create(name, dict(enumerate(replicas)))

        self.runner.run(create())

    @rule(name=NAMES, replicas=REPLICAS)
    def expand(self, name: str, replicas: tuple[int, ...]) -> None:
        async def expand() -> None:
            with suppress(TopicError):
                topics = await self.topics()
                await expand_topic(
                    self.cluster.store,
                    name,
                    {len(topics[name].partitions) if name in topics else 0: replicas},
                )

        self.runner.run(expand())

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        async def delete() -> None:
            with suppress(TopicError):
                await delete_topic(self.cluster.store, name)

        self.runner.run(delete())

    @rule(broker_id=st.sampled_from(BROKERS))
    def a_broker_dies_or_comes_back(self, broker_id: int) -> None:
        async def change() -> None:
            if broker_id in self.cluster.unreachable:
                await self.cluster.start_broker(broker_id)
                await self.cluster.start_controller(broker_id)
            else:
                await self.cluster.stop_broker(broker_id)

        self.runner.run(change())

    @rule()
    def the_controller_is_deposed(self) -> None:
        async def depose() -> None:
            with suppress(NoNode):
                await self.cluster.store.delete(Controller.PATH)

        self.runner.run(depose())

    @rule(name=NAMES)
    def preferred_leaders_are_asked_for(self, name: str) -> None:
        async def ask() -> None:
            request = PreferredReplicaElection(tuple(TopicPartition(name, each) for each in range(3)))
            with suppress(NodeExists):
                await self.cluster.store.create(PreferredReplicaElection.PATH, request.encode())

        self.runner.run(ask())

    @rule(turns=st.integers(1, 30))
    def the_controller_gets_on(self, turns: int) -> None:
        async def wait() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        self.runner.run(wait())

    @precondition(lambda self: len(self.cluster.unreachable) < len(BROKERS))
    @rule()
    def everything_settles(self) -> None:
        self.runner.run(self.cluster.settled())

    @invariant()
    def states_are_sound_and_epochs_only_grow(self) -> None:
        if hasattr(self, "cluster"):
            self.runner.run(self.look())

    async def look(self) -> None:
        for name, topic in (await self.topics()).items():
            for number, assignment in topic.partitions.items():
                with suppress(NoNode):
                    state = await self.cluster.state(name, number)
                    assert state.isr
                    assert set(state.isr) <= set(assignment.replicas)
                    assert state.leader in (-1, *state.isr)
                    partition = TopicPartition(name, number)
                    known_id, known_epoch = self.epochs.get(partition, (None, -1))
                    assert known_id != topic.topic_id or known_epoch <= state.leader_epoch
                    self.epochs[partition] = topic.topic_id, state.leader_epoch


TestSchedules = Schedule.TestCase
TestSchedules.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, derandomize=True, database=None
)
