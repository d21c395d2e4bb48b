"""The search from start to end.

    forced ─► shed ─► place ─► mend with what moves ─► mend with the rest ─► save ─► leaders ─► try things out

Replicas first: their load goes wherever they are, so only copying changes it. Then leadership, which costs
nothing, settles the goals that depend on leaders alone. A cluster of a few hundred replicas goes from the
forced ones straight to tabu search, without the compiler. The result is deterministic for a seed. When time
is up, the best so far is the answer; forced replicas have their place by then.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from restow.plan.search.compiled import COMPILES, as_if_compiled, by_group
from restow.plan.search.lead import choose, lead_of, out_of_band, table
from restow.plan.search.mend import Task, mend
from restow.plan.search.place import in_order, pin, place
from restow.plan.search.problem import Problem, SearchSpace, SearchState, Solution
from restow.plan.search.scale import drained_to, filled_to, scale, sums
from restow.plan.search.shed import shed
from restow.plan.search.thrift import save
from restow.plan.search.tries import TINY, improve

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.plan.search.problem import Floats, Ints
    from restow.plan.search.scale import Scaled

log = logging.getLogger(__name__)

# From so many replicas on the interpreter takes longer than numba with its compiler.
_LARGE = 50_000
_ROUNDS = 20_000
_ROUNDS_AT_A_TIME = 2_000
_DRAWN_OF_MOVERS = 2_000
_DRAWN_OF_ALL = 10_000
# Replicas that move anyway are tried while a round reduces the distance by this share; the rest longer.
_PROGRESS_OF_MOVERS = 0.2
_PROGRESS = 1e-6
# The cost of copying a whole broker, relative to the distances: enough to prefer small replicas.
_COST = 5.0
_RIGHT = 1e-18
# A plan this close to the minimum of bytes is not improved further;
_THRIFTY = 1.002
# otherwise rounds of so many tries for each moving replica look for savings,
_SAVINGS, _TRIES_EACH = 60, 100
# while a round saves this share.
_WORTH_A_TURN = 1e-3
_SLACK = 1e-9


def never() -> bool:
    """Never stop."""
    return False


def solve(
    problem: Problem, out_of_time: Callable[[], bool] = never, *, enough_bytes: float = 0.0
) -> Solution:
    """Return the best assignment found. With `enough_bytes` or fewer copied, it looks for no savings."""
    with as_if_compiled(few=len(problem.home) <= TINY):
        return _solve(problem, out_of_time, enough_bytes)


def _solve(problem: Problem, out_of_time: Callable[[], bool], enough_bytes: float) -> Solution:
    if not COMPILES and len(problem.home) >= _LARGE:
        log.warning("planning is faster with numba: pip install 'restow[plan]'")
    scaled = scale(problem)
    space = scaled.replicas
    state, movers, homeless = _settle_forced(problem, space)
    if homeless.size:
        return Solution(holder=state.holder, leader=problem.leader, homeless=homeless, wrong=np.inf)
    tiny = len(problem.home) <= TINY
    if not tiny:
        _bring_into_bands(problem, scaled, state, movers, out_of_time, enough_bytes)
    leader = choose(problem, scaled, state.holder, trades=not tiny)
    holder, leader = improve(problem, scaled, state.holder, leader, out_of_time, enough_bytes)
    wrong = out_of_band(scaled, lead_of(problem, scaled, holder, leader).load)
    return Solution(
        holder=holder,
        leader=leader,
        homeless=homeless,
        wrong=float(np.where(wrong > _SLACK, wrong, 0.0).sum()),
        finished=not out_of_time(),
    )


def _bring_into_bands(
    problem: Problem,
    scaled: Scaled,
    state: SearchState,
    movers: Ints,
    out_of_time: Callable[[], bool],
    enough_bytes: float,
) -> None:
    if problem.sheds and not out_of_time():
        movers = np.concatenate((movers, _rebalance(problem, scaled.replicas, state)))
    kept = scaled.replicas._replace(lower=scaled.lowest, upper=scaled.highest)
    _mend(problem, kept, state, movers, out_of_time)
    _save(problem, kept, state, out_of_time, enough_bytes)


def _settle_forced(problem: Problem, space: SearchSpace) -> tuple[SearchState, Ints, Ints]:
    """Place all forced replicas; return the state, the replicas that moved, and those that fit nowhere."""
    brokers = len(problem.rack)
    resting = ~problem.forced
    receivers = np.flatnonzero(problem.receives)
    forced = np.flatnonzero(problem.forced)
    holder = np.where(resting, problem.home, -1)
    load = sums(holder, space.weight, space.part_of, brokers)
    limited = len(space.topic_most) > 0
    rng = np.random.default_rng(problem.seed)
    homeless = forced[:0]
    for attempt in range(3 if forced.size else 1):
        state = SearchState(load.copy(), holder.copy(), table(problem, holder, space.part_of, limited))
        if not forced.size:
            break
        rest = forced if problem.pinned is None else pin(space, state, forced, problem.pinned)
        wanted = _wanted(problem, space, state, rest)
        if attempt == 0:
            order = in_order(rest, space.weight[space.part_of[rest]], rng)
        else:
            order = rest[np.argsort(-space.weight[space.part_of[rest], 0], kind="stable")]
        rules = space if attempt < 2 else space._replace(topic_most=space.topic_most[:0])
        left = place(rules, state, order, receivers, wanted, problem.seed)
        anyhow = space._replace(topic_most=space.topic_most[:0])
        homeless = place(anyhow, state, left, receivers, wanted, problem.seed)
        if limited:
            state = state._replace(spread=table(problem, state.holder, space.part_of, limited))
        if not homeless.size:
            break
    return state, forced, homeless


def _wanted(problem: Problem, space: SearchSpace, state: SearchState, movers: Ints) -> Floats:
    """Return the wanted load of each broker once these replicas have arrived."""
    coming = space.weight[space.part_of[movers]].sum(axis=0)
    able = problem.receives[:, None]
    return filled_to(state.load, np.where(able, space.lower, 0.0), np.where(able, space.upper, 0.0), coming)


def _rebalance(problem: Problem, space: SearchSpace, state: SearchState) -> Ints:
    """Move replicas from overloaded to underloaded brokers; return those that moved."""
    keep = drained_to(state.load, space.lower, space.upper, np.zeros(state.load.shape[1]))
    givers = np.flatnonzero((state.load > keep + 1e-9).any(axis=1))
    givers = givers[np.argsort(-(state.load - keep)[givers].max(axis=1), kind="stable")]
    first_of, held = _by_broker(problem)
    shedders = np.sort(shed(space, state, givers, keep, first_of, held, problem.seed))
    wanted = _wanted(problem, space, state, shedders)
    rng = np.random.default_rng(problem.seed)
    order = in_order(shedders, space.weight[space.part_of[shedders]], rng)
    place(space, state, order, np.flatnonzero(problem.receives), wanted, problem.seed)
    return shedders


def _save(
    problem: Problem,
    space: SearchSpace,
    state: SearchState,
    out_of_time: Callable[[], bool],
    enough_bytes: float,
) -> None:
    """Return replicas home that need not move, while that saves enough."""
    away = np.flatnonzero(state.holder != problem.home)
    copied = float(problem.following[space.part_of[away], 0].sum())
    least = enough_bytes * _THRIFTY
    moved = away[~problem.forced[away]]
    if not moved.size or not problem.sheds or copied <= least:
        return
    first_of, held = _by_broker(problem)
    task = Task(np.where(problem.forced, -1, problem.home), moved, problem.receives, 0.0, 0)
    per_share = float(problem.following[:, 0].sum()) / max(float(space.weight[:, 0].sum()), 1e-300)
    for turn in range(_SAVINGS):
        if copied <= least or out_of_time():
            return
        tries = _TRIES_EACH * len(moved)
        saved = per_share * save(space, state, task, moved, first_of, held, tries, problem.seed + turn)
        copied -= saved
        if saved < copied * _WORTH_A_TURN:
            return
        moved = np.flatnonzero((state.holder != problem.home) & ~problem.forced)


def _by_broker(problem: Problem) -> tuple[Ints, Ints]:
    """Return the movable replicas by broker, and where each broker's begin."""
    movable = problem.movable & ~problem.forced
    if movable.all():
        return by_group(problem.home, len(problem.rack))
    may = np.flatnonzero(movable)
    first_of, order = by_group(problem.home[may], len(problem.rack))
    return first_of, may[order]


