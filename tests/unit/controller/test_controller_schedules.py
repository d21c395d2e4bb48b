"""Random schedules: all brokers end up with the metadata and replicas that the store has."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from restow.cluster.controller import (
    Controller,
    ControllerError,
    ControllerStep,
    Election,
    create_partitions,
    delete_topic,
)
from restow.cluster.controller.brokers import read_brokers
from restow.cluster.controller.context import ControllerContext
from restow.cluster.controller.states import PartitionState, ReplicaState
from restow.cluster.store import BadVersion, NodeExists, NoNode
from restow.cluster.store.znodes import ControllerZNode, DeleteTopic, PreferredReplicaElection, TopicZNode
from restow.model import TopicPartition
from restow.runtime.chance import SeededChance
from tests.conformance.stores import Embedded
from tests.seeds import SEED
from tests.unit.controller.fake_cluster import FakeCluster, fake_cluster, lose_directory, write_isr
from tests.unit.controller.laws import Laws

if TYPE_CHECKING:
    from restow.cluster.store import Store
    from restow.runtime.chance import Chance

BROKERS = (0, 1, 2, 3)
MOST_PARTITIONS = 30
REQUESTS = ("create", "set", "delete", "multi", "multi_each", "get", "exists", "children", "get_each")
NUMBERS = st.integers(0, 7)
NAMES = st.sampled_from(("a", "b", "c"))
REPLICAS = st.lists(st.sampled_from(BROKERS), min_size=2, max_size=2, unique=True).map(tuple)

Work: TypeAlias = Callable[[], Coroutine[object, object, None]]


class Slow:
    """A session whose requests take a few loop turns, so that others come in between."""

    def __init__(self, store: Store, chance: Chance) -> None:
        self._store = store
        self._chance = chance

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in (
            "create",
            "set",
            "delete",
            "multi",
            "multi_each",
            "get",
            "exists",
            "children",
            "get_each",
        ):
            return method

        async def slowly(*args: Any, **options: Any) -> Any:
            for _ in range(self._chance.randrange(3)):
                await asyncio.sleep(0)
            return await method(*args, **options)

        return slowly


class Schedule(RuleBasedStateMachine):
    """Every live broker runs a controller. Changes come faster than the controller handles them."""

    cluster: FakeCluster
    laws: Laws

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.patch = pytest.MonkeyPatch()
        self.ambush: ControllerStep | None = None
        self.dies = False
        logging.disable(logging.CRITICAL)

    def teardown(self) -> None:
        logging.disable(logging.NOTSET)
        try:
            self.runner.run(self.end())
        finally:
            self.patch.undo()
            self.runner.close()

    async def end(self) -> None:
        try:
            self.ambush = None
            await self.revive()
            await self.cluster.settled()
            await self.cluster.until(self.is_known)
            self.laws.check()
            await self.cluster.until(self.is_served)
        finally:
            await self.stack.aclose()

    async def is_served(self) -> bool:
        """Return whether every broker has exactly the replicas placed on it."""
        topics = await self.topics()
        for broker in self.cluster.brokers.values():
            assert broker.on_disk == broker.hosted.keys() == self.placed_on(broker.id, topics)
        return True

    async def revive(self) -> None:
        """Start all brokers, with working log dirs."""
        for broker_id, broker in sorted(self.cluster.brokers.items()):
            if broker.failed and broker_id not in self.cluster.unreachable:
                await self.cluster.stop_broker(broker_id)
        for broker_id in sorted(self.cluster.unreachable):
            await self.start(broker_id)

    async def start(self, broker_id: int) -> None:
        await self.cluster.start_broker(broker_id)
        await self.stand(broker_id)

    async def stand(self, broker_id: int) -> None:
        """Start a controller on the broker."""
        store = Slow(self.cluster.brokers[broker_id].session, self.chance)
        await self.cluster.start_controller(broker_id, at=self.at, store=cast("Store", store))

    async def at(self, step: ControllerStep) -> None:
        """Depose the controller, or kill its broker, at an armed step; then continue."""
        if step is not self.ambush:
            return
        self.ambush = None
        if self.dies and len(self.live()) > 1:
            for controller, broker_id in self.active():
                if controller.epoch >= 0:
                    await self.cluster.stop_broker(broker_id)
        else:
            await self.depose()
        for _ in range(20):
            await asyncio.sleep(0)

    async def depose(self) -> None:
        with suppress(NoNode):
            await self.cluster.store.delete(ControllerZNode.PATH)

    def active(self) -> list[tuple[Controller, int]]:
        """Return the controllers that are elected, or believe so."""
        return [(each, each._broker_id) for each in self.cluster.controllers if each._term is not None]

    def live(self) -> set[int]:
        return self.cluster.brokers.keys() - self.cluster.unreachable

    async def is_known(self) -> bool:
        """Return whether the controller's view equals that of a newly elected one, and was applied."""
        (controller,) = [each for each in self.cluster.controllers if each.is_active]
        term = controller._term
        assert term is not None
        known, tools = term.context, term._tools
        fresh = ControllerContext(known.broker_id, known.epoch)
        fresh.brokers = await read_brokers(tools)
        for name, topic in (await self.topics()).items():
            fresh.know_topic(name, topic)
        fresh.leaderships = await tools.nodes.read(fresh.assignments)
        fresh.deleting = set(await self.cluster.store.children(DeleteTopic.PARENT))
        for what in ("brokers", "topic_ids", "assignments", "leaderships", "deleting"):
            assert getattr(fresh, what) == getattr(known, what), what
        for partition in known.assignments:
            assert known.is_deleting(partition) or self.is_placed(known, partition), partition
        return True

    def is_placed(self, known: ControllerContext, partition: TopicPartition) -> bool:
        """Return whether partition and replicas are in the states that the live brokers imply."""
        leader = known.leaderships[partition].leader if partition in known.leaderships else None
        expected = {None: PartitionState.NEW, -1: PartitionState.OFFLINE}
        if known.partition_states[partition] is not expected.get(leader, PartitionState.ONLINE):
            return False
        # A replica created on a dead broker counts as Online until the broker has been up once.
        return all(
            known.replica_states[replica] is ReplicaState.ONLINE
            or (known.replica_states[replica] is ReplicaState.OFFLINE and not known.is_online(replica))
            for replica in known.replicas((partition,))
        )

    async def pick(self, number: int) -> TopicPartition:
        """Return one of the partitions, or one that does not exist."""
        topics = await self.topics()
        there = [TopicPartition(name, each) for name, topic in topics.items() for each in topic.partitions]
        return there[number % len(there)] if there else TopicPartition("absent", number)

    async def topics(self) -> dict[str, TopicZNode]:
        names = await self.cluster.topics()
        nodes = await self.cluster.store.get_each([TopicZNode.path(name) for name in names])
        return {
            name: TopicZNode.decode(node.data, name) for name, node in zip(names, nodes, strict=True) if node
        }

    @staticmethod
    def placed_on(broker_id: int, topics: dict[str, TopicZNode]) -> set[TopicPartition]:
        return {
            TopicPartition(name, number)
            for name, topic in topics.items()
            for number, assignment in topic.partitions.items()
            if broker_id in assignment.replicas
        }

    @initialize(seed=st.integers(0, 9))
    def begin(self, seed: int) -> None:
        self.chance = SeededChance(seed)

        async def begin() -> None:
            self.cluster = cluster = await self.stack.enter_async_context(fake_cluster(len(BROKERS)))
            server = cluster.server
            assert isinstance(server, Embedded)
            assert server.server is not None
            self.laws = Laws(server.server._tree, cluster.store.session_id)
            self.laws.watch(self.patch)
            for broker_id in BROKERS:
                await self.stand(broker_id)
            await cluster.create("a", {0: (0, 1, 2), 1: (3, 2)})
            await cluster.settled()

        self.runner.run(begin())

    @rule(name=NAMES, replicas=st.lists(REPLICAS, min_size=1, max_size=3), unclean=st.booleans())
    def create(self, name: str, replicas: list[tuple[int, ...]], *, unclean: bool) -> None:
        async def create() -> None:
            configs = {"unclean_leader_election_enable": "true"} if unclean else {}
            with suppress(NodeExists):
                await self.cluster.create(name, dict(enumerate(replicas)), **configs)
                partitions = {TopicPartition(name, number) for number in range(MOST_PARTITIONS)}
                self.laws.unclean -= partitions
                self.laws.unclean |= partitions if unclean else set()

        self.runner.run(create())

    @rule(name=NAMES, replicas=REPLICAS)
    def expand(self, name: str, replicas: tuple[int, ...]) -> None:
        async def expand() -> None:
            with suppress(ControllerError):
                topics = await self.topics()
                await create_partitions(
                    self.cluster.store,
                    name,
                    {len(topics[name].partitions) if name in topics else 0: replicas},
                )

        self.runner.run(expand())

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        async def delete() -> None:
            with suppress(ControllerError):
                await delete_topic(self.cluster.store, name)

        self.runner.run(delete())

    @rule(broker_id=st.sampled_from(BROKERS))
    def a_broker_dies_or_comes_back(self, broker_id: int) -> None:
        async def change() -> None:
            if broker_id in self.cluster.unreachable:
                await self.start(broker_id)
            else:
                await self.cluster.stop_broker(broker_id)

        self.runner.run(change())

    @rule(broker_id=st.sampled_from(BROKERS))
    def a_broker_takes_its_leave(self, broker_id: int) -> None:
        async def leave() -> None:
            if broker_id in self.live():
                for controller, _ in self.active():
                    with suppress(ControllerError):
                        await controller.handle_controlled_shutdown(
                            broker_id, self.cluster.brokers[broker_id].epoch
                        )
                await self.cluster.stop_broker(broker_id)

        self.runner.run(leave())

    @rule(broker_id=st.sampled_from(BROKERS), number=NUMBERS)
    def a_directory_fails(self, broker_id: int, number: int) -> None:
        async def fail() -> None:
            held = sorted(self.cluster.brokers[broker_id].hosted)
            if broker_id in self.live() and held:
                await lose_directory(self.cluster, broker_id, held[number % len(held)])

        self.runner.run(fail())

    @rule(number=NUMBERS, members=st.sets(st.sampled_from(BROKERS)))
    def a_leader_changes_its_isr(self, number: int, members: set[int]) -> None:
        """Set the ISR to the leader and those members that have a replica and follow it."""

        async def change() -> None:
            partition = await self.pick(number)
            with suppress(NoNode, BadVersion):
                state = await self.cluster.state(*partition)
                brokers = {each: self.cluster.brokers[each] for each in self.live()}
                following = {
                    each
                    for each, broker in brokers.items()
                    if partition in broker.hosted
                    and partition not in broker.failed
                    and broker.hosted[partition].leader_epoch == state.leader_epoch
                }
                if state.leader in following:
                    replicas = brokers[state.leader].hosted[partition].replicas
                    joining = (members & following).intersection(replicas) - set(state.isr)
                    staying = [each for each in state.isr if each in members or each == state.leader]
                    await write_isr(self.cluster, partition, (*staying, *sorted(joining)))

        self.runner.run(change())

    @rule(number=NUMBERS)
    def any_leader_is_asked_for(self, number: int) -> None:
        async def ask() -> None:
            partition = await self.pick(number)
            self.laws.unclean.add(partition)
            for controller, _ in self.active():
                with suppress(ControllerError):
                    await controller.elect_leaders(Election.UNCLEAN, [partition])

        self.runner.run(ask())

    @rule()
    def the_controller_is_deposed(self) -> None:
        self.runner.run(self.depose())

    @rule(step=st.sampled_from(ControllerStep), dies=st.booleans())
    def the_controller_will_be_deposed_or_die_at(self, step: ControllerStep, *, dies: bool) -> None:
        self.ambush = step
        self.dies = dies

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
        async def settle() -> None:
            await self.cluster.settled()
            await self.cluster.until(self.is_known)

        self.runner.run(settle())

    @invariant()
    def every_law_is_kept(self) -> None:
        if hasattr(self, "laws"):
            self.laws.check()


TestSchedules = Schedule.TestCase
TestSchedules.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, derandomize=not SEED, database=None
)
