"""Where the replicas go that have left: each to the broker that lacks most of what it carries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.search.compiled import compiled
from restow.plan.search.rules import has_room, may_go, settle

if TYPE_CHECKING:
    from restow.plan.search.ground import Floats, Ground, Ints, State

# This share of them goes in any order; the rest from large to small, so that the small ones fill the gaps.
_AT_RANDOM = 0.7


def in_order(movers: Ints, weight_of: Floats, rng: np.random.Generator) -> Ints:
    """The order to place them in.

    All from large to small would be wrong: the emptiest brokers would be filled with large ones until they
    have their bytes but not their number.
    """
    shuffled = rng.permutation(len(movers))
    first, last = np.split(shuffled, [int(len(movers) * _AT_RANDOM)])
    last = last[np.argsort(-weight_of[last].sum(axis=1), kind="stable")]
    return movers[np.concatenate((first, last))]


@compiled
def place(ground: Ground, state: State, movers: Ints, receivers: Ints, wanted: Floats) -> Ints:
    """Place each mover on the receiver that it brings nearest to what is wanted there.

    A receiver is not filled past its band as long as another can take the replica. Returns what fits nowhere;
    if somebody holds that, it stays there, and its load is counted there again.
    """
    left = np.empty(len(movers), np.int64)
    count = 0
    for replica in movers:
        partition = ground.part_of[replica]
        there = _best_receiver(ground, state, replica, partition, receivers, wanted)
        if there < 0:
            left[count] = replica
            count += 1
            there = state.holder[replica]
            if there < 0:
                continue
        _take(ground, state, replica, there)
    return left[:count]


@compiled
def pin(ground: Ground, state: State, movers: Ints, wishes: Ints) -> Ints:
    """Place movers where each is wished to be, if it can; return those for which it is open."""
    left = np.empty(len(movers), np.int64)
    count = 0
    for replica in movers:
        there = wishes[replica]
        partition = ground.part_of[replica]
        if (
            there >= 0
            and has_room(ground, state, there, partition, -1)
            and may_go(ground, state, replica, there)
        ):
            _take(ground, state, replica, there)
        else:
            left[count] = replica
            count += 1
    return left[:count]


@compiled
def _take(ground: Ground, state: State, replica: int, there: int) -> None:
    partition = ground.part_of[replica]
    if there != state.holder[replica]:
        settle(ground, state, replica, there)
    for goal in range(state.load.shape[1]):
        state.load[there, goal] += ground.weight[partition, goal]


@compiled
def _best_receiver(
    ground: Ground, state: State, replica: int, partition: int, receivers: Ints, wanted: Floats
) -> int:
    load, weight, upper, room = state.load, ground.weight, ground.upper, ground.room
    size = weight[partition, 0]
    best, best_score, best_is_over = -1, np.inf, True
    for broker in receivers:
        if load[broker, 0] + size > room[broker]:
            continue
        score, over = 0.0, False
        for goal in range(load.shape[1]):
            score += (load[broker, goal] - wanted[broker, goal]) * weight[partition, goal]
            if load[broker, goal] + weight[partition, goal] > upper[broker, goal]:
                over = True
        better = score < best_score if over == best_is_over else best_is_over
        if better and may_go(ground, state, replica, broker):
            best, best_score, best_is_over = broker, score, over
    return best
