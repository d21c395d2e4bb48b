"""Let prices say where replicas go, where shedding and filling one broker after another leads astray.

At the right prices most replicas stay or go to one place whole; some are divided among a few. These are
settled one by one, the largest first, so that every broker stays near the load that the parts add up to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.plan.search.compiled import COMPILES, compiled
from restow.plan.search.lead import table
from restow.plan.search.place import place
from restow.plan.search.prices import respond
from restow.plan.search.problem import SearchState
from restow.plan.search.rules import has_room, may_go, own_at, settle
from restow.plan.search.scale import held

if TYPE_CHECKING:
    from restow.plan.search.prices import Market
    from restow.plan.search.problem import Floats, Ints, Problem, SearchSpace

_VAGUE = 0.004
_PLACES = 16
# A replica that stays for more than this part of it stays.
_STAYS = 0.97
# Finding prices takes time in proportion to partitions × brokers.
_MOST_PLACES = 10_000_000


class Divided(NamedTuple):
    """Replicas that are in several places in part, or in one that is not their home."""

    replicas: Ints
    at: Ints
    """Replicas × places: the brokers."""
    part: Floats
    """Replicas × places: which part is there."""


def is_priced(problem: Problem) -> bool:
    """Return whether prices could be found in reasonable time, and are free to say where replicas go."""
    pinned = problem.pinned is not None and (problem.pinned >= 0).any()
    return COMPILES and not pinned and len(problem.leader) * len(problem.rack) <= _MOST_PLACES


def guided(problem: Problem, space: SearchSpace, market: Market, prices: Floats) -> SearchState | None:
    """Return a placement near the one that the prices suggest; None if something fits nowhere.

    It breaks no rule, but may be out of band.
    """
    divided = _divided(problem, market, prices)
    order = np.argsort(-space.weight[space.part_of[divided.replicas]].sum(axis=1), kind="stable")
    divided = Divided(divided.replicas[order], divided.at[order], divided.part[order])
    holder = np.where(problem.forced, -1, problem.home)
    holder[divided.replicas] = -1
    load = held(space, holder)
    _add_parts(space, load, divided)
    limited = len(space.topic_most) > 0
    state = SearchState(load, holder, table(problem, holder, space.part_of, limited))
    wanted = np.clip(load, space.lower, space.upper)
    left = np.flatnonzero(_settle(space, state, divided, wanted))
    rest = divided.replicas[left]
    receivers = np.flatnonzero(problem.receives)
    homeless = place(space, state, rest, receivers, wanted, problem.seed)
    homeless = homeless[state.holder[homeless] < 0]
    if problem.forced[homeless].any():
        return None
    for replica in homeless.tolist():
        _go_home(problem, space, state, replica)
    return state


def _divided(problem: Problem, market: Market, prices: Floats) -> Divided:
    rng = np.random.default_rng(problem.seed)
    replicas, at, parts = [], [], []
    for offers in market.everything():
        there = respond(offers, prices, _VAGUE).there
        first = problem.offsets[offers.partitions][:, None] + np.arange(there.shape[1])
        some = (there[:, :, 0] < _STAYS) | problem.forced[first]
        part, places = there[some], offers.at[some]
        most = min(_PLACES, part.shape[1])
        drawn = np.log(np.maximum(part, 1e-30)) + rng.gumbel(size=part.shape)
        best = np.argpartition(-drawn, most - 1, axis=1)[:, :most]
        part, places = np.take_along_axis(part, best, 1), np.take_along_axis(places, best, 1)
        if most < _PLACES:
            part = np.pad(part, ((0, 0), (0, _PLACES - most)))
            places = np.pad(places, ((0, 0), (0, _PLACES - most)))
        replicas.append(first[some])
        at.append(places)
        parts.append(part / np.maximum(part.sum(axis=1, keepdims=True), 1e-30))
    return Divided(np.concatenate(replicas), np.concatenate(at), np.concatenate(parts).astype(np.float64))


@compiled
def _add_parts(space: SearchSpace, load: Floats, divided: Divided) -> None:
    for row in range(len(divided.replicas)):
        for at in range(divided.at.shape[1]):
            _add(space, load, divided.replicas[row], divided.at[row, at], divided.part[row, at])


@compiled
def _add(space: SearchSpace, load: Floats, replica: int, broker: int, part: float) -> None:
    """Count a part of a replica on a broker; a negative part is taken away."""
    if part == 0.0:
        return
    partition = space.part_of[replica]
    for goal in range(load.shape[1]):
        load[broker, goal] += part * space.weight[partition, goal]
    load[broker, 0] += part * own_at(space, replica, broker)


@compiled
def _settle(space: SearchSpace, state: SearchState, divided: Divided, wanted: Floats) -> Ints:
    """Give each replica one of its places, and return 1 for those that may have none of them."""
    left = np.zeros(len(divided.replicas), np.int64)
    debt = 0.0
    for row in range(len(divided.replicas)):
        replica = divided.replicas[row]
        size = space.weight[space.part_of[replica], 0]
        for at in range(divided.at.shape[1]):
            broker, part = divided.at[row, at], divided.part[row, at]
            _add(space, state.load, replica, broker, -part)
            debt -= part * (0.0 if broker == space.home[replica] else size)
        best, least = -1, np.inf
        for at in range(divided.at.shape[1]):
            broker = divided.at[row, at]
            if divided.part[row, at] < 1e-3:
                continue
            more = own_at(space, replica, broker)
            if not has_room(space, state, broker, space.part_of[replica], -1, more):
                continue
            if not may_go(space, state, replica, broker):
                continue
            fare = 0.0 if broker == space.home[replica] else size
            score = (debt + fare) ** 2 - debt**2 + _harm(space, state, wanted, replica, broker, more)
            if score < least:
                best, least = broker, score
        if best < 0:
            left[row] = 1
            continue
        debt += 0.0 if best == space.home[replica] else size
        settle(space, state, replica, best)
        _add(space, state.load, replica, best, 1.0)
    return left


@compiled
def _harm(
    space: SearchSpace, state: SearchState, wanted: Floats, replica: int, broker: int, more: float
) -> float:
    """Return by how much a replica takes a broker further from what it should have."""
    total, partition = 0.0, space.part_of[replica]
    for goal in range(wanted.shape[1]):
        away = state.load[broker, goal] - wanted[broker, goal]
        weight = space.weight[partition, goal] + (more if goal == 0 else 0.0)
        total += (away + weight) ** 2 - away**2
    return total


def _go_home(problem: Problem, space: SearchSpace, state: SearchState, replica: int) -> None:
    home = int(problem.home[replica])
    settle(space, state, replica, home)
    _add(space, state.load, replica, home, 1.0)
