"""Keep the part of a solution that helps most within a budget.

Changes are applied one by one, those on the worst brokers first. Each has to fit and must not make a goal
worse than at the start. So every prefix is a plan that could be executed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.errors import InvalidInput
from restow.plan.search.problem import differing

if TYPE_CHECKING:
    from restow.plan.request.framing import Asked
    from restow.plan.search import Solution
    from restow.plan.search.problem import Bools, Floats, Ints

_SLACK = 1e-9


def changed_by(asked: Asked, solution: Solution) -> Bools:
    """Return the partitions that a solution changes."""
    problem = asked.problem
    moved = np.add.reduceat(solution.holder != problem.home, problem.offsets[:-1]) > 0
    changed: Bools = moved | (solution.leader != problem.leader)
    return changed


def out_of_band(asked: Asked, load: Floats) -> Floats:
    """Return by goal how far brokers are out of their bands, in shares of an average broker, added up."""
    problem = asked.problem
    mean = asked.share.sum(axis=0) / max(int(asked.able.sum()), 1)
    mean = np.where(mean > 0, mean, 1.0)
    over = np.maximum(load - problem.upper, 0.0) + np.maximum(problem.lower - load, 0.0)
    total: Floats = (over / mean).sum(axis=0)
    return total


def load_of(asked: Asked, holder: Ints, leader: Ints) -> Floats:
    """Return brokers × goals: the load."""
    problem = asked.problem
    there = np.flatnonzero(holder >= 0)
    some_nowhere = len(there) < len(holder)
    load = np.zeros_like(problem.lower)
    counts = np.diff(problem.offsets)
    own = differing(problem, holder)
    for goal in range(load.shape[1]):
        carried = np.repeat(problem.following[:, goal], counts)
        carried[leader] = problem.leading[:, goal]
        if goal == 0 and own is not None:
            carried += own
        if some_nowhere:
            load[:, goal] = np.bincount(holder[there], carried[there], minlength=len(load))
        else:
            load[:, goal] = np.bincount(holder, carried, minlength=len(load))
    return load


def trim(asked: Asked, solution: Solution, banned: Bools) -> tuple[Ints, Ints, Bools]:
    """Return holders, leaders, and the partitions to change: those that must, and the best others."""
    problem, request = asked.problem, asked.request
    starts, sizes = problem.offsets, asked.arrays.facts.size_bytes
    changed = changed_by(asked, solution)
    must = changed & asked.must
    shrunk = np.diff(starts) < asked.arrays.counts
    holder = np.where(np.repeat(must, np.diff(starts)), solution.holder, problem.home)
    leader = np.where(must, solution.leader, problem.leader)
    copies = np.add.reduceat(solution.holder != problem.home, starts[:-1])
    spent_bytes = float((sizes * copies)[must].sum())
    spent_moves = int((asked.must | shrunk).sum())
    _check_budget(asked, spent_bytes, spent_moves)
    load = load_of(asked, holder, leader)
    at_first = np.maximum(out_of_band(asked, load), 0.0)
    now = at_first.copy()
    kept = must.copy()
    crowding = _Crowding(asked)
    pending = np.flatnonzero(changed & ~must & ~banned)
    for _ in range(3):
        left = []
        for number in _by_need(asked, load, holder, pending).tolist():
            cost = float(sizes[number] * copies[number])
            one_more = not shrunk[number]
            if request.most_moves is not None and spent_moves + one_more > request.most_moves:
                continue
            if request.most_bytes is not None and spent_bytes + cost > request.most_bytes:
                continue
            after = _load_after(asked, solution, holder, leader, load, number)
            then = out_of_band(asked, after)
            fits = (after[:, 0] <= np.maximum(load[:, 0], asked.arrays.room) + _SLACK).all()
            if not fits or then.sum() > now.sum() + _SLACK or (then > at_first + _SLACK).any():
                left.append(number)
                continue
            span = slice(int(starts[number]), int(starts[number + 1]))
            if crowding.would_grow(solution, holder, leader, number, span):
                left.append(number)
                continue
            holder[span], leader[number] = solution.holder[span], solution.leader[number]
            load, now, kept[number] = after, then, True
            spent_bytes, spent_moves = spent_bytes + cost, spent_moves + one_more
        if len(left) == len(pending):
            break
        pending = np.array(left, dtype=np.int64)
    return holder, leader, kept


class _Crowding:
    """Counts the replicas and leaders of a topic beyond what a broker should have of it."""

    def __init__(self, asked: Asked) -> None:
        problem = asked.problem
        self._topic, self._able = asked.arrays.topic, asked.able
        self._topic_of_slot = np.repeat(self._topic, np.diff(problem.offsets))
        self._limits = tuple(
            None if each is None or not each.size else each
            for each in (problem.topic_replicas, problem.topic_leaders)
        )

    def would_grow(self, solution: Solution, holder: Ints, leader: Ints, number: int, span: slice) -> bool:
        """Return whether the solution's change of a partition crowds a broker more than it is now."""
        if all(limit is None for limit in self._limits):
            return False
        topic = int(self._topic[number])
        before = self._excess(topic, holder, leader)
        then, led = holder.copy(), leader.copy()
        then[span], led[number] = solution.holder[span], solution.leader[number]
        return any(now > was for now, was in zip(self._excess(topic, then, led), before, strict=True))

    def _excess(self, topic: int, holder: Ints, leader: Ints) -> list[int]:
        held = holder[self._topic_of_slot == topic], holder[leader[self._topic == topic]]
        found = []
        for limit, brokers in zip(self._limits, held, strict=True):
            counts = np.bincount(brokers[brokers >= 0], minlength=len(self._able))[self._able]
            found.append(0 if limit is None else int(np.maximum(counts - limit[topic], 0).sum()))
        return found


