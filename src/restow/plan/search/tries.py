"""Decide when to try changes out, by tabu search or simulated annealing, and for how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.search.anneal import Chances, Cooling, anneal
from restow.plan.search.compiled import COMPILES, FEW
from restow.plan.search.lead import lead_of, out_of_band, table
from restow.plan.search.problem import SearchState
from restow.plan.search.tabu import Effort, Tabu

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.plan.search.problem import Bools, Floats, Ints, Problem
    from restow.plan.search.scale import Scaled

_SMALL = 1_000
_LARGE = 100_000
_STEPS_AT_A_TIME = 100_000
_TURNS = 30
_PENALTIES = (3.0, 30.0, 10.0, 100.0, 1000.0)
# With many replicas a change is small, and so is its cost.
_COLD = 1e-3
_RIGHT = 1e-9
_THRIFTY = 1.0001
# A small cluster is searched so often, from the start and from the best placement in turn, with at most so
# many steps, and so many without an improvement.
_TURNS_WHEN_SMALL, _STEPS = 4, 1_000
_PATIENCE, _MOST_PATIENCE = 60, 250


def improve(
    problem: Problem,
    scaled: Scaled,
    holder: Ints,
    leader: Ints,
    out_of_time: Callable[[], bool],
    enough_bytes: float,
    *,
    hasty: bool = False,
) -> tuple[Ints, Ints]:
    """Return the given solution, or a better one. A `hasty` search is a short tabu search and no more.

    A small cluster is searched until it is in band at hardly more bytes than the minimum. Then, and in larger
    ones at once, simulated annealing goes on while a broker is out of band. At first only leaders change,
    which copies nothing: for half of the time. In a very large one nothing else changes.
    """
    if len(holder) <= _SMALL:
        holder, leader = _improve_small(problem, scaled, holder, leader, out_of_time, enough_bytes, hasty)
        if hasty or len(holder) <= FEW or not COMPILES:
            return holder, leader
    limited = any(
        limit is not None and len(limit) for limit in (problem.topic_replicas, problem.topic_leaders)
    )
    out = out_of_band(scaled, lead_of(problem, scaled, holder, leader).load).sum()
    if limited or out <= _RIGHT:
        return holder, leader
    movable = (problem.movable | problem.forced) & (len(holder) <= _LARGE)
    if problem.pinned is not None:
        movable &= problem.pinned < 0
    led = problem.may_change_leader & (np.diff(problem.offsets) > 1)
    led = led & _near_trouble(problem, scaled, holder, leader)
    if not (movable.any() or led.any()):
        return holder, leader
    space = scaled.replicas._replace(racks_wanted=_racks_kept(problem))
    at_first = _at_first(problem, scaled, holder)
    best = holder, leader
    for turn in range(_TURNS):
        if out_of_time():
            break
        lead = lead_of(problem, scaled, holder.copy(), leader.copy())
        state = SearchState(lead.load[:, :0], lead.holder, table(problem, holder, holder, False))
        may_copy = turn >= _TURNS // 2 or not led.any()
        chances = Chances(
            replicas=np.flatnonzero(movable & may_copy),
            partitions=np.flatnonzero(led),
            targets=np.flatnonzero(problem.receives),
            is_target=problem.receives,
            home=np.where(problem.forced, -1, problem.home),
            size=scaled.size,
            at_first=at_first,
        )
        anneal(space, state, lead, chances, _cooling(problem, scaled, turn))
        holder, leader = _at_home_where_possible(problem, lead.holder, lead.leader)
        found = out_of_band(scaled, lead_of(problem, scaled, holder, leader).load).sum()
        if found < out:
            out, best = found, (holder, leader)
        if out <= _RIGHT:
            break
    return best


def _improve_small(
    problem: Problem,
    scaled: Scaled,
    holder: Ints,
    leader: Ints,
    out_of_time: Callable[[], bool],
    enough_bytes: float,
    hasty: bool,
) -> tuple[Ints, Ints]:
    enough = enough_bytes * _THRIFTY * _per_byte(problem, scaled)
    tabu = Tabu(problem, scaled, _racks_kept(problem), _at_first(problem, scaled, holder))
    patience = _PATIENCE if hasty else min(_PATIENCE + len(holder), _MOST_PATIENCE)
    effort = Effort(steps=_STEPS, patience=patience, enough=enough, out_of_time=out_of_time)
    start = best = (holder, leader)
    for turn in range(1 if hasty else _TURNS_WHEN_SMALL):
        if out_of_time() or tabu.score(*best) <= enough:
            break
        found = tabu.search(*(start if turn % 2 else best), effort, problem.seed + turn)
        best = min(best, found, key=lambda each: tabu.score(*each))
    return _at_home_where_possible(problem, *best)


def _at_first(problem: Problem, scaled: Scaled, holder: Ints) -> Floats:
    """Return by goal how far brokers were out of their bands at the start."""
    start = lead_of(problem, scaled, _at_home(problem, holder), problem.leader)
    first: Floats = np.maximum(out_of_band(scaled, start.load), 0.0)
    return first


def _cooling(problem: Problem, scaled: Scaled, turn: int) -> Cooling:
    penalty, seed = _PENALTIES[turn % len(_PENALTIES)], problem.seed + turn
    hot = penalty * float(scaled.extra.mean(axis=0).max())
    return Cooling(_STEPS_AT_A_TIME, penalty, hot, max(hot * _COLD, 1e-12), seed)


def _racks_kept(problem: Problem) -> Ints:
    """Return how many racks each partition must span: as before, or as wanted if it has to move."""
    starts = problem.offsets[:-1]
    part_of = np.repeat(np.arange(len(starts)), np.diff(problem.offsets))
    racks = int(problem.rack.max()) + 1
    there = problem.home >= 0
    pairs = np.unique(part_of[there] * racks + problem.rack[problem.home[there]])
    before = np.bincount(pairs // racks, minlength=len(starts))
    must = np.add.reduceat(problem.forced, starts) > 0
    return np.where(must, problem.racks_wanted, np.minimum(problem.racks_wanted, before))


def _at_home_where_possible(problem: Problem, holder: Ints, leader: Ints) -> tuple[Ints, Ints]:
    """Return equivalent places where no replica moves to a broker that another of its partition leaves."""
    home = np.where(problem.forced, -1, problem.home)
    moved = np.flatnonzero(np.add.reduceat(holder != home, problem.offsets[:-1]) > 1)
    for partition in moved.tolist():
        slots = range(int(problem.offsets[partition]), int(problem.offsets[partition + 1]))
        for slot in slots:
            if home[slot] < 0 or holder[slot] == home[slot]:
                continue
            for other in slots:
                if holder[other] == home[slot]:
                    holder[slot], holder[other] = holder[other], holder[slot]
                    if leader[partition] in (slot, other):
                        leader[partition] = slot + other - leader[partition]
                    break
    return holder, leader


def _at_home(problem: Problem, holder: Ints) -> Ints:
    return np.where(problem.home >= 0, problem.home, holder)


def _per_byte(problem: Problem, scaled: Scaled) -> float:
    total = float(problem.following[:, 0].sum())
    return float(scaled.size.sum()) / total if total > 0 else 0.0


def _near_trouble(problem: Problem, scaled: Scaled, holder: Ints, leader: Ints) -> Bools:
    """Return partitions with a replica on a broker that is out of a band."""
    load = lead_of(problem, scaled, holder, leader).load
    outside = np.maximum(load - scaled.upper, scaled.lower - load) > _RIGHT
    off: Bools = np.any(outside, axis=1)
    near: Bools = np.add.reduceat(off[holder], problem.offsets[:-1]) > 0
    return near
