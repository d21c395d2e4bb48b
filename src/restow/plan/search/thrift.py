"""Save bytes once all is in band: return moved replicas home, or swap them for smaller ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.plan.search.compiled import begin, compiled, pick, step
from restow.plan.search.rules import has_room, may_go, own_at, transfer, wrong_after

if TYPE_CHECKING:
    from restow.plan.search.mend import Task
    from restow.plan.search.problem import Ints, SearchSpace, SearchState

_NOTHING = 1e-19


@compiled
def save(
    space: SearchSpace,
    state: SearchState,
    task: Task,
    movers: Ints,
    first_of: Ints,
    held: Ints,
    tries: int,
    seed: int,
) -> float:
    """Try so often to return a replica home, alone or for a smaller one; return the bytes saved.

    `held` lists the movable replicas by the broker they came from, those of broker b from `first_of[b]` on. A
    broker in band stays in band.
    """
    saved, draw = 0.0, begin(seed)
    for _ in range(tries if len(movers) else 0):
        draw = step(draw)
        mover = movers[pick(draw, len(movers))]
        home, here = task.home[mover], state.holder[mover]
        if home < 0 or home == here:
            continue
        draw = step(draw)
        low, high = first_of[home], first_of[home + 1]
        other = -1
        kind = pick(draw, 4)
        draw = step(draw)
        if kind == 1:
            other = movers[pick(draw, len(movers))]
        elif kind > 1 and high > low:
            other = held[low + pick(draw, high - low)]
        if other >= 0 and (state.holder[other] != home or other == mover):
            continue
        gain = _gain(space, task, mover, other, here, home)
        if gain > 0.0 and _possible(space, state, task, mover, other, here, home):
            transfer(space, state, mover, home)
            if other >= 0:
                transfer(space, state, other, here)
            saved += gain
    return saved


@compiled
def _gain(space: SearchSpace, task: Task, mover: int, other: int, here: int, home: int) -> float:
    """Return the bytes that need not be copied any more."""
    gain = float(space.weight[space.part_of[mover], 0])
    if other >= 0 and task.home[other] == home:
        gain -= space.weight[space.part_of[other], 0]
    elif other >= 0 and task.home[other] == here:
        gain += space.weight[space.part_of[other], 0]
    return gain


@compiled
def _possible(
    space: SearchSpace, state: SearchState, task: Task, mover: int, other: int, here: int, home: int
) -> bool:
    comes, goes = space.part_of[mover], -1
    if other >= 0:
        goes = space.part_of[other]
        if goes == comes or not (task.receives[here] or task.home[other] == here):
            return False
    lower, upper, load, weight = space.lower, space.upper, state.load, space.weight
    at_home = own_at(space, mover, home) - own_at(space, other, home)
    at_here = own_at(space, other, here) - own_at(space, mover, here)
    if wrong_after(load, lower, upper, home, weight, comes, goes, at_home) > _NOTHING:
        return False
    if wrong_after(load, lower, upper, here, weight, goes, comes, at_here) > _NOTHING:
        return False
    fits = has_room(space, state, home, comes, goes, at_home)
    if not (fits and has_room(space, state, here, goes, comes, at_here)):
        return False
    return may_go(space, state, mover, home) and (other < 0 or may_go(space, state, other, here))
