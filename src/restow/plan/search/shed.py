"""Choose the replicas that leave overloaded brokers.

A broker exceeds several goals at once: by so many bytes, replicas, and traffic. The replicas that leave
should add up to just that. So each one taken is the one, of a few drawn at random, whose load points most
nearly in the direction of the remaining excess; near the end more are examined, to leave the least over.
Afterwards, replicas taken are exchanged for smaller ones where those suffice.

A broker's replicas are shuffled once, and drawn as neighbours from a random start: as good as single draws,
and memory is read in order, which counts for a broker with a hundred thousand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.plan.search.compiled import begin, compiled, pick, step

if TYPE_CHECKING:
    from restow.plan.search.problem import Floats, Ints, SearchSpace, SearchState

_DRAWN = 16
_DRAWN_NEAR_THE_END = 256
# The end begins when this much of the first goal, in shares of an average broker, is left.
_NEAR_THE_END = 0.004
# When this much is left, all are examined; or at most so many average replicas of the broker, because
# examining very many again and again would take the most time.
_AT_THE_END = 0.0005
_LAST = 10.0
_NOTHING = 1e-9
# The cost of a byte too many that leaves, relative to a byte too few.
_OVERSHOOT = 3.0
_GOLDEN = 0.618033988749895
# How many exchanges to try at least, and for each replica taken.
_TRIES, _TRIES_EACH = 2_000, 8


def shed(
    space: SearchSpace, state: SearchState, givers: Ints, keep: Floats, first_of: Ints, held: Ints, seed: int
) -> Ints:
    """Take replicas from each giver until it has no more than `keep`; return those taken.

    `held` lists the movable replicas by broker, those of broker b from `first_of[b]` on. Loads are changed,
    holders are not: the replicas taken are on their way.
    """
    most = int(np.diff(first_of)[givers].max(initial=0))
    bench = Bench(np.empty(most, np.int64), np.empty((most, space.weight.shape[1] + 1)))
    taken = np.empty(len(held), np.int64)
    return taken[: _shed(space, state, givers, keep, first_of, held, bench, taken, seed)]


class Bench(NamedTuple):
    """Buffers for the replicas of one broker at a time, and their loads.

    The last column is one over the length of the load vector before it.
    """

    mine: Ints
    weight: Floats


@compiled
def _shed(
    space: SearchSpace,
    state: SearchState,
    givers: Ints,
    keep: Floats,
    first_of: Ints,
    held: Ints,
    bench: Bench,
    taken: Ints,
    seed: int,
) -> int:
    goals = space.weight.shape[1]
    count = 0
    excess = np.empty(goals)
    spare = np.empty(goals)
    for broker in givers:
        for goal in range(goals):
            excess[goal] = state.load[broker, goal] - keep[broker, goal]
            spare[goal] = state.load[broker, goal] - space.lower[broker, goal]
        many = first_of[broker + 1] - first_of[broker]
        mine, weight = bench.mine[:many], bench.weight[:many]
        _shuffle(space, held[first_of[broker] : first_of[broker + 1]], mine, weight)
        kept = _take(weight, mine, excess, spare, seed + broker)
        _exchange(weight, mine, excess, spare, kept, seed + broker)
        for goal in range(goals):
            state.load[broker, goal] = spare[goal] + space.lower[broker, goal]
        for at in range(kept, len(mine)):
            taken[count] = mine[at]
            count += 1
    return count


@compiled
def _shuffle(space: SearchSpace, held: Ints, mine: Ints, weight: Floats) -> None:
    """Shuffle by strides: each replica goes a fixed number of places after the last, modulo the length."""
    many, goals = len(held), space.weight.shape[1]
    stride, place = _stride(many), 0
    for each in held:
        mine[place] = each
        partition, length = space.part_of[each], 1e-300
        for goal in range(goals):
            one = space.weight[partition, goal]
            if goal == 0 and len(space.own):
                one += space.own[each]
            weight[place, goal] = one
            length += one * one
        weight[place, goals] = 1.0 / np.sqrt(length)
        place += stride
        if place >= many:
            place -= many


@compiled
def _stride(many: int) -> int:
    """Return about the golden section of `many`, without a common divisor."""
    stride = int(many * _GOLDEN) + 1
    while True:
        one, other = stride, many
        while other:
            one, other = other, one % other
        if one == 1:
            return stride
        stride += 1


@compiled
def _take(weight: Floats, mine: Ints, excess: Floats, spare: Floats, seed: int) -> int:
    """Move the replicas that leave to the end of `mine`, and return where they begin."""
    kept, draw = len(mine), begin(seed)
    while kept > 0 and excess.max() > _NOTHING:
        near_the_end = excess[0] < _NEAR_THE_END
        drawn = _DRAWN_NEAR_THE_END if near_the_end else _DRAWN
        everything = kept <= drawn or 0.0 < excess[0] < min(_AT_THE_END, _LAST / kept)
        best, best_score = -1, 0.0
        draw = step(draw)
        at = -1 if everything else pick(draw, kept) - 1
        for _ in range(kept if everything else drawn):
            at = at + 1 if at + 1 < kept else 0
            score = _fit(excess, weight, at) if near_the_end else _direction(excess, weight, at)
            if score > best_score and _affordable(spare, weight, at):
                best, best_score = at, score
        if best < 0:
            break
        kept -= 1
        _trade(weight, mine, best, kept)
        for goal in range(len(excess)):
            excess[goal] -= weight[kept, goal]
            spare[goal] -= weight[kept, goal]
    return kept


@compiled
def _exchange(weight: Floats, mine: Ints, excess: Floats, spare: Floats, kept: int, seed: int) -> None:
    """Exchange replicas that leave for smaller ones while no excess remains."""
    gone, draw = len(mine) - kept, begin(seed + 1)
    if gone == 0 or kept == 0:
        return
    stays = 0
    for _ in range(_TRIES + _TRIES_EACH * gone):
        draw = step(draw)
        leaves = kept + pick(draw, gone)
        stays = stays + 1 if stays + 1 < kept else 0
        saved = weight[leaves, 0] - weight[stays, 0]
        if saved <= 0.0:
            continue
        fits = True
        for goal in range(len(excess)):
            back = weight[leaves, goal] - weight[stays, goal]
            if (back > 0.0 and excess[goal] + back > 0.0) or spare[goal] + back < 0.0:
                fits = False
                break
        if fits:
            for goal in range(len(excess)):
                back = weight[leaves, goal] - weight[stays, goal]
                excess[goal] += back
                spare[goal] += back
            _trade(weight, mine, leaves, stays)


@compiled
def _trade(weight: Floats, mine: Ints, one: int, other: int) -> None:
    mine[one], mine[other] = mine[other], mine[one]
    for goal in range(weight.shape[1]):
        weight[one, goal], weight[other, goal] = weight[other, goal], weight[one, goal]


@compiled
def _direction(excess: Floats, weight: Floats, at: int) -> float:
    """Return how closely a replica's load points in the direction of the excess."""
    along = 0.0
    for goal in range(len(excess)):
        if excess[goal] > 0:
            along += excess[goal] * weight[at, goal]
    score: float = along * weight[at, len(excess)]
    return score * 0.1 if weight[at, 0] > excess[0] else score


@compiled
def _fit(excess: Floats, weight: Floats, at: int) -> float:
    """Return how much of the excess a replica takes away, and how little else."""
    useful = 0.0
    for goal in range(len(excess)):
        if excess[goal] > 0:
            useful += min(excess[goal], weight[at, goal])
    if excess[0] > 0:
        return useful - _OVERSHOOT * max(float(weight[at, 0] - excess[0]), 0.0)
    return useful / (float(weight[at, 0]) + 1e-6)


@compiled
def _affordable(spare: Floats, weight: Floats, at: int) -> bool:
    missing = False
    for goal in range(len(spare)):
        missing |= spare[goal] < weight[at, goal]
    return not missing
