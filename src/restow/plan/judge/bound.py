"""Compute the least that any plan must copy to reach the same bands.

The excess above a broker's band has to leave it, and the shortage below has to arrive, whatever else happens.
For every broker and goal, the bound adds up the cheapest replicas that would suffice (most of the goal for
the fewest bytes, the last one in part); a broker counts with its worst goal. Leadership is assumed to have
moved already, which can only lower the bound. Replicas that must move whatever the bands, for example from a
drained broker, count in full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.search.compiled import by_group

if TYPE_CHECKING:
    from restow.plan.request.framing import Asked
    from restow.plan.search import Problem
    from restow.plan.search.arrays import Bools, Floats, Ints

HOW = "for each broker the fewest bytes that must leave it, or come to it, to bring each goal into its band"


def least_bytes(asked: Asked) -> float:
    """Return the bytes that every plan into the bands copies at least."""
    slots, problem = asked.slots, asked.problem
    size = asked.arrays.facts.size_bytes[slots.part_of]
    choice = max(float(size[slots.for_racks].sum()), float(size[slots.for_topics].sum()))
    at_least = float(size[slots.mandatory].sum()) + choice
    if not problem.sheds or slots.dropped:
        return at_least
    return max(at_least, least_to_shed(problem, slots.mandatory))


def least_to_shed(problem: Problem, mandatory: Bools) -> float:
    """Return the bytes that have to leave brokers, or to arrive, for the bands."""
    counts = np.diff(problem.offsets)
    part_of = np.repeat(np.arange(len(counts)), counts)
    lightest = np.minimum(problem.leading, problem.following)
    carried = np.where((counts == 1)[:, None], problem.leading, lightest)
    there = problem.home >= 0
    new = float(carried[part_of[~there], 0].sum())
    gone = there & mandatory
    leaving = np.bincount(problem.home[gone], carried[part_of[gone], 0], minlength=len(problem.rack))
    resting = np.flatnonzero(there & ~mandatory)
    first_of, order = by_group(problem.home[resting], len(problem.rack))
    for broker, mine in enumerate(np.split(resting[order], first_of[1:-1])):
        weights = carried[part_of[mine]]
        excess = weights.sum(axis=0) - problem.upper[broker]
        leaving[broker] += max(
            (_cheapest(weights, goal, float(excess[goal])) for goal in np.flatnonzero(excess > 0).tolist()),
            default=0.0,
        )
    return max(new + float(leaving.sum()), _must_come(problem, carried, part_of))


def _cheapest(weights: Floats, goal: int, amount: float) -> float:
    """Return the fewest bytes of replicas that carry this amount of a goal, the last one counted in part."""
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
    """Return the bytes missing below the bands."""
    there = problem.home >= 0
    size = np.bincount(problem.home[there], carried[part_of[there], 0], minlength=len(problem.rack))
    return float(np.maximum(problem.lower[:, 0] - size, 0.0).sum())
