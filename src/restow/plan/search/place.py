"""Place the replicas that have left: each on the broker that lacks most of its load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.search.compiled import begin, compiled, pick, step
from restow.plan.search.rules import may_go, own_at, settle

if TYPE_CHECKING:
    from restow.plan.search.problem import Floats, Ints, SearchSpace, SearchState

# This share of them, drawn at random, is placed in any order; the rest from large to small, to fill gaps.
_AT_RANDOM = 0.7
# How many receivers are examined for each replica; all of them if none of these can take it. Among so many
# replicas chance evens out with fewer.
_ASKED, _ASKED_BY_MANY, _MANY = 24, 12, 500_000


def in_order(movers: Ints, weight_of: Floats, rng: np.random.Generator) -> Ints:
    """Return the order to place them in.

    Placing all from large to small would be wrong: the emptiest brokers would fill up with large ones until
    they have enough bytes but too few replicas.
    """
    shuffled = rng.permutation(len(movers))
    first, last = np.split(shuffled, [int(len(movers) * _AT_RANDOM)])
    last = last[np.argsort(-weight_of[last].sum(axis=1), kind="stable")]
    return movers[np.concatenate((np.sort(first), last))]


@compiled
def place(
    space: SearchSpace, state: SearchState, movers: Ints, receivers: Ints, wanted: Floats, seed: int
) -> Ints:
    """Place each replica on the receiver that it brings nearest to its wanted load.

    A receiver is not filled past its band while another can take the replica. Return the replicas that fit
    nowhere; those that have a broker stay there and count there again.
    """
    left = np.empty(len(movers), np.int64)
    count = 0
    hungry = receivers.copy()
    many, draw = len(hungry), begin(seed)
    for broker in receivers:
        if _is_full(state, wanted, broker):
            many = _without(hungry, many, broker)
    asked = np.empty(_ASKED if len(movers) < _MANY else _ASKED_BY_MANY, np.int64)
    for replica in movers:
        there = -1
        if many > len(asked):
            for turn in range(len(asked)):
                draw = step(draw)
                asked[turn] = hungry[pick(draw, many)]
            there = _best_receiver(space, state, replica, asked, wanted, False)
        elif many:
            there = _best_receiver(space, state, replica, hungry[:many], wanted, False)
        if there < 0:
            there = _best_receiver(space, state, replica, receivers, wanted, True)
        if there < 0:
            left[count] = replica
            count += 1
            there = state.holder[replica]
            if there < 0:
                continue
        _take(space, state, replica, there)
        if _is_full(state, wanted, there):
            many = _without(hungry, many, there)
    return left[:count]


@compiled
def _is_full(state: SearchState, wanted: Floats, broker: int) -> bool:
    lacks = False
    for goal in range(wanted.shape[1]):
        lacks |= state.load[broker, goal] < wanted[broker, goal]
    return not lacks


@compiled
def _without(brokers: Ints, many: int, broker: int) -> int:
    """Remove a broker from the first `many`, if it is there, and return how many are left."""
    for at in range(many):
        if brokers[at] == broker:
            brokers[at] = brokers[many - 1]
            return many - 1
    return many


@compiled
def pin(space: SearchSpace, state: SearchState, movers: Ints, targets: Ints) -> Ints:
    """Place each replica on its target, which the caller has checked; return those without one."""
    left = np.empty(len(movers), np.int64)
    count = 0
    for replica in movers:
        there = targets[replica]
        if there >= 0:
            _take(space, state, replica, there)
        else:
            left[count] = replica
            count += 1
    return left[:count]


@compiled
def _take(space: SearchSpace, state: SearchState, replica: int, there: int) -> None:
    partition = space.part_of[replica]
    if there != state.holder[replica]:
        settle(space, state, replica, there)
    for goal in range(state.load.shape[1]):
        state.load[there, goal] += space.weight[partition, goal]
    state.load[there, 0] += own_at(space, replica, there)


@compiled
def _best_receiver(
    space: SearchSpace, state: SearchState, replica: int, receivers: Ints, wanted: Floats, past_the_band: bool
) -> int:
    """Return the receiver that lacks most of the replica's load, -1 if none can take it."""
    load, weight, upper, room = state.load, space.weight, space.upper, space.room
    partition = space.part_of[replica]
    size = weight[partition, 0]
    best, best_score, best_is_over = -1, np.inf, True
    for broker in receivers:
        if load[broker, 0] + size + own_at(space, replica, broker) > room[broker]:
            continue
        score, over = 0.0, False
        for goal in range(load.shape[1]):
            now, more = load[broker, goal], weight[partition, goal]
            score += (now - wanted[broker, goal]) * more
            over |= now + more > upper[broker, goal]
            if over and not past_the_band:
                break
        if over and not past_the_band:
            continue
        better = score < best_score if over == best_is_over else best_is_over
        if better and may_go(space, state, replica, broker):
            best, best_score, best_is_over = broker, score, over
    return best
