"""Which replicas leave the brokers that have too much.

A broker has a certain excess in each of several goals: so many bytes, so many replicas, so much traffic. The
replicas that leave should together be just that much of everything. So each one taken is the one, out of a
few drawn at random, that points most nearly in the direction of what is still too much; near the end all are
looked at, for one that leaves the least over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.search.compiled import compiled

if TYPE_CHECKING:
    from restow.plan.search.ground import Floats, Ground, Ints, State

_DRAWN = 32
_DRAWN_NEAR_THE_END = 256
# The end begins when so little of the first goal, in shares of an average broker, is left to be shed.
_NEAR_THE_END = 0.004
# And when so little is left, all are looked at.
_AT_THE_END = 0.0005
_NOTHING = 1e-9
# What a byte too many counts against a byte too few that leaves.
_OVERSHOOT = 3.0


@compiled
def shed(
    ground: Ground, state: State, givers: Ints, keep: Floats, first_of: Ints, held: Ints, seed: int
) -> Ints:
    """Take from each giver until it has no more than it keeps; return what was taken.

    `held` lists the movable replicas broker by broker, those of broker b from `first_of[b]` on; its order
    changes. Loads are changed, holders are not: what is taken is on its way.
    """
    np.random.seed(seed)
    goals = ground.weight.shape[1]
    taken = np.empty(len(held), np.int64)
    count = 0
    excess = np.empty(goals)
    for broker in givers:
        for goal in range(goals):
            excess[goal] = state.load[broker, goal] - keep[broker, goal]
        low, high = first_of[broker], first_of[broker + 1]
        while high > low:
            at = _choose(ground, state, broker, excess, held, low, high)
            if at < 0:
                break
            replica = held[at]
            high -= 1
            held[at], held[high] = held[high], replica
            for goal in range(goals):
                excess[goal] -= ground.weight[ground.part_of[replica], goal]
                state.load[broker, goal] -= ground.weight[ground.part_of[replica], goal]
            taken[count] = replica
            count += 1
    return taken[:count]


@compiled
def _choose(
    ground: Ground, state: State, broker: int, excess: Floats, held: Ints, low: int, high: int
) -> int:
    """The place in `held` of the best one to take, -1 if there is none or no need."""
    if excess.max() <= _NOTHING:
        return -1
    near_the_end = excess[0] < _NEAR_THE_END
    drawn = _DRAWN_NEAR_THE_END if near_the_end else _DRAWN
    everything = high - low <= drawn or 0.0 < excess[0] < _AT_THE_END
    best, best_score = -1, 0.0
    for turn in range(high - low if everything else drawn):
        at = low + turn if everything else low + np.random.randint(high - low)
        partition = ground.part_of[held[at]]
        if near_the_end:
            score = _fit(excess, ground.weight, partition)
        else:
            score = _direction(excess, ground.weight, partition)
        if score > best_score and _affordable(ground, state, broker, partition):
            best, best_score = at, score
    return best


@compiled
def _direction(excess: Floats, weight: Floats, partition: int) -> float:
    """How nearly a replica points where the excess does."""
    along, length = 0.0, 1e-300
    for goal in range(len(excess)):
        if excess[goal] > 0:
            along += excess[goal] * weight[partition, goal]
        length += weight[partition, goal] ** 2
    score: float = along / np.sqrt(length)
    return score * 0.1 if weight[partition, 0] > excess[0] else score


@compiled
def _fit(excess: Floats, weight: Floats, partition: int) -> float:
    """How much of the excess a replica takes away, and how little else."""
    useful = 0.0
    for goal in range(len(excess)):
        if excess[goal] > 0:
            useful += min(excess[goal], weight[partition, goal])
    if excess[0] > 0:
        return useful - _OVERSHOOT * max(float(weight[partition, 0] - excess[0]), 0.0)
    return useful / (float(weight[partition, 0]) + 1e-6)


@compiled
def _affordable(ground: Ground, state: State, broker: int, partition: int) -> bool:
    for goal in range(state.load.shape[1]):
        if state.load[broker, goal] - ground.weight[partition, goal] < ground.lower[broker, goal]:
            return False
    return True
