"""Look at everything that has to hold before the first change, without changing anything."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.execute.run.lock import holder_of
from restow.execute.run.mark import other_at_it
from restow.execute.run.ready import readiness
from restow.execute.run.start import NotNow, check_earlier_runs
from restow.model import Check, CheckOutcome
from restow.plan.schedule.schedule import order_of
from restow.snapshot import capture
from restow.verify.evidence import none_of

if TYPE_CHECKING:
    from restow.execute.journal.runs import Runs
    from restow.execute.run.start import RunContext
    from restow.model import Plan, Snapshot, Verdict


async def examine(world: RunContext, plan: Plan) -> Verdict:
    """Return what `execute` would find before it begins. Neither the cluster nor the journals are touched."""
    runs = await world.runs()
    snapshot = await capture(world.admin, world.clock)
    verdict = await readiness(world.admin, plan, snapshot)
    elsewhere = await other_at_it(world, runs)
    own = (_nobody_at_it(world, runs, elsewhere), _earlier_runs(runs, snapshot), _limits(plan, snapshot))
    return replace(verdict, checks=(*verdict.checks, *own))


def _nobody_at_it(world: RunContext, runs: Runs, elsewhere: str | None) -> Check:
    holder = holder_of(world.disk, runs.folder)
    if holder is None and elsewhere is not None:
        return Check(
            name="no other run",
            outcome=CheckOutcome.FAILS,
            evidence=f"another machine carries out a run: {elsewhere}",
            advice="wait until it has ended",
        )
    if holder is None:
        return Check(
            name="no other run", outcome=CheckOutcome.HOLDS, evidence="nobody here carries out a run on it"
        )
    return Check(
        name="no other run",
        outcome=CheckOutcome.FAILS,
        evidence=f"{holder.user} carries out run {holder.run}, process {holder.pid} on {holder.host}",
        advice="watch it (restow watch), or wait until it has ended",
    )


def _earlier_runs(runs: Runs, snapshot: Snapshot) -> Check:
    name = "earlier runs"
    try:
        check_earlier_runs(runs, snapshot.cluster_id)
    except NotNow as error:
        return Check(name=name, outcome=CheckOutcome.FAILS, evidence=str(error))
    return Check(name=name, outcome=CheckOutcome.HOLDS, evidence="all of them were brought to their end")


def _limits(plan: Plan, snapshot: Snapshot) -> Check:
    """Whether every step gets its turn within the plan's limits, as the executor would admit them."""
    moves = [move for move in plan.moves if snapshot.partition(move.partition) is not None]
    return none_of(
        "limits",
        [f"{step.partition}: {why}" for step, why in order_of(moves, snapshot, plan.limits).stuck],
        "step",
        good="every step gets its turn within the limits of the plan",
        advice="make room, or plan with other limits (--moves-in, --moves-out, --fill)",
    )