def _check_budget(asked: Asked, spent_bytes: float, spent_moves: int) -> None:
    request = asked.request
    if request.most_bytes is not None and spent_bytes > request.most_bytes:
        raise InvalidInput(
            f"what has to move is {spent_bytes:,.0f} bytes, more than the {request.most_bytes:,} allowed: "
            f"allow {spent_bytes:,.0f}"
        )
    if request.most_moves is not None and spent_moves > request.most_moves:
        raise InvalidInput(
            f"{spent_moves:,} partitions have to move, more than the {request.most_moves:,} allowed: "
            f"allow {spent_moves:,}"
        )


def _by_need(asked: Asked, load: Floats, holder: Ints, pending: Ints) -> Ints:
    """Sort partitions, those on the brokers furthest out of band first."""
    problem = asked.problem
    over = np.maximum(load - problem.upper, 0.0) + np.maximum(problem.lower - load, 0.0)
    mean = asked.share.mean(axis=0)
    mean = np.where(mean > 0, mean, 1.0)
    trouble = (over / mean).sum(axis=1)
    worst = np.maximum.reduceat(np.where(holder >= 0, trouble[holder], 0.0), problem.offsets[:-1])
    return pending[np.argsort(-worst[pending], kind="stable")]


def _load_after(
    asked: Asked, solution: Solution, holder: Ints, leader: Ints, load: Floats, number: int
) -> Floats:
    problem = asked.problem
    after = load.copy()
    span = range(int(problem.offsets[number]), int(problem.offsets[number + 1]))
    own = {}
    if problem.own is not None:
        own = {int(problem.home[slot]): problem.own[slot] for slot in span if not problem.forced[slot]}
    for slot in span:
        before = problem.leading if slot == leader[number] else problem.following
        then = problem.leading if slot == solution.leader[number] else problem.following
        if holder[slot] >= 0:
            after[holder[slot]] -= before[number]
            after[holder[slot], 0] -= own.get(int(holder[slot]), 0.0)
        after[solution.holder[slot]] += then[number]
        after[solution.holder[slot], 0] += own.get(int(solution.holder[slot]), 0.0)
    return after
