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
from restow.sim.cluster import SimCluster, SimulatedClusterSettings
from restow.sim.loop import run
from restow.sim.nemesis import Nemesis
from restow.sim.scenario import Scenario
from restow.sim.workloads import WORKLOADS, WorkContext, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CHECK_EVERY_S = 0.25
_LAST_EVENTS = 40
_QUIET_S = 120.0
_MOST_LOG_DIRS = 3
_MOST_SKEW_MS = 60_000

__all__ = ["Scenario", "SimulationReport", "simulate"]


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
        async with SimCluster(scenario.brokers, _settings(scenario)) as cluster:
            cluster.network.trace = self._note_frame
            context = WorkContext(scenario=scenario, cluster=cluster, note=self._note)
            workloads = [WORKLOADS[name](context) for name in _drawn(scenario)]
            for each in workloads:
                await each.start()
            watch = asyncio.create_task(self._watch(Invariants(cluster), workloads))
            nemesis = Nemesis(cluster, scenario, self._note)
            until_s = loop.time() + scenario.duration_s
            await asyncio.gather(nemesis.harm(), *(each.run(until_s) for each in workloads))
            self.faults = nemesis.count
            await self._settle(cluster, workloads)
            for each in workloads:
                async for what in each.finish():
                    self._violated(what)
                self.acked += each.acked
                self.lost += each.lost
            if watch.done():
                watch.result()
            watch.cancel()
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

    async def _watch(self, invariants: Invariants, workloads: Sequence[Workload]) -> None:
        while True:
            for what in invariants.check():
                self._violated(what)
            for each in workloads:
                for what in each.check():
                    self._violated(what)
            await asyncio.sleep(_CHECK_EVERY_S)

    async def _settle(self, cluster: SimCluster, workloads: Sequence[Workload]) -> None:
        """Wait, without further faults, until all work is done and all replicas are in sync again."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + _QUIET_S
        tasks = {each.name: asyncio.create_task(each.settle()) for each in workloads}
        await asyncio.wait(tasks.values(), timeout=_QUIET_S)
        for name, task in tasks.items():
            if task.done():
                task.result()
            else:
                task.cancel()
                self._violated(f"the workload {name} did not end within {_QUIET_S:g} s after the last fault")
        while any(_unhealthy(cluster)) and loop.time() < until_s:
            await asyncio.sleep(_CHECK_EVERY_S)
        for what in _unhealthy(cluster):
            self._violated(f"not healthy {_QUIET_S:g} s after the last fault: {what}")


def _settings(scenario: Scenario) -> SimulatedClusterSettings:
    """Draw the cluster: how many log dirs a broker has, and how wrong its clock is."""
    chance = SeededChance(f"{scenario.seed} cluster")
    return SimulatedClusterSettings(
        seed=scenario.seed,
        log_dirs=1 + chance.randrange(_MOST_LOG_DIRS),
        most_skew_ms=chance.randrange(_MOST_SKEW_MS) if "clock" in scenario.faults else 0,
        properties={"min.insync.replicas": "2"},
    )


def _drawn(scenario: Scenario) -> Iterator[str]:
    """Yield the workloads that this seed has."""
    chance = SeededChance(f"{scenario.seed} workloads")
    for name, workload in WORKLOADS.items():
        drawn = bool(chance.randrange(3))
        if (scenario.workloads is None or name in scenario.workloads) and (
            drawn or workload.is_always_drawn or scenario.workloads is not None
        ):
            yield name


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
