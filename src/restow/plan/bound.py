"""The least that any plan must copy to reach the same bands.

What lies above a broker's band has to leave it, and what is missing below has to come, whatever else happens.
For every broker and goal the cheapest replicas that would do (most of the goal for the fewest bytes, the last
one in part) are added up; a broker's share is its worst goal's. Leadership is taken to be elsewhere already,
which can only make the bound lower, so it is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from restow.plan.search import Problem
    from restow.plan.search.ground import Floats, Ints

HOW = "for each broker the fewest bytes that must leave it, or come to it, to bring each goal into its band"


def least_bytes(problem: Problem) -> float:
    """No plan that brings the brokers into the bands copies less."""
    counts = np.diff(problem.offsets)
    part_of = np.repeat(np.arange(len(counts)), counts)
    alone = (counts == 1)[:, None]
    carried = np.where(alone, problem.leading, problem.following)
    there = problem.home >= 0
    new = float(carried[part_of[~there], 0].sum())
    if not problem.sheds:
        return float(carried[part_of[problem.forced], 0].sum())
    must = np.zeros(len(problem.rack))
    held = np.flatnonzero(there)
    held = held[np.argsort(problem.home[held], kind="stable")]
    ends = np.cumsum(np.bincount(problem.home[held], minlength=len(problem.rack)))
    for broker, replicas in enumerate(np.split(held, ends[:-1])):
        mine = carried[part_of[replicas]]
        forced = problem.forced[replicas]
        gone = mine[forced].sum(axis=0)
        excess = mine.sum(axis=0) - gone - problem.upper[broker]
        rest = mine[~forced]
        must[broker] = gone[0] + max(
            (_cheapest(rest, goal, excess[goal]) for goal in range(len(excess))), default=0.0
        )
    return max(new + float(must.sum()), _must_come(problem, carried, part_of))


def _cheapest(weights: Floats, goal: int, amount: float) -> float:
    """The fewest bytes of replicas that together carry so much of a goal, the last one counted in part."""
    if amount <= 0:
        return 0.0
    if goal == 0:
        return amount
    carrying = weights[weights[:, goal] > 0]
    order = np.argsort(carrying[:, 0] / carrying[:, goal], kind="stable")
    carried = np.cumsum(carrying[order, goal])
    size = np.cumsum(carrying[order, 0])
    full = int(np.searchsorted(carried, amount))
    if full >= len(order):
        return float(size[-1]) if len(order) else 0.0
    before, bytes_before = (carried[full - 1], size[full - 1]) if full else (0.0, 0.0)
    part = (amount - before) / carrying[order[full], goal]
    return float(bytes_before + part * carrying[order[full], 0])


def _must_come(problem: Problem, carried: Floats, part_of: Ints) -> float:
    """The bytes missing below the bands."""
    there = problem.home >= 0
    size = np.bincount(problem.home[there], carried[part_of[there], 0], minlength=len(problem.rack))
    return float(np.maximum(problem.lower[:, 0] - size, 0.0).sum())
