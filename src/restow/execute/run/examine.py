"""Report everything that has to hold before a run begins, without changing anything."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.execute.predict.prediction import range_told
from restow.execute.run.foresight import advice, forbidding, foresee
from restow.execute.run.lock import holder_of, other_at_it
from restow.execute.run.offsets_topic import offsets_topic_check
from restow.execute.run.options import RunOptions
from restow.execute.run.start import NotNow, check_earlier_runs, readiness
from restow.plan.schedule.schedule import order_of
from restow.snapshot import capture
from restow.verify import blocking
from restow.verify.evidence import fails, holds, none_of, unknown
from restow.verify.plan_done import plan_sound

if TYPE_CHECKING:
    from restow.execute.journal.runs import Runs
    from restow.execute.run.start import RunContext
    from restow.model import Check, Plan, Snapshot, Verdict


async def examine(world: RunContext, plan: Plan, options: RunOptions | None = None) -> Verdict:
    """Return what `execute` would check before it begins. Change neither the cluster nor the journals."""
    runs = await world.runs()
    snapshot = await capture(world.admin, world.clock)
    verdict = await readiness(world.admin, plan, snapshot)
    elsewhere = await other_at_it(world, runs)
    own = (
        plan_sound(plan),
        _nobody_at_it(world, runs, elsewhere),
        _earlier_runs(runs, snapshot),
        _limits(plan, snapshot),
        *([await offsets_topic_check(world.admin, plan)] if world.group_locks is not None else []),
    )
    verdict = replace(verdict, checks=(*verdict.checks, *own))
    rehearsed = _rehearsed(world, plan, snapshot, options or RunOptions(), verdict)
    return replace(verdict, checks=(*verdict.checks, rehearsed))


def _rehearsed(
    world: RunContext, plan: Plan, snapshot: Snapshot, options: RunOptions, verdict: Verdict
) -> Check:
    """Check what the run would do, if everything else lets it begin."""
    name = "rehearsal"
    if blocking(verdict):
        return unknown(name, "not rehearsed, because the run could not begin")
    foreseen = foresee(world, plan, snapshot, options)
    if foreseen.prediction is None:
        return holds(name, "nothing is left to do")
    if problems := forbidding(foreseen, options):
        return fails(name, "; ".join(problems), advice(foreseen.objections))
    takes = f"it takes {range_told(foreseen.prediction)}"
    return holds(name, "; ".join([takes, *(f"in spite of this: {each.why}" for each in foreseen.objections)]))


def _nobody_at_it(world: RunContext, runs: Runs, elsewhere: str | None) -> Check:
    holder = holder_of(world.disk, runs.folder)
    if holder is None and elsewhere is not None:
        return fails(
            "no other run", f"somebody else carries out a run: {elsewhere}", "wait until it has ended"
        )
    if holder is None:
        return holds("no other run", "nobody here carries out a run on it")
    return fails(
        "no other run",
        f"{holder.user} carries out run {holder.run}, process {holder.pid} on {holder.host}",
        "watch it (restow watch), or wait until it has ended",
    )


def _earlier_runs(runs: Runs, snapshot: Snapshot) -> Check:
    name = "earlier runs"
    try:
        check_earlier_runs(runs, snapshot)
    except NotNow as error:
        return fails(name, str(error))
    return holds(name, "all of them were brought to their end")


def _limits(plan: Plan, snapshot: Snapshot) -> Check:
    """Check that the executor could admit every step within the plan's limits."""
    moves = [move for move in plan.moves if snapshot.partition(move.partition) is not None]
    return none_of(
        "limits",
        [f"{step.partition}: {why}" for step, why in order_of(moves, snapshot, plan.limits).stuck],
        "step",
        good="every step gets its turn within the limits of the plan",
        advice="make room, or plan with other limits (--moves-in, --moves-out, --fill)",
    )
