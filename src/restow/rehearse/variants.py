"""One plan in many variants: throttles, starts, faults, and seeds that draw the model's constants.

A variant is rehearsed once for every seed. Seed 0 takes the usual constants; each other seed draws every
constant by itself between its slow and its fast value, always the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.execute.predict.prediction import TimeRange
from restow.execute.progress.outcome import Ending
from restow.execute.run.options import run_options
from restow.plan.files.text import digest_of
from restow.plan.flow.constants import Constants
from restow.rehearse.faults import parse_faults
from restow.rehearse.impact import client_impact
from restow.rehearse.rehearsing import RehearsalStage, check_fits
from restow.rehearse.telling import RehearsedRun, fullest_told, limiting_told, problems_told
from restow.runtime.loop import rare_garbage_collection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.execute.run.options import RunFlags
    from restow.model import Plan, Snapshot
    from restow.plan.flow.constants import Calibration
    from restow.plan.flow.loads import ClientLoads
    from restow.rehearse.by_executor import ExecutedRun

_EXACT_MOVES, _GRAINS = 300, 300
"""Larger plans are rehearsed in at least so many grains of time: coarser than one rehearsal by itself."""


@frozen
class Variant:
    """One way to carry out a plan. `what_if` has faults with semicolons between them; empty without any."""

    throttle: str
    start_ms: int
    what_if: str = ""
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class PlanToRehearse:
    """A plan with all that is known about its cluster."""

    plan: Plan
    snapshot: Snapshot
    loads: ClientLoads
    known: Calibration
    flags: RunFlags

    def check(self, throttles: Sequence[str], what_ifs: Sequence[str]) -> None:
        """Refuse a plan that does not fit its cluster, and variants that cannot be."""
        check_fits(self.plan, self.snapshot)
        for throttle in throttles:
            run_options(throttle=throttle, **self.flags)
        for what_if in filter(None, what_ifs):
            parse_faults(what_if.split(";"), self.snapshot)
            self.stage().check_faults()

    def stage(self) -> RehearsalStage:
        """Return what all variants share."""
        return RehearsalStage(self.plan, self.snapshot, self.loads, self.known, 0)


def constants_for(known: Calibration, seed: int) -> Constants:
    """Return the constants that a seed draws: each as likely slower as faster than usual."""
    if seed == 0:
        return known.usual
    chance = np.random.default_rng(seed)
    drawn = {}
    for each in fields(Constants):
        slow, usual, fast = (getattr(preset, each.name) for preset in (known.slow, known.usual, known.fast))
        side = chance.uniform(-1.0, 1.0)
        if slow != fast:
            drawn[each.name] = usual * ((slow if side < 0 else fast) / usual) ** abs(side)
    return replace(known.usual, **drawn)


class VariantRehearsals:
    """Rehearses the variants of one plan, one after the other."""

    def __init__(self, case: PlanToRehearse) -> None:
        self._case = case
        self._stage = case.stage()
        self._digest = digest_of(case.plan)

    @rare_garbage_collection()
    def row(self, variant: Variant) -> dict[str, Any]:
        """Return what one variant does, as a row: seconds are infinite if it never ends."""
        case, constants = self._case, constants_for(self._case.known, variant.seed)
        stage = self._stage.starting(variant.start_ms, constants)
        options = run_options(throttle=variant.throttle, **case.flags)
        events = stage.events(options, constants, exact_moves=_EXACT_MOVES, fewest_grains=_GRAINS)
        told, problems = RehearsedRun.of(events, None), []
        if variant.what_if and told.seconds < inf:
            faults = parse_faults(variant.what_if.split(";"), case.snapshot)
            executed = stage.executed_with(options, faults, told)
            told, problems = RehearsedRun.of(events, executed), _fault_problems(executed)
        same = TimeRange(p10=told.seconds, p50=told.seconds, p90=told.seconds)
        problems += problems_told(told, case.snapshot, case.plan.limits.fill, same, None)
        limits = limiting_told(told.movement, told.seconds)
        known = case.loads.known and told.seconds < inf
        return {
            "cluster": case.plan.cluster_id,
            "plan": self._digest,
            "throttle": variant.throttle,
            "start_ms": variant.start_ms,
            "what_if": variant.what_if,
            "seed": variant.seed,
            "seconds": told.seconds,
            "impact": client_impact(told.movement, case.snapshot) if known else None,
            "leaders_moved": len(told.leader_changes),
            "fullest": fullest_told(case.snapshot, told.movement, case.plan.limits.fill),
            "limited_by": limits[0].what if limits else None,
            "problems": problems,
        }


def _fault_problems(run: ExecutedRun) -> list[str]:
    """Say what a fault does to a run and to its partitions."""
    found = []
    if run.outcome is None:
        found.append("it would wait forever after the fault")
    elif run.outcome.ending is not Ending.DONE:
        found.append(f"it would end {run.outcome.ending.value!r} after the fault")
    if run.cluster.least_margin is not None and run.cluster.least_margin < 0:
        found.append("some partitions would fall below min.insync.replicas")
    return found


def variants_of(
    throttles: Sequence[str], starts_ms: Sequence[int], what_ifs: Sequence[str], seeds: int
) -> list[Variant]:
    """Return all combinations; the run without a fault is always among them."""
    for name, given in (("--throttles", throttles), ("--starts", starts_ms)):
        if not given:
            raise InvalidInput(f"{name} names nothing to compare: give at least one")
    return [
        Variant(throttle=throttle, start_ms=start_ms, what_if=what_if, seed=seed)
        for what_if in dict.fromkeys(("", *what_ifs))
        for seed in range(seeds)
        for start_ms in dict.fromkeys(starts_ms)
        for throttle in dict.fromkeys(throttles)
    ]