def _mend(
    problem: Problem, space: SearchSpace, state: SearchState, movers: Ints, out_of_time: Callable[[], bool]
) -> None:
    movers = movers if problem.pinned is None else movers[problem.pinned[movers] < 0]
    home = np.where(problem.forced, -1, problem.home)
    task = Task(home, movers, problem.receives, 0.0, _DRAWN_OF_MOVERS)
    if _mended(problem, space, state, task, _PROGRESS_OF_MOVERS, out_of_time) or not problem.sheds:
        return
    everything = np.flatnonzero(problem.movable | problem.forced)
    task = Task(home, everything, problem.receives, _COST, _DRAWN_OF_ALL)
    _mended(problem, space, state, task, _PROGRESS, out_of_time)


def _mended(
    problem: Problem,
    space: SearchSpace,
    state: SearchState,
    task: Task,
    progress: float,
    out_of_time: Callable[[], bool],
) -> bool:
    """Return whether nothing is left to do: all brokers are in band, or time is up."""
    before = np.inf
    for turn in range(_ROUNDS // _ROUNDS_AT_A_TIME):
        if out_of_time():
            return True
        off = mend(space, state, task, _ROUNDS_AT_A_TIME, problem.seed + turn)
        if off <= _RIGHT:
            return True
        if off >= before * (1 - progress):
            return False
        before = off
    return False
