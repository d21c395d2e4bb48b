"""One simulated run: a working cluster, faults, continuous checks, and a report."""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.runtime.chance import SeededChance
from restow.runtime.clock import SystemClock
from restow.sim.checkers import Invariants
from restow.sim.cluster import SimCluster, SimulatedClusterSettings
from restow.sim.health import unhealthy
from restow.sim.loop import run
from restow.sim.nemesis import Nemesis
from restow.sim.record import EventRecord
from restow.sim.scenario import Scenario
from restow.sim.workloads import WORKLOADS, WorkContext, Workload

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

_CHECK_EVERY_S = 0.2
_QUIET_S = 120.0
_MOST_LOG_DIRS = 3
_WARM_UP, _WARM_UP_S = ("produce", "plans", "topics", "configs", "elections", "groups"), 5.0
_MOST_SKEW_MS = 60_000
_ONE_IN = 4
"""In one of so many runs leaders write their ISRs themselves."""
_FETCH_WAIT_MS = "5000"
"""How long an idle follower's fetch waits. Kafka's 500 ms would fill an idle minute with empty fetches; new
records end the wait either way.
"""

_LEFT: list[object] = []
"""What a process that ends need not free."""

__all__ = ["Scenario", "SimulationReport", "simulate", "simulate_safely", "warm_up"]


@frozen
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


def simulate(
    scenario: Scenario, *, trace: TextIO | None = None, leave_garbage: bool = False
) -> SimulationReport:
    """Run it to its end in virtual time. `trace` gets its events and the brokers' log lines.

    `leave_garbage` is for a process that ends then: freeing the objects of a run takes a sixth of its time.
    """
    clock = SystemClock()
    began_s = clock.monotonic_s()
    simulation = _Simulation(scenario, trace)
    if leave_garbage:
        _LEFT.append(simulation)
    virtual_s = run(simulation.run(), leave_garbage=leave_garbage)
    journal = simulation.journal
    return SimulationReport(
        seed=scenario.seed,
        virtual_seconds=virtual_s,
        wall_seconds=clock.monotonic_s() - began_s,
        steps=journal.steps,
        faults=simulation.faults,
        acked=simulation.acked,
        lost=simulation.lost,
        violations=journal.violations,
        trace=journal.hash.hexdigest(),
        last_events=tuple(journal.last_events),
    )


def simulate_safely(
    scenario: Scenario, *, trace: TextIO | None = None, leave_garbage: bool = False
) -> SimulationReport:
    """Simulate, and report an exception that ended the run as a violation."""
    clock = SystemClock()
    began_s = clock.monotonic_s()
    try:
        return simulate(scenario, trace=trace, leave_garbage=leave_garbage)
    except Exception as error:  # noqa: BLE001  one bad run must not hide the others
        return SimulationReport(
            seed=scenario.seed,
            virtual_seconds=0.0,
            wall_seconds=clock.monotonic_s() - began_s,
            steps=0,
            faults=0,
            acked=0,
            lost=0,
            violations=(f"the run ended with {error!r}",),
            trace="",
            last_events=tuple(traceback.format_exception(error)),
        )


def warm_up() -> None:
    """Make a short run of everything, so that what is imported or compiled at its first use is there."""
    simulate_safely(Scenario(duration_s=_WARM_UP_S, workloads=_WARM_UP, fault_every_s=1.0))


class _Simulation:
    def __init__(self, scenario: Scenario, trace: TextIO | None) -> None:
        self._scenario = scenario
        self.journal = EventRecord(trace)
        self.faults = self.acked = self.lost = 0

    async def run(self) -> float:
        """Return the virtual seconds of the run."""
        with self.journal.listening():
            async with SimCluster(self._scenario.brokers, _settings(self._scenario)) as cluster:
                self._cluster = cluster
                cluster.network.trace = self.journal.note_frame
                await self._run(cluster)
        return asyncio.get_running_loop().time()

    async def _run(self, cluster: SimCluster) -> None:
        scenario, journal = self._scenario, self.journal
        invariants = Invariants(cluster)
        context = WorkContext(
            scenario=scenario, cluster=cluster, committed=invariants.committed, note=journal.note
        )
        workloads = [WORKLOADS[name](context) for name in _drawn(scenario)]
        journal.note(f"the workloads are {', '.join(each.name for each in workloads)}")
        for each in workloads:
            await each.start()
        watch = asyncio.create_task(self._watch(invariants, workloads))
        nemesis = Nemesis(cluster, scenario, journal.note)
        until_s = context.now_s() + scenario.duration_s
        await asyncio.gather(nemesis.harm(), *(each.run(until_s) for each in workloads))
        self.faults = nemesis.count
        journal.note("the faults are over")
        await self._settle(cluster, workloads)
        for each in workloads:
            journal.violated([what async for what in each.finish()])
            self.acked += each.acked
            self.lost += each.lost
        if watch.done():
            watch.result()
        watch.cancel()
        journal.violated(invariants.check_replicas(anew=True))

    async def _watch(self, invariants: Invariants, workloads: Sequence[Workload]) -> None:
        while True:
            self.journal.violated(invariants.check())
            for each in workloads:
                self.journal.violated(each.check())
            await asyncio.sleep(_CHECK_EVERY_S)

    async def _settle(self, cluster: SimCluster, workloads: Sequence[Workload]) -> None:
        """Wait, without further faults, until all work is done and all replicas are in sync again."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + _QUIET_S
        late = f"{_QUIET_S:g} s after the last fault"
        tasks = {each.name: asyncio.create_task(each.settle()) for each in workloads}
        await asyncio.wait(tasks.values(), timeout=_QUIET_S)
        for name, task in tasks.items():
            if task.done():
                task.result()
            else:
                task.cancel()
                self.journal.violated([f"{late}, the workload {name} is still at work"])
        while any(unhealthy(cluster)) and loop.time() < until_s:
            await asyncio.sleep(_CHECK_EVERY_S)
        self.journal.violated(f"{late}, {what}" for what in unhealthy(cluster))


def _settings(scenario: Scenario) -> SimulatedClusterSettings:
    """Draw the cluster: how many log dirs a broker has, how wrong its clock is, and who writes ISRs."""
    chance = SeededChance(f"{scenario.seed} cluster")
    return SimulatedClusterSettings(
        seed=scenario.seed,
        log_dirs=1 + chance.randrange(_MOST_LOG_DIRS),
        most_skew_ms=chance.randrange(_MOST_SKEW_MS) if "clock" in scenario.faults else 0,
        leaders_ask=SeededChance(f"{scenario.seed} ISR changes").randrange(_ONE_IN) > 0,
        properties={
            "min.insync.replicas": "2",
            "offsets.topic.num.partitions": "5",
            "transaction.state.log.num.partitions": "3",
            "replica.fetch.wait.max.ms": _FETCH_WAIT_MS,
        },
    )


def _drawn(scenario: Scenario) -> tuple[str, ...]:
    """Return the workloads of this run: the given ones, or those that the seed draws."""
    if scenario.workloads is not None:
        return scenario.workloads
    chance = SeededChance(f"{scenario.seed} workloads")
    drawn: list[str] = []
    drawable = [name for name, it in WORKLOADS.items() if it.is_drawn]
    for name in sorted(drawable, key=lambda name: (not WORKLOADS[name].is_always_drawn, name)):
        is_drawn = chance.randrange(3) or WORKLOADS[name].is_always_drawn
        if is_drawn and not set(WORKLOADS[name].excludes) & set(drawn):
            drawn.append(name)
    return tuple(drawn)
