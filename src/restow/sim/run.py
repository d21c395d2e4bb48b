"""One simulated run: a working cluster, faults, continuous checks, and a report."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from restow.runtime.chance import SeededChance
from restow.runtime.clock import SystemClock
from restow.sim.checkers import Invariants, InvariantViolation
from restow.sim.client import SimClient
from restow.sim.clock import NodeClock
from restow.sim.cluster import SimCluster, SimulatedClusterSettings
from restow.sim.faults import KINDS, Nemesis
from restow.sim.loop import run
from restow.sim.producer import SimProducer
from restow.sim.reading import read_all
from restow.wire.messages import CreateTopicsRequest, MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPIC = "orders"
_CHECK_EVERY_S = 0.25
_ROUND_EVERY_S = 0.1
_LAST_EVENTS = 40
_QUIET_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Settings of a run. The same scenario gives the same run."""

    seed: int = 0
    duration_s: float = 60.0
    brokers: int = 5
    partitions: int = 20
    records_per_s: int = 50
    faults: tuple[str, ...] = KINDS
    fault_every_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationReport:
    """The result of a run."""

    seed: int
    virtual_seconds: float
    wall_seconds: float
    steps: int
    faults: int
    acked: int
    lost: int
    violations: tuple[str, ...]
    trace: str
    """A hash of every delivered frame and every fault."""
    last_events: tuple[str, ...]

    @property
    def speed(self) -> float:
        """Virtual seconds per second."""
        return self.virtual_seconds / self.wall_seconds if self.wall_seconds else 0.0


def simulate(scenario: Scenario) -> SimulationReport:
    """Run it to its end in virtual time."""
    clock = SystemClock()
    began_s = clock.monotonic_s()
    simulation = _Simulation(scenario)
    virtual_s = run(simulation.run())
    return SimulationReport(
        seed=scenario.seed,
        virtual_seconds=virtual_s,
        wall_seconds=clock.monotonic_s() - began_s,
        steps=simulation.steps,
        faults=simulation.faults,
        acked=simulation.acked,
        lost=simulation.lost,
        violations=tuple(map(str, simulation.violations)),
        trace=simulation.trace.hexdigest(),
        last_events=tuple(simulation.events),
    )


class _Simulation:
    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.trace = hashlib.blake2b(digest_size=16)
        self.events: deque[str] = deque(maxlen=_LAST_EVENTS)
        self.violations: list[InvariantViolation] = []
        self.steps = self.faults = self.acked = self.lost = 0

    async def run(self) -> float:
        """Return the virtual seconds of the run."""
        scenario = self._scenario
        loop = asyncio.get_running_loop()
        settings = SimulatedClusterSettings(seed=scenario.seed, properties={"min.insync.replicas": "2"})
        async with SimCluster(scenario.brokers, settings) as cluster:
            cluster.network.trace = self._note_frame
            client = SimClient("client", cluster.network, NodeClock())
            await _create(client, scenario.partitions)
            producer = SimProducer(client, cluster.nodes, TOPIC)
            watch = asyncio.create_task(self._watch(Invariants(cluster)))
            nemesis = Nemesis(
                cluster,
                SeededChance(f"{scenario.seed} faults"),
                scenario.faults,
                self._note,
                every_s=scenario.fault_every_s,
            )
            work = asyncio.create_task(self._produce(producer, loop.time() + scenario.duration_s))
            await nemesis.harm(loop.time() + scenario.duration_s)
            await work
            self.faults = nemesis.count
            await self._become_healthy(cluster, producer)
            if watch.done():
                watch.result()
            watch.cancel()
            await self._compare(client, cluster, producer)
            client.close()
        return loop.time()

    def _note_frame(self, at_s: float, source: str, target: str, payload: bytes) -> None:
        self.steps += 1
        self.trace.update(f"{at_s!r} {source} {target}".encode())
        self.trace.update(payload)

    def _note(self, event: str) -> None:
        line = f"{asyncio.get_running_loop().time():.3f} s: {event}"
        self.events.append(line)
        self.trace.update(line.encode())

    def _violated(self, what: str) -> None:
        violation = InvariantViolation(asyncio.get_running_loop().time(), what)
        if what not in {each.what for each in self.violations}:
            self.violations.append(violation)
            self._note(f"VIOLATION: {what}")

    async def _watch(self, invariants: Invariants) -> None:
        while True:
            for what in invariants.check():
                self._violated(what)
            await asyncio.sleep(_CHECK_EVERY_S)

    async def _produce(self, producer: SimProducer, until_s: float) -> None:
        chance = SeededChance(f"{self._scenario.seed} producer")
        loop = asyncio.get_running_loop()
        number, owed = 0, 0.0
        while loop.time() < until_s:
            owed += self._scenario.records_per_s * _ROUND_EVERY_S
            while owed >= 1:
                producer.put(chance.randrange(self._scenario.partitions), b"%d" % number)
                number, owed = number + 1, owed - 1
            await producer.round()
            await asyncio.sleep(_ROUND_EVERY_S)

    async def _become_healthy(self, cluster: SimCluster, producer: SimProducer) -> None:
        """Wait, without further faults, until everything is acknowledged and in sync again."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + _QUIET_S
        while loop.time() < until_s:
            await producer.round()
            await asyncio.sleep(_ROUND_EVERY_S)
            if producer.is_idle and not any(_unhealthy(cluster)):
                return
        for what in _unhealthy(cluster):
            self._violated(f"not healthy {_QUIET_S:g} s after the last fault: {what}")
        if not producer.is_idle:
            self._violated(f"not everything was acknowledged {_QUIET_S:g} s after the last fault")

    async def _compare(self, client: SimClient, cluster: SimCluster, producer: SimProducer) -> None:
        self.acked = producer.acknowledged
        for partition, lane in sorted(producer.lanes.items()):
            found = await read_all(client, cluster.nodes, TOPIC, partition)
            if found is None:
                self._violated(f"{TOPIC}-{partition} cannot be read")
                continue
            there = {value: at for at, value in enumerate(found)}
            if len(there) < len(found):
                self._violated(f"{TOPIC}-{partition} has {len(found) - len(there)} records twice")
            missing = [value for value in lane.acknowledged if value not in there]
            if missing:
                self.lost += len(missing)
                self._violated(f"{TOPIC}-{partition} lost {len(missing)} acknowledged records")
            order = [there[value] for value in lane.acknowledged if value in there]
            if order != sorted(order):
                self._violated(f"{TOPIC}-{partition} has acknowledged records in another order")


def _unhealthy(cluster: SimCluster) -> Iterator[str]:
    """Yield what is wrong in a cluster without faults."""
    led = set()
    for node in cluster.nodes.values():
        if not node.broker.is_running:
            yield f"broker {node.id} is not running"
            continue
        for partition in node.broker.services.replicas.hosted():
            if partition.is_leader:
                led.add(partition.topic_partition)
                if set(partition.isr) != set(partition.order.replicas):
                    yield f"{partition.topic_partition} has the ISR {partition.isr}"
    if not led:
        yield "no partition has a leader"


async def _create(client: SimClient, partitions: int) -> None:
    topic = CreateTopicsRequest.CreatableTopic(
        name=TOPIC, num_partitions=partitions, replication_factor=3, assignments=[], configs=[]
    )
    metadata = await client.ask(MetadataRequest(topics=[]), 0)
    answer = await client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), metadata.controller_id)
    if answer.topics[0].error_code:
        raise RuntimeError(f"the topic cannot be made: {answer.topics[0].error_message}")
