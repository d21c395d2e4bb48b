"""The search from start to end.

    forced ─► shed ─► place ─► mend with what moves ─► mend with the rest ─► save ─► leaders ─► try things out

Replicas first: their load goes wherever they are, so only copying changes it. Then leadership, which costs
nothing, settles the goals that depend on leaders alone. A cluster of a few hundred replicas goes from the
forced ones straight to tabu search, without the compiler. The result is deterministic for a seed. When time
is up, the best so far is the answer; forced replicas have their place by then.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.plan.search.begin import as_begun, begin_with
from restow.plan.search.compiled import COMPILES, FEW, as_if_compiled, by_group
from restow.plan.search.guided import guided, is_priced
from restow.plan.search.lead import choose, lead_of, out_of_band, table
from restow.plan.search.mend import Task, mend
from restow.plan.search.place import in_order, pin, place
from restow.plan.search.prices import Market
from restow.plan.search.problem import Problem, Progress, SearchSpace, SearchState, Solution
from restow.plan.search.rules import beyond, wrong
from restow.plan.search.scale import drained_to, filled_to, held, scale
from restow.plan.search.shed import shed
from restow.plan.search.thrift import save
from restow.plan.search.tries import improve

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
# otherwise rounds of so many tries for each moving replica look for savings, or a few where prices decided,
_SAVINGS, _TRIES_EACH, _TRIES_AFTER_PRICES = 60, 100, 25
# while a round saves this share.
_WORTH_A_TURN = 1e-3
_SLACK = 1e-9
# A broker this far out of its bands after shedding and filling, squared and in average loads: prices decide.
_ASTRAY = 0.01


def never() -> bool:
    """Never stop."""
    return False


def silent(progress: Progress) -> None:
    """Tell nobody."""


class Watch(NamedTuple):
    """Who stops the search, and who hears how far it is."""

    out_of_time: Callable[[], bool]
    tell: Callable[[Progress], None]

    def say(self, stage: str, problem: Problem, space: SearchSpace, state: SearchState) -> None:
        if self.tell is silent:
            return
        out = float(beyond(space, state.load).sum())
        self.tell(Progress(stage, _copied(problem, space, state), out))


def solve(
    problem: Problem,
    out_of_time: Callable[[], bool] = never,
    *,
    enough_bytes: float = 0.0,
    tell: Callable[[Progress], None] = silent,
    hasty: bool = False,
) -> Solution:
    """Return the best assignment found. With `enough_bytes` or fewer copied, it looks for no savings.

    In a small cluster, a `hasty` search ends soon: another method goes on from there.
    """
    tiny = hasty or len(problem.home) <= FEW
    with as_if_compiled(few=tiny):
        return _solve(problem, Watch(out_of_time, tell), enough_bytes, tiny, hasty)


def _solve(problem: Problem, watch: Watch, enough_bytes: float, tiny: bool, hasty: bool) -> Solution:
    out_of_time = watch.out_of_time
    if not COMPILES and len(problem.home) >= _LARGE:
        log.warning("planning is faster with numba: pip install 'restow[plan]'")
    scaled = scale(problem)
    space = scaled.replicas
    state, movers, homeless = _settle_forced(problem, space)
    if homeless.size:
        return Solution(holder=state.holder, leader=problem.leader, homeless=homeless, wrong=np.inf)
    if problem.begin is not None:
        movers = np.concatenate((movers, begin_with(problem, space, state)))
        if kept := as_begun(problem, scaled, state):
            return kept
    prices = None
    if not tiny:
        prices = _bring_into_bands(problem, scaled, state, movers, watch, enough_bytes)
    leader = choose(problem, scaled, state.holder, trades=not tiny)
    watch.say("leaders and small changes", problem, space, state)
    holder, leader = improve(problem, scaled, state.holder, leader, out_of_time, enough_bytes, hasty=hasty)
    wrong = out_of_band(scaled, lead_of(problem, scaled, holder, leader).load)
    return Solution(
        holder=holder,
        leader=leader,
        homeless=homeless,
        wrong=float(np.where(wrong > _SLACK, wrong, 0.0).sum()),
        finished=not out_of_time(),
        prices=prices,
    )


def _bring_into_bands(
    problem: Problem,
    scaled: Scaled,
    state: SearchState,
    movers: Ints,
    watch: Watch,
    enough_bytes: float,
) -> Floats | None:
    """Change the state, and return the prices of load, if it took any: where mending would copy too much.

    Where the placement by prices cannot be mended, the first placement may still be.
    """
    kept = scaled.replicas._replace(lower=scaled.lowest, upper=scaled.highest)
    out_of_time, prices, anew = watch.out_of_time, None, problem.begin is None
    unguided: tuple[SearchState, Ints] | None = None
    start = state.copied() if problem.sheds and anew and is_priced(problem) else None
    if problem.sheds and not out_of_time() and anew:
        movers = np.concatenate((movers, _rebalance(problem, scaled.replicas, state)))
        watch.say("first placement", problem, kept, state)
    if start and not out_of_time() and _is_astray(kept, state):
        market = Market(problem)
        at = market.refine(market.find(out_of_time), out_of_time)
        prices = market.in_bytes(at)
        watch.say("prices", problem, kept, state)
        aim, price = scaled.replicas, at if problem.importance is None else at / problem.importance
        price = np.ascontiguousarray(price[:, scaled.goals])
        if found := guided(problem, kept, aim, start, scaled.size, price, out_of_time):
            unguided = state.copied(), movers
            _become(state, found)
            movers = np.flatnonzero(state.holder != problem.home)
        watch.say("placement by prices", problem, kept, state)
    _mend(problem, kept, state, movers, watch)
    if unguided is not None and _distance(kept, state) > _SLACK and not out_of_time():
        first, movers = unguided
        _mend(problem, kept, first, movers, watch)
        if _distance(kept, first) < _distance(kept, state):
            _become(state, first)
    if anew:
        tries_each = _TRIES_EACH if prices is None else _TRIES_AFTER_PRICES
        _save(problem, kept, state, watch, enough_bytes, tries_each)
    return prices


def _become(state: SearchState, other: SearchState) -> None:
    for mine, new in zip(state, other, strict=True):
        mine[:] = new


def _distance(space: SearchSpace, state: SearchState) -> float:
    """Return how far all brokers are out of their bands, squared and in average loads."""
    return sum(wrong(state.load, space.lower, space.upper, broker) for broker in range(len(space.rack)))


def _is_astray(space: SearchSpace, state: SearchState) -> bool:
    distances = (wrong(state.load, space.lower, space.upper, broker) for broker in range(len(space.rack)))
    return max(distances) > _ASTRAY


def _copied(problem: Problem, space: SearchSpace, state: SearchState) -> float:
    away = np.flatnonzero(state.holder != problem.home)
    return float(problem.following[space.part_of[away], 0].sum())


def _settle_forced(problem: Problem, space: SearchSpace) -> tuple[SearchState, Ints, Ints]:
    """Place all forced replicas; return the state, the replicas that moved, and those that fit nowhere."""
    resting = ~problem.forced
    receivers = np.flatnonzero(problem.receives)
    forced = np.flatnonzero(problem.forced)
    holder = np.where(resting, problem.home, -1)
    load = held(space, holder)
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
    first_of, listed = _by_broker(problem)
    shedders = np.sort(shed(space, state, givers, keep, first_of, listed, problem.seed))
    wanted = _wanted(problem, space, state, shedders)
    rng = np.random.default_rng(problem.seed)
    order = in_order(shedders, space.weight[space.part_of[shedders]], rng)
    place(space, state, order, np.flatnonzero(problem.receives), wanted, problem.seed)
    return shedders


def _save(
    problem: Problem,
    space: SearchSpace,
    state: SearchState,
    watch: Watch,
    enough_bytes: float,
    tries_each: int,
) -> None:
    """Return replicas home that need not move, while that saves enough."""
    away = np.flatnonzero(state.holder != problem.home)
    copied = _copied(problem, space, state)
    least = enough_bytes * _THRIFTY
    moved = away[~problem.forced[away]]
    if not moved.size or not problem.sheds or copied <= least:
        return
    first_of, listed = _by_broker(problem)
    task = Task(np.where(problem.forced, -1, problem.home), moved, problem.receives, 0.0, 0)
    per_share = float(problem.following[:, 0].sum()) / max(float(space.weight[:, 0].sum()), 1e-300)
    for turn in range(_SAVINGS):
        if copied <= least or watch.out_of_time():
            return
        watch.say("saving", problem, space, state)
        tries = tries_each * len(moved)
        saved = per_share * save(space, state, task, moved, first_of, listed, tries, problem.seed + turn)
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


def _mend(problem: Problem, space: SearchSpace, state: SearchState, movers: Ints, watch: Watch) -> None:
    movers = movers if problem.pinned is None else movers[problem.pinned[movers] < 0]
    home = np.where(problem.forced, -1, problem.home)
    task = Task(home, movers, problem.receives, 0.0, _DRAWN_OF_MOVERS)
    if _mended(problem, space, state, task, _PROGRESS_OF_MOVERS, watch) or not problem.sheds:
        return
    everything = np.flatnonzero(problem.movable | problem.forced)
    task = Task(home, everything, problem.receives, _COST, _DRAWN_OF_ALL)
    _mended(problem, space, state, task, _PROGRESS, watch)


def _mended(
    problem: Problem,
    space: SearchSpace,
    state: SearchState,
    task: Task,
    progress: float,
    watch: Watch,
) -> bool:
    """Return whether nothing is left to do: all brokers are in band, or time is up."""
    before = np.inf
    for turn in range(_ROUNDS // _ROUNDS_AT_A_TIME):
        if watch.out_of_time():
            return True
        watch.say("mending", problem, space, state)
        off = mend(space, state, task, _ROUNDS_AT_A_TIME, problem.seed + turn)
        if off <= _RIGHT:
            return True
        if off >= before * (1 - progress):
            return False
        before = off
    return False
