"""Plan a small cluster with HiGHS: a hasty search, which the solver ends or proves to be as good as any.

Where the solver gives up too, the whole search follows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from restow.plan.judge.whole import NEAR, can_be_whole, least_as_whole
from restow.plan.search import never, silent, solve
from restow.plan.search.compiled import as_if_compiled
from restow.plan.search.lead import choose, lead_of, out_of_band
from restow.plan.search.scale import scale

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.plan.judge.whole import Whole
    from restow.plan.search import Problem, Progress, Solution
    from restow.plan.search.problem import Ints

# A plan that copies this many times the bound is as good as proven to be optimal.
_PROVEN = 1.0001
_SLACK = 1e-9


def solve_exactly(
    problem: Problem,
    least_bytes: float,
    out_of_time: Callable[[], bool] = never,
    tell: Callable[[Progress], None] = silent,
) -> tuple[Solution, float]:
    """Return the best assignment found, and the bytes that are proven: `least_bytes` or more."""
    if not can_be_whole(problem):
        return solve(problem, out_of_time, enough_bytes=least_bytes, tell=tell), least_bytes
    hasty = solve(problem, out_of_time, enough_bytes=least_bytes, tell=tell, hasty=True)
    if hasty.homeless.size or _is_proven(problem, hasty, least_bytes) or out_of_time():
        return hasty, least_bytes
    start = (hasty.holder, hasty.leader) if hasty.wrong <= _SLACK else None
    enough = least_bytes * _PROVEN
    whole = least_as_whole(problem, out_of_time, start=start, enough_bytes=enough)
    best = hasty if whole is None else _better(problem, hasty, whole)
    proven = least_bytes if whole is None else max(least_bytes, whole.least_bytes)
    if not (_is_proven(problem, best, proven, NEAR) or out_of_time()):
        found = solve(problem, out_of_time, enough_bytes=proven, tell=tell)
        best = min(best, found, key=lambda each: _merit(problem, each))
    return best, proven if best.wrong <= _SLACK else least_bytes


def _is_proven(problem: Problem, solution: Solution, least_bytes: float, times: float = _PROVEN) -> bool:
    return solution.wrong <= _SLACK and _copied(problem, solution.holder) <= least_bytes * times


def _merit(problem: Problem, solution: Solution) -> tuple[float, float]:
    return max(solution.wrong - _SLACK, 0.0), _copied(problem, solution.holder)


def _better(problem: Problem, solution: Solution, whole: Whole) -> Solution:
    """Return the solution, or the solver's with as few changes of leaders as its bands allow."""
    cheaper = len(whole.holder) and (
        solution.wrong > _SLACK
        or _copied(problem, whole.holder) < _copied(problem, solution.holder) / _PROVEN
    )
    if not cheaper:
        return solution
    with as_if_compiled(few=True):
        scaled = scale(problem)
        for leader in (choose(problem, scaled, whole.holder, trades=False), whole.leader):
            load = lead_of(problem, scaled, whole.holder, leader).load
            if out_of_band(scaled, load).sum() <= _SLACK:
                return replace(solution, holder=whole.holder, leader=leader, wrong=0.0)
    return solution


def _copied(problem: Problem, holder: Ints) -> float:
    part_of = np.repeat(np.arange(len(problem.leader)), np.diff(problem.offsets))
    return float(problem.following[part_of[holder != problem.home], 0].sum())
