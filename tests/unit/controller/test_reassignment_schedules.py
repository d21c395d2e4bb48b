"""Random schedules of reassignments: every partition ends at a target or its origin.

No invariant is violated at any moment.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from restow.cluster.controller import ControllerError, ReassignmentTarget
from restow.cluster.store import NodeExists, NoNode
from restow.cluster.store.znodes import ControllerZNode, ReassignPartitions, TopicZNode
from restow.model import TopicPartition
from tests.seeds import SEED
from tests.unit.controller.fake_cluster import FakeCluster, fake_cluster
from tests.unit.controller.moves import assignment, at_rest, catch_up, drop_strays, files_are_right

if TYPE_CHECKING:
    from restow.cluster.controller import Controller

BROKERS = (0, 1, 2, 3)
PARTITIONS = (TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0))
PARTITION = st.sampled_from(PARTITIONS)
TARGET = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True).map(tuple)


class Moves(RuleBasedStateMachine):
    """Every live broker runs a controller. At least one broker lives."""

    cluster: FakeCluster

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.controllers: dict[int, Controller] = {}
        self.targets: dict[TopicPartition, set[frozenset[int]]] = {}
        """The replica sets that a partition may end with."""
        logging.disable(logging.CRITICAL)

    def teardown(self) -> None:
        logging.disable(logging.NOTSET)
        self.runner.run(self.end())
        self.runner.close()

    async def end(self) -> None:
        try:
            for broker_id in sorted(self.cluster.unreachable):
                await self.revive(broker_id)
            await self.cluster.until(self.is_over)
            await drop_strays(self.cluster)
            await self.cluster.settled()
            await self.cluster.until(lambda: files_are_right(self.cluster))
            for partition in PARTITIONS:
                found = await assignment(self.cluster, partition)
                assert frozenset(found.replicas) in self.targets[partition]
        finally:
            await self.stack.aclose()

    async def is_over(self) -> bool:
        await catch_up(self.cluster)
        return await at_rest(self.cluster)

    async def revive(self, broker_id: int) -> None:
        await drop_strays(self.cluster)
        await self.cluster.start_broker(broker_id)
        self.controllers[broker_id] = await self.cluster.start_controller(broker_id)

    def active(self) -> Controller | None:
        return next(
            (
                each
                for number, each in self.controllers.items()
                if each.is_active and number not in self.cluster.unreachable
            ),
            None,
        )

    @initialize()
    def begin(self) -> None:
        async def begin() -> None:
            self.cluster = await self.stack.enter_async_context(fake_cluster(len(BROKERS)))
            for broker_id in BROKERS:
                self.controllers[broker_id] = await self.cluster.start_controller(broker_id)
            await self.cluster.create("a", {0: (0, 1), 1: (1, 2)})
            await self.cluster.create("b", {0: (2, 3, 0)})
            await self.cluster.settled()

        self.runner.run(begin())
        self.targets = {
            PARTITIONS[0]: {frozenset({0, 1})},
            PARTITIONS[1]: {frozenset({1, 2})},
            PARTITIONS[2]: {frozenset({0, 2, 3})},
        }

    @rule(asked=st.dictionaries(PARTITION, st.one_of(st.none(), TARGET), min_size=1))
    def ask(self, asked: dict[TopicPartition, tuple[int, ...] | None]) -> None:
        async def ask() -> None:
            for partition, target in asked.items():
                if target is not None:
                    self.targets[partition].add(frozenset(target))
            if (controller := self.active()) is not None:
                call = asyncio.create_task(
                    controller.alter_reassignments(
                        {each: ReassignmentTarget(target) for each, target in asked.items()}
                    )
                )
                with suppress(ControllerError, TimeoutError):
                    await asyncio.wait_for(call, 5)

        self.runner.run(ask())

    @rule(asked=st.dictionaries(PARTITION, TARGET, min_size=1))
    def ask_by_node(self, asked: dict[TopicPartition, tuple[int, ...]]) -> None:
        async def ask() -> None:
            with suppress(NodeExists):
                await self.cluster.store.create(ReassignPartitions.PATH, ReassignPartitions(asked).encode())
                for partition, target in asked.items():
                    self.targets[partition].add(frozenset(target))

        self.runner.run(ask())

    @rule()
    def followers_catch_up(self) -> None:
        self.runner.run(catch_up(self.cluster))

    @rule(turns=st.integers(1, 40))
    def the_controller_gets_on(self, turns: int) -> None:
        async def wait() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        self.runner.run(wait())

    @rule(broker_id=st.sampled_from(BROKERS))
    def a_broker_dies_or_comes_back(self, broker_id: int) -> None:
        async def change() -> None:
            if broker_id in self.cluster.unreachable:
                await self.revive(broker_id)
            elif len(self.cluster.unreachable) < len(BROKERS) - 2:
                await self.cluster.stop_broker(broker_id)

        self.runner.run(change())

    @rule()
    def the_controller_is_deposed(self) -> None:
        async def depose() -> None:
            with suppress(NoNode):
                await self.cluster.store.delete(ControllerZNode.PATH)

        self.runner.run(depose())

    @invariant()
    def nothing_is_broken(self) -> None:
        if hasattr(self, "cluster"):
            self.runner.run(self.look())

    async def look(self) -> None:
        for name in await self.cluster.topics():
            topic = TopicZNode.decode((await self.cluster.store.get(TopicZNode.path(name))).data, name)
            for number, found in topic.partitions.items():
                assert set(found.adding).isdisjoint(found.removing)
                assert {*found.adding, *found.removing} <= set(found.replicas)
                with suppress(NoNode):
                    state = await self.cluster.state(name, number)
                    assert state.isr
                    assert state.leader in (-1, *state.isr)


TestMoves = Moves.TestCase
TestMoves.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, derandomize=not SEED, database=None
)
