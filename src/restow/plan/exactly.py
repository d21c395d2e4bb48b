"""Ask HiGHS about a small cluster where the search and the bounds leave open what the least is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from restow.plan.judge.whole import can_be_whole, least_as_whole
from restow.plan.search.compiled import as_if_compiled
from restow.plan.search.lead import lead_of, out_of_band
from restow.plan.search.scale import scale

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.plan.search import Problem, Solution
    from restow.plan.search.problem import Ints

# A plan that copies this many times the bound is as good as proven to be optimal.
_PROVEN = 1.0001
_SLACK = 1e-9


def exactly(
    problem: Problem, solution: Solution, least_bytes: float, out_of_time: Callable[[], bool]
) -> tuple[Solution, float]:
    """Return the solution or a better one, and the bytes that are proven: `least_bytes` or more."""
    copied = _copied(problem, solution.holder)
    in_band = solution.wrong <= _SLACK
    if (in_band and copied <= least_bytes * _PROVEN) or not can_be_whole(problem) or out_of_time():
        return solution, least_bytes
    whole = least_as_whole(problem, out_of_time)
    if whole is None:
        return solution, least_bytes
    cheaper = len(whole.holder) and (not in_band or _copied(problem, whole.holder) < copied / _PROVEN)
    if cheaper and _is_in_band(problem, whole.holder, whole.leader):
        solution = replace(solution, holder=whole.holder, leader=whole.leader, wrong=0.0)
    return solution, max(least_bytes, whole.least_bytes) if solution.wrong <= _SLACK else least_bytes


def _copied(problem: Problem, holder: Ints) -> float:
    part_of = np.repeat(np.arange(len(problem.leader)), np.diff(problem.offsets))
    return float(problem.following[part_of[holder != problem.home], 0].sum())


def _is_in_band(problem: Problem, holder: Ints, leader: Ints) -> bool:
    """Return whether the loads themselves are in band, and not only to a solver's tolerance."""
    with as_if_compiled(few=True):
        scaled = scale(problem)
        return bool(out_of_band(scaled, lead_of(problem, scaled, holder, leader).load).sum() <= _SLACK)
