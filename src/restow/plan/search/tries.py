"""When to try things out at random, and for how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.search.anneal import Chances, anneal
from restow.plan.search.ground import State
from restow.plan.search.lead import lead_of, out_of_band, table
from restow.plan.search.scale import sums

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.plan.search.ground import Bools, Ints
    from restow.plan.search.problem import Problem
    from restow.plan.search.scale import Scaled

_SMALL = 1_000
_LARGE = 100_000
_STEPS_AT_A_TIME = 100_000
_STEPS_WHEN_SMALL = 1_000_000
_STEPS = 3_000_000
_HOT, _WARM, _COLD = 100.0, 1.0, 1e-4
_RIGHT = 1e-9
_THRIFTY = 1.001


def improve(
    problem: Problem,
    scaled: Scaled,
    holder: Ints,
    leader: Ints,
    out_of_time: Callable[[], bool],
    enough_bytes: float,
) -> tuple[Ints, Ints]:
    """What was found, or something better.

    A small cluster is tried on until it is in its bands for hardly more bytes than must be; a larger one only
    while something is out of band; one that is very large not at all, but for its leaders.
    """
    limited = any(
        limit is not None and len(limit) for limit in (problem.topic_replicas, problem.topic_leaders)
    )
    out = out_of_band(scaled, lead_of(problem, scaled, holder, leader).load).sum()
    small = len(holder) <= _SMALL
    if limited or (out <= _RIGHT and (not small or _copied(problem, holder) <= enough_bytes * _THRIFTY)):
        return holder, leader
    movable = (problem.movable | problem.forced) & (len(holder) <= _LARGE)
    if problem.pinned is not None:
        movable &= problem.pinned < 0
    led = problem.may_change_leader & (np.diff(problem.offsets) > 1)
    if not small:
        led = led & _near_trouble(problem, scaled, holder, leader)
    if not (movable.any() or led.any()):
        return holder, leader
    start = lead_of(problem, scaled, _at_home(problem, holder), problem.leader)
    at_first = np.maximum(out_of_band(scaled, start.load), 0.0)
    for turn in range((_STEPS_WHEN_SMALL if small else _STEPS) // _STEPS_AT_A_TIME):
        if out_of_time():
            break
        lead = lead_of(problem, scaled, holder.copy(), leader.copy())
        state = State(lead.load[:, :0], lead.holder, table(problem, holder, holder, False))
        chances = Chances(
            replicas=np.flatnonzero(movable),
            partitions=np.flatnonzero(led),
            targets=np.flatnonzero(problem.receives),
            is_target=problem.receives,
            home=np.where(problem.forced, -1, problem.home),
            size=scaled.size,
            room=problem.room * _per_byte(problem, scaled),
            held=sums(holder, scaled.size[:, None], scaled.replicas.part_of, len(problem.rack))[:, 0].copy(),
            at_first=at_first,
        )
        hot = _WARM if turn % 2 else _HOT
        anneal(scaled.replicas, state, lead, chances, _STEPS_AT_A_TIME, hot, _COLD, problem.seed + turn)
        holder, leader = lead.holder, lead.leader
        out = out_of_band(scaled, lead_of(problem, scaled, holder, leader).load).sum()
        if out <= _RIGHT and (not small or _copied(problem, holder) <= enough_bytes * _THRIFTY):
            break
    return holder, leader


def _at_home(problem: Problem, holder: Ints) -> Ints:
    return np.where(problem.home >= 0, problem.home, holder)


def _copied(problem: Problem, holder: Ints) -> float:
    part_of = np.repeat(np.arange(len(problem.leader)), np.diff(problem.offsets))
    return float(problem.following[part_of[holder != problem.home], 0].sum())


def _per_byte(problem: Problem, scaled: Scaled) -> float:
    total = float(problem.following[:, 0].sum())
    return float(scaled.size.sum()) / total if total > 0 else 0.0


def _near_trouble(problem: Problem, scaled: Scaled, holder: Ints, leader: Ints) -> Bools:
    """Partitions with a replica on a broker that is out of a band."""
    load = lead_of(problem, scaled, holder, leader).load
    off: Bools = np.asarray((load > scaled.upper + _RIGHT) | (load < scaled.lower - _RIGHT)).any(axis=1)
    near: Bools = np.add.reduceat(off[holder], problem.offsets[:-1]) > 0
    return near
