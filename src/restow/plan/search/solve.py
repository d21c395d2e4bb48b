"""The search from beginning to end.

    forced ─► shed ─► place ─► mend with what moves ─► mend with the rest ─► leaders

Bytes first: replicas carry some of every goal wherever they are, so only copying them changes that. Then
leadership, which costs nothing, settles the goals that only leaders have. All of it is deterministic for a
seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.plan.search.ground import Ground, State
from restow.plan.search.leaders import Lead, choose_leaders
from restow.plan.search.mend import mend
from restow.plan.search.place import in_order, place
from restow.plan.search.problem import Problem, Solution
from restow.plan.search.shed import shed
from restow.plan.search.water import drained_to, filled_to

if TYPE_CHECKING:
    from restow.plan.search.ground import Floats, Ints

# A goal belongs to replicas rather than to leaders if this share of it stays when leadership changes.
_BELONGS_TO_REPLICAS = 0.5
# Bands are aimed at a little inside: by this share of their width, so that rounding does not lead out again,
_INSIDE = 1e-4
# and for leaders, which cost nothing, by a larger one, so that the search need not end exactly at the edge.
_INSIDE_FOR_LEADERS = 0.05
_ROUNDS = 20_000
_DRAWN_OF_MOVERS = 4_000
_DRAWN_OF_ALL = 20_000
# What copying a whole broker counts against being out of band: little, but enough to prefer small replicas.
_COST = 1e-4
_LEADER_PASSES = 200
_RIGHT = 1e-12


class _Scaled(NamedTuple):
    """The problem in shares of an average broker."""

    replicas: Ground
    goals: Ints
    """Which goals belong to replicas."""
    leading: Floats
    following: Floats
    lower: Floats
    upper: Floats


def solve(problem: Problem) -> Solution:
    """The best assignment found."""
    scaled = _scale(problem)
    ground = scaled.replicas
    part_of = ground.part_of
    brokers = len(problem.rack)
    resting = ~problem.forced
    holder = np.where(resting, problem.home, -1)
    load = _sums(holder[resting], ground.weight[part_of[resting]], brokers)
    state = State(load, holder)
    forced = np.flatnonzero(problem.forced)
    movers, wanted = _what_moves(problem, ground, state, forced)
    receivers = np.flatnonzero(problem.receives)
    rng = np.random.default_rng(problem.seed)
    left = place(ground, state, in_order(movers, ground.weight[part_of[movers]], rng), receivers, wanted)
    anywhere = ground._replace(racks_wanted=np.zeros_like(ground.racks_wanted))
    homeless = place(anywhere, state, left[state.holder[left] < 0], receivers, wanted)
    if homeless.size:
        return Solution(holder=state.holder, leader=problem.leader, homeless=homeless, wrong=np.inf)
    off = _mend(problem, ground, state, movers)
    leader, leaders_off = _lead(problem, scaled, state.holder)
    return Solution(holder=state.holder, leader=leader, homeless=homeless, wrong=max(off, leaders_off))


def _scale(problem: Problem) -> _Scaled:
    counts = np.diff(problem.offsets)
    alone = (counts == 1)[:, None]
    fixed = np.where(alone, problem.leading, problem.following)
    total = (problem.leading + problem.following * (counts - 1)[:, None]).sum(axis=0)
    stays = (fixed * counts[:, None]).sum(axis=0)
    goals = np.flatnonzero(stays >= _BELONGS_TO_REPLICAS * total)
    scale = np.where(total > 0, total, 1.0) / max(int(problem.receives.sum()), 1)
    lower, upper = problem.lower / scale, problem.upper / scale
    inside = np.minimum(_INSIDE, (upper - lower) / 2)
    ground = Ground(
        weight=np.ascontiguousarray((fixed / scale)[:, goals]),
        part_of=np.repeat(np.arange(len(counts)), counts),
        offsets=problem.offsets,
        rack=problem.rack,
        racks_wanted=problem.racks_wanted,
        lower=np.ascontiguousarray((lower + inside)[:, goals]),
        upper=np.ascontiguousarray((upper - inside)[:, goals]),
        room=problem.room / scale[0],
    )
    return _Scaled(ground, goals, problem.leading / scale, problem.following / scale, lower, upper)


def _sums(holder: Ints, weight: Floats, brokers: int) -> Floats:
    columns = [np.bincount(holder, weight[:, goal], minlength=brokers) for goal in range(weight.shape[1])]
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _what_moves(problem: Problem, ground: Ground, state: State, forced: Ints) -> tuple[Ints, Floats]:
    """Everything that is to find a place, and how much each broker should then have of every goal."""
    coming = ground.weight[ground.part_of[forced]].sum(axis=0)
    movers = forced
    if problem.sheds:
        keep = drained_to(state.load, ground.lower, ground.upper, coming)
        before = state.load.sum(axis=0)
        givers = np.flatnonzero((state.load > keep + 1e-9).any(axis=1))
        givers = givers[np.argsort(-(state.load - keep)[givers].max(axis=1), kind="stable")]
        first_of, held = _by_broker(problem)
        movers = np.concatenate((forced, shed(ground, state, givers, keep, first_of, held, problem.seed)))
        coming = coming + before - state.load.sum(axis=0)
    able = problem.receives[:, None]
    return movers, filled_to(
        state.load, np.where(able, ground.lower, 0.0), np.where(able, ground.upper, 0.0), coming
    )


def _by_broker(problem: Problem) -> tuple[Ints, Ints]:
    """The replicas that may move, broker by broker, and where each broker's begin."""
    may = np.flatnonzero(problem.movable & ~problem.forced)
    held = may[np.argsort(problem.home[may], kind="stable")]
    counts = np.bincount(problem.home[may], minlength=len(problem.rack))
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64), held


def _mend(problem: Problem, ground: Ground, state: State, movers: Ints) -> float:
    off = mend(
        ground, state, problem.home, movers, problem.receives, 0.0, _ROUNDS, _DRAWN_OF_MOVERS, problem.seed
    )
    if off > _RIGHT and problem.sheds:
        anything = np.flatnonzero(problem.movable | problem.forced)
        off = mend(
            ground,
            state,
            problem.home,
            anything,
            problem.receives,
            _COST,
            _ROUNDS,
            _DRAWN_OF_ALL,
            problem.seed,
        )
    return off


def _lead(problem: Problem, scaled: _Scaled, holder: Ints) -> tuple[Ints, float]:
    """Who leads, and how far out of the bands the brokers are then."""
    brokers = len(problem.rack)
    part_of = scaled.replicas.part_of
    load = _sums(holder, scaled.following[part_of], brokers)
    extra = np.ascontiguousarray(scaled.leading - scaled.following)
    leader = problem.leader.copy()
    load += _sums(holder[leader], extra, brokers)
    width = scaled.upper - scaled.lower
    inside = np.full(load.shape[1], _INSIDE_FOR_LEADERS)
    inside[scaled.goals] = 0.0
    lead = Lead(
        load=load,
        lower=scaled.lower + width * inside,
        upper=scaled.upper - width * inside,
        leading=extra,
        offsets=problem.offsets,
        holder=holder,
        leader=leader,
        may_lead=problem.may_lead,
        may_change=problem.may_change_leader,
    )
    choose_leaders(lead, _LEADER_PASSES)
    over = np.maximum(load - scaled.upper, 0.0) + np.maximum(scaled.lower - load, 0.0)
    return leader, float((over**2).sum())
