"""Compute the least that any plan must copy to reach the same bands.

There are two bounds, and the larger one counts. The first looks at each broker alone. The excess above its
band has to leave it, and the shortage below has to arrive, whatever else happens. For every broker and goal
it adds up the cheapest replicas that would suffice (most of the goal for the fewest bytes, the last one in
part); a broker counts with its worst goal. Leadership is assumed to have moved already, which can only lower
the bound. Replicas that must move whatever the bands, for example from a drained broker, count in full.

The second one couples the brokers: what leaves one has to fit somewhere else. It takes prices of load, which
the search finds (`search/prices.py`). At any prices, the loads of a plan that reaches the bands are worth at
most what the bands allow. So it copies no less than if each partition alone chose the cheapest brokers and
leader, copying and prices added up, less what the bands are worth. That holds for any prices, good or bad: a
mistake in the search cannot make the bound too high.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.plan.search.compiled import by_group

if TYPE_CHECKING:
    from restow.plan.request.framing import Asked
    from restow.plan.search import Problem
    from restow.plan.search.problem import Bools, Floats, Ints

HOW_ALONE = "for each broker alone, the fewest bytes that must leave it, or come to it, for its bands"
HOW_TOGETHER = (
    "for all brokers together, by prices of load: the dual of the linear program over replicas, leaders and "
    "brokers"
)
_CELLS_AT_A_TIME = 2_000_000
# What rounding may add to a sum is taken off.
_ROUNDING = 1e-9


class Bound(NamedTuple):
    """The bytes that every plan into the bands copies at least, and how that was proven."""

    least_bytes: float
    how: str


def least_bytes(asked: Asked) -> Bound:
    """Return the bound that looks at each broker alone."""
    slots, problem, arrays = asked.slots, asked.problem, asked.arrays
    size = arrays.facts.size_bytes[slots.part_of]
    # Where replicas are dropped, other ones could be: what the rest has to move depends on it.
    shrunk = np.diff(slots.offsets) < arrays.counts
    kept = ~shrunk[slots.part_of]
    same_topic = ~np.isin(arrays.topic, arrays.topic[shrunk])[slots.part_of]
    choice = max(float(size[slots.for_racks & kept].sum()), float(size[slots.for_topics & same_topic].sum()))
    at_least = float(size[slots.mandatory & kept].sum()) + choice
    if not problem.sheds or slots.dropped:
        return Bound(at_least, HOW_ALONE)
    return Bound(max(at_least, least_to_shed(problem, slots.mandatory)), HOW_ALONE)


def with_prices(asked: Asked, bound: Bound, prices: Floats) -> Bound:
    """Return the bound, or a better one that these prices prove."""
    slots = asked.slots
    if not asked.problem.sheds or slots.dropped:
        return bound
    together = least_at_prices(asked.problem, slots.mandatory, prices, keeps_racks=not asked.request.any_rack)
    return Bound(together, HOW_TOGETHER) if together > bound.least_bytes else bound


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
        cost = weights[:, 0].copy()
        if problem.own is not None:
            weights[:, 0] += problem.own[mine]
        excess = weights.sum(axis=0) - problem.upper[broker]
        leaving[broker] += max(
            (
                _cheapest(cost, weights[:, goal], float(excess[goal]))
                for goal in np.flatnonzero(excess > 0).tolist()
            ),
            default=0.0,
        )
    return max(new + float(leaving.sum()), _must_come(problem, carried, part_of))


def _cheapest(cost: Floats, weight: Floats, amount: float) -> float:
    """Return the fewest bytes of replicas that carry this amount of a goal, the last one counted in part."""
    if np.array_equal(cost, weight):
        return amount
    some = weight > 0
    cost, weight = cost[some], weight[some]
    order = np.argsort(cost / weight, kind="stable")
    carried, size = np.cumsum(weight[order]), np.cumsum(cost[order])
    full = int(np.searchsorted(carried, amount))
    if full >= len(order):
        return float(size[-1]) if len(order) else 0.0
    before, bytes_before = (carried[full - 1], size[full - 1]) if full else (0.0, 0.0)
    part = (amount - before) / weight[order[full]]
    return float(bytes_before + part * cost[order[full]])


def _must_come(problem: Problem, carried: Floats, part_of: Ints) -> float:
    """Return the bytes missing below the bands."""
    there = problem.home >= 0
    each = carried[part_of, 0] + (0.0 if problem.own is None else problem.own)
    size = np.bincount(problem.home[there], each[there], minlength=len(problem.rack))
    return float(np.maximum(problem.lower[:, 0] - size, 0.0).sum())


def least_at_prices(problem: Problem, mandatory: Bools, prices: Floats, *, keeps_racks: bool = True) -> float:
    """Return the bytes that every plan into the bands copies, as these prices prove it.

    `prices` are brokers × goals, in bytes for a unit of load: above 0 where there is too much of it.
    """
    worth = np.maximum(prices, 0.0) * problem.upper - np.maximum(-prices, 0.0) * problem.lower
    total, size = -float(worth.sum()), float(np.abs(worth).sum())
    counts = np.diff(problem.offsets)
    for count in np.unique(counts).tolist():
        some = np.flatnonzero(counts == count)
        at_a_time = max(_CELLS_AT_A_TIME // len(problem.rack), 1)
        for first in range(0, len(some), at_a_time):
            least = _least_of(problem, mandatory, prices, some[first : first + at_a_time], count, keeps_racks)
            total, size = total + float(least.sum()), size + float(np.abs(least).sum())
    return max(total - _ROUNDING * size, 0.0)


def _least_of(
    problem: Problem, mandatory: Bools, prices: Floats, some: Ints, count: int, keeps_racks: bool
) -> Floats:
    """Return what these partitions cost at least: bytes to copy, and their loads at these prices."""
    slots = problem.offsets[some][:, None] + np.arange(count)
    home, must = problem.home[slots], mandatory[slots]
    may_move = problem.movable[slots] | problem.forced[slots] | must
    rack = np.where(home >= 0, problem.rack[home], -1)
    apart = (home >= 0).all(axis=1) & (problem.racks_wanted[some] >= count) & keeps_racks
    ordered = np.sort(rack, axis=1)
    apart &= (ordered[:, 1:] != ordered[:, :-1]).all(axis=1)
    own = 0.0
    if problem.own is not None:
        own = problem.own[slots] * prices[home, 0]
    follows = problem.following[some] @ prices.T
    leads = problem.leading[some] @ prices.T
    cheapest = []
    for table in (follows, leads):
        stays = np.where((home >= 0) & ~must, np.take_along_axis(table, home, 1) + own, np.inf)
        goes = _least_elsewhere(problem, table, rack, apart) + problem.following[some, 0][:, None]
        cheapest.append(np.minimum(stays, np.where(may_move, goes, np.inf)))
    least, led = cheapest
    leader = np.arange(count) == (problem.leader[some] - problem.offsets[some])[:, None]
    stuck = ~problem.may_change_leader[some] & ~(may_move & leader).any(axis=1)
    more = np.where(stuck[:, None] & ~leader, np.inf, led - least)
    total: Floats = least.sum(axis=1) + more.min(axis=1)
    return total


def _least_elsewhere(problem: Problem, table: Floats, rack: Ints, apart: Bools) -> Floats:
    """Return the least of a row for each replica among the brokers that it may go to.

    Where every replica has to be in a rack of its own, and is, it goes to another broker of its rack or to a
    rack that has none: where a plan does otherwise, replicas can exchange their names until it is so.
    """
    order = np.argsort(problem.rack, kind="stable")
    order = order[problem.receives[order]]
    racks, starts = np.unique(problem.rack[order], return_index=True)
    in_rack = np.full((len(table), int(problem.rack.max()) + 1), np.inf)
    in_rack[:, racks] = np.minimum.reduceat(table[:, order], starts, axis=1)
    anywhere = in_rack.min(axis=1)[:, None]
    mine = np.take_along_axis(in_rack, np.maximum(rack, 0), 1)
    free = in_rack.copy()
    np.put_along_axis(free, np.maximum(rack, 0), np.inf, 1)
    near = np.minimum(mine, free.min(axis=1)[:, None])
    least: Floats = np.where(apart[:, None] & np.isfinite(near), near, anywhere)
    return least
