"""Rehearse with the executor itself: its own run, in virtual time, on a cluster of numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from restow.execute.progress.outcome import Ending
from restow.execute.progress.status import RunListener
from restow.execute.run.lock import ProcessIdentity
from restow.execute.run.start import RunContext, execute
from restow.model import TopicPartition
from restow.plan.flow.forecast import StepTimes
from restow.plan.flow.movement import Movement
from restow.plan.schedule.schedule import steps_of
from restow.rehearse.admin import RehearsedAdmin
from restow.rehearse.clock import NothingMoves, RehearsalClock
from restow.rehearse.cluster import RehearsedCluster
from restow.runtime.chance import SeededChance
from restow.sim.disk import SimDisk
from restow.sim.loop import run as run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.progress.status import RunEvent, RunStatus
    from restow.execute.run.options import RunOptions
    from restow.model import Plan, Snapshot
    from restow.plan.flow.constants import Constants
    from restow.plan.flow.loads import ClientLoads
    from restow.rehearse.faults import BrokerFault

_SURVEYS = 300
"""How often a rehearsed run looks at the whole cluster, if it is long."""

_A_DAY_S = 25 * 3600.0
"""How long `--hours` may keep a run waiting."""


@dataclass(slots=True, kw_only=True)
class ExecutedRun:
    """A rehearsed run of the executor."""

    movement: Movement
    cluster: RehearsedCluster
    outcome: RunOutcome | None
    """None if the run would wait forever: for steps that cannot end, or paused by its guards."""
    seconds: float
    steps: list[StepTimes] = field(default_factory=list)
    pauses: list[tuple[float, str]] = field(default_factory=list)
    """When the run paused by itself, and why."""
    throttles: list[tuple[float, int | None]] = field(default_factory=list)
    """The throttle over time."""
    most_under_replicated: int = 0

    @property
    def is_done(self) -> bool:
        return self.outcome is not None and self.outcome.ending is Ending.DONE


@dataclass(slots=True)
class RunNotes:
    """What the run has reported."""

    start_ms: int
    begun: dict[TopicPartition, list[float]] = field(default_factory=dict)
    ended: dict[TopicPartition, list[float]] = field(default_factory=dict)
    pauses: list[tuple[float, str]] = field(default_factory=list)
    throttles: list[tuple[float, int | None]] = field(default_factory=list)
    most_under_replicated: int = 0

    def event(self, each: RunEvent) -> None:
        at_s = (each.at_ms - self.start_ms) / 1000
        if each.kind in ("begun", "arrived"):
            name = TopicPartition.parse(str(each.facts["partition"]))
            (self.begun if each.kind == "begun" else self.ended).setdefault(name, []).append(at_s)
        elif each.kind == "paused":
            self.pauses.append((at_s, str(each.facts["why"])))

    def steps(self, plan: Plan) -> list[StepTimes]:
        """Return the steps in the order in which they began, with their times."""
        found: list[StepTimes] = []
        for move in plan.moves_in_order:
            begun, ended = self.begun.get(move.partition, []), self.ended.get(move.partition, [])
            steps = steps_of(move, plan.limits.extra_copies)
            for number, (step, at_s) in enumerate(zip(steps, begun, strict=False)):
                found.append(StepTimes(step, at_s, ended[number] if number < len(ended) else inf))
        return sorted(found, key=lambda each: each.begun_s)

    def status(self, now: RunStatus, at_s: float) -> None:
        self.most_under_replicated = max(self.most_under_replicated, now.under_replicated)
        if not self.throttles or self.throttles[-1][1] != now.throttle:
            self.throttles.append((at_s, now.throttle))


def run_executor(
    plan: Plan,
    snapshot: Snapshot,
    options: RunOptions,
    constants: Constants,
    loads: ClientLoads,
    *,
    start_ms: int,
    expected_s: float,
    faults: Sequence[BrokerFault] = (),
) -> ExecutedRun:
    """Run the executor on this plan. `expected_s` only decides how often it looks at the whole cluster."""
    every_s = max(options.survey_every_s, expected_s / _SURVEYS)
    options = replace(options, survey_every_s=every_s, predicts=False)

    async def main() -> ExecutedRun:
        movement = Movement(snapshot, constants, loads.starting(start_ms))
        cluster = RehearsedCluster(snapshot, movement, plan.limits.fill)
        patience_s = _A_DAY_S if options.hours else 2 * options.give_up_s
        clock = RehearsalClock(cluster, start_ms, every_s, patience_s)
        admin = RehearsedAdmin(cluster, clock, constants.request_s)
        for fault in faults:
            movement.at(fault.at_s, partial(fault.happen, cluster, constants.detect_s))
        notes = RunNotes(start_ms)
        world = RunContext(
            admin=admin,
            clock=clock,
            disk=SimDisk(SeededChance("rehearsal")),
            root="/state",
            chance=SeededChance("rehearsal"),
            process=ProcessIdentity(pid=1, host="rehearsal", user="rehearsal"),
        )
        listener = RunListener(event=notes.event, status=lambda now: notes.status(now, clock.monotonic_s()))
        try:
            outcome = await execute(world, plan, options, listener)
        except NothingMoves:
            outcome = None
        return ExecutedRun(
            movement=movement,
            cluster=cluster,
            outcome=outcome,
            seconds=clock.monotonic_s() + (constants.throttling_s if options.sets_throttles else 0.0),
            steps=notes.steps(plan),
            pauses=notes.pauses,
            throttles=notes.throttles,
            most_under_replicated=notes.most_under_replicated,
        )

    return run_in_virtual_time(main())
