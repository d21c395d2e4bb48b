"""Both state machines against the specified tables, with random transitions."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from restow.cluster.controller.context import ControllerContext, RegisteredBroker, Replica
from restow.cluster.controller.guarded import GuardedStore
from restow.cluster.controller.outbox import Outbox
from restow.cluster.controller.state_nodes import StateNodes
from restow.cluster.controller.states import PartitionState, ReplicaState
from restow.cluster.controller.steps import go_on
from restow.cluster.controller.tools import ControllerConfig, Tools
from restow.cluster.store import ensure_paths
from restow.cluster.store.embedded import EmbeddedStore
from restow.cluster.store.znodes import (
    PERSISTENT_PATHS,
    AdvertisedEndpoint,
    BrokerRegistration,
    ControllerEpoch,
    TopicZNode,
)
from restow.model import ReplicaAssignment, TopicPartition
from restow.runtime.clock import SystemClock
from tests.seeds import SEED
from tests.unit.controller.laws import PARTITIONS, REPLICAS

BROKERS = (0, 1, 2)
TOPIC = TopicZNode(
    topic_id="AAAAAAAAAAAAAAAAAAAAAA",
    partitions={0: ReplicaAssignment((0, 1, 2)), 1: ReplicaAssignment((1, 2)), 2: ReplicaAssignment((2,))},
)
ALL = [TopicPartition("t", number) for number in TOPIC.partitions]
ALL_REPLICAS = [Replica(p, b) for p in ALL for b in TOPIC.partitions[p.partition].replicas]


class Silence:
    """A channel whose brokers never answer."""

    async def call(self, broker_id: int, request: Any) -> Any:
        await asyncio.Event().wait()


class Machines(RuleBasedStateMachine):
    """Random transitions, with brokers that come and go in between."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        logging.disable(logging.CRITICAL)

    def teardown(self) -> None:
        logging.disable(logging.NOTSET)
        self.runner.run(self.close())
        self.runner.close()

    async def close(self) -> None:
        self.tools.outbox.close_all()
        await self.server.close()

    @initialize()
    def begin(self) -> None:
        self.runner.run(self.open())
        self.replica_model = dict.fromkeys(ALL_REPLICAS, "NonExistent")
        self.partition_model = dict.fromkeys(ALL, "NonExistent")

    async def open(self) -> None:
        self.server = EmbeddedStore()
        store = self.server.session()
        await ensure_paths(store, (*PERSISTENT_PATHS, TopicZNode.path("t")))
        await store.create(ControllerEpoch.PATH, b"1")
        self.context = ControllerContext(0, 1)
        self.context.know_topic("t", TOPIC)
        guarded = GuardedStore(store, 0)
        outbox = Outbox(
            Silence(), SystemClock(), backoff_s=1, answered=lambda *_: None, broken=lambda _: None
        )
        self.tools = Tools(
            context=self.context,
            store=guarded,
            nodes=StateNodes(guarded, 1),
            outbox=outbox,
            config=ControllerConfig(),
            at=go_on,
            new_topic_id=lambda: "",
        )
        for broker_id in BROKERS:
            self.up(broker_id)
        self.replicas = self.tools.replicas
        self.partitions = self.tools.partitions

    def up(self, broker_id: int) -> None:
        registration = BrokerRegistration(
            endpoints=(AdvertisedEndpoint("PLAINTEXT", "h", 1),), timestamp_ms=0
        )
        self.context.brokers[broker_id] = RegisteredBroker(broker_id, 1, registration)
        self.tools.outbox.open(broker_id)

    @rule(broker_id=st.sampled_from(BROKERS))
    def a_broker_comes_or_goes(self, broker_id: int) -> None:
        async def change() -> None:
            if self.context.brokers.pop(broker_id, None) is None:
                self.up(broker_id)
            else:
                self.tools.outbox.close(broker_id)

        self.runner.run(change())

    @rule(
        replicas=st.lists(st.sampled_from(ALL_REPLICAS), unique=True),
        to=st.sampled_from(ReplicaState),
    )
    def move_replicas(self, replicas: list[Replica], to: ReplicaState) -> None:
        allowed = REPLICAS[to.value].split(", ")
        leads = {p: leadership.leader for p, leadership in self.context.leaderships.items()}
        for replica in replicas:
            leads_already = to is ReplicaState.NEW and leads.get(replica.partition) == replica.broker_id
            if self.replica_model[replica] in allowed and not leads_already:
                self.replica_model[replica] = to.value
        self.runner.run(self.replicas.move(replicas, to))

    @rule(
        partitions=st.lists(st.sampled_from(ALL), unique=True),
        to=st.sampled_from(PartitionState),
    )
    def move_partitions(self, partitions: list[TopicPartition], to: PartitionState) -> None:
        before = dict(self.partition_model)
        arrived = self.runner.run(self.partitions.move(partitions, to))
        for partition in partitions:
            if before[partition] in PARTITIONS[to.value].split(", "):
                if to is not PartitionState.ONLINE or partition in arrived:
                    self.partition_model[partition] = to.value
            else:
                assert partition not in arrived
        for partition in arrived if to is PartitionState.ONLINE else ():
            leadership = self.context.leaderships[partition]
            assert leadership.leader in self.context.brokers

    @invariant()
    def both_are_where_the_tables_put_them(self) -> None:
        if not hasattr(self, "tools"):
            return
        states = self.context.replica_states
        assert {each: states[each].value for each in ALL_REPLICAS} == self.replica_model
        found = {each: self.context.partition_states[each].value for each in ALL}
        assert found == self.partition_model
        for state in ReplicaState:
            if state is not ReplicaState.NON_EXISTENT:
                assert set(states.among(state)) == {r for r in ALL_REPLICAS if states[r] is state}

    @invariant()
    def what_is_known_is_what_is_written(self) -> None:
        if not hasattr(self, "tools"):
            return
        assert self.runner.run(self.tools.nodes.read(ALL)) == self.context.leaderships
        for partition, leadership in self.context.leaderships.items():
            replicas = TOPIC.partitions[partition.partition].replicas
            assert leadership.isr
            assert set(leadership.isr) <= set(replicas)
            assert leadership.leader in (-1, *leadership.isr)


TestMachines = Machines.TestCase
TestMachines.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, derandomize=not SEED, database=None
)
