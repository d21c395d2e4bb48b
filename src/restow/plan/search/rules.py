"""Where a replica may go, and how far a broker is out of its bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.search.compiled import compiled

if TYPE_CHECKING:
    from restow.plan.search.problem import Floats, Ints, SearchSpace, SearchState


@compiled
def may_go(space: SearchSpace, state: SearchState, replica: int, there: int) -> bool:
    """Return whether a replica may go to a broker: no second replica of its partition, no rack fewer, and not
    the place of a leader that has to lead.

    A partition that spans fewer racks than it could may stay so, but never gets worse. A replica without a
    broker has to make it as good as possible.
    """
    if space.barred[replica] == there:
        return False
    rack, holder = space.rack, state.holder
    partition = space.part_of[replica]
    if len(space.topic_most):
        topic = space.topic[partition]
        if state.spread[topic, there] >= space.topic_most[topic]:
            return False
    here, new_rack = holder[replica], rack[there]
    comes_new, goes_last = True, here >= 0
    for other in range(space.offsets[partition], space.offsets[partition + 1]):
        if other == replica or holder[other] < 0:
            continue
        if holder[other] == there:
            return False
        if rack[holder[other]] == new_rack:
            comes_new = False
        if here >= 0 and rack[holder[other]] == rack[here]:
            goes_last = False
    if comes_new:
        return True
    if here >= 0 and (not goes_last or new_rack == rack[here]):
        return True
    without = racks_of(space, state, partition) - (1 if goes_last else 0)
    return bool(without >= space.racks_wanted[partition])


@compiled
def racks_of(space: SearchSpace, state: SearchState, partition: int) -> int:
    """Return how many racks a partition spans."""
    distinct = 0
    for replica in range(space.offsets[partition], space.offsets[partition + 1]):
        here = state.holder[replica]
        first = here >= 0
        for earlier in range(space.offsets[partition], replica):
            there = state.holder[earlier]
            if here >= 0 and there >= 0 and space.rack[there] == space.rack[here]:
                first = False
        if first:
            distinct += 1
    return distinct


@compiled
def has_room(space: SearchSpace, state: SearchState, broker: int, comes: int, goes: int, more: float) -> bool:
    """Return whether a broker has disk space for one partition's replica more and another's less.

    -1 is no partition; `more` is what their own sizes add.
    """
    size = more
    if comes >= 0:
        size += space.weight[comes, 0]
    if goes >= 0:
        size -= space.weight[goes, 0]
    return size <= 0.0 or state.load[broker, 0] + size <= space.room[broker]


@compiled
def own_at(space: SearchSpace, replica: int, broker: int) -> float:
    """Return how much more of the first goal a replica has on a broker than a new one would."""
    if len(space.own) == 0 or replica < 0:
        return 0.0
    partition = space.part_of[replica]
    for other in range(space.offsets[partition], space.offsets[partition + 1]):
        if space.home[other] == broker:
            return float(space.own[other])
    return 0.0


@compiled
def add_own(space: SearchSpace, holder: Ints, load: Floats) -> None:
    """Count replicas that have a size of their own with it."""
    if len(space.own):
        for replica in range(len(holder)):
            if holder[replica] >= 0:
                load[holder[replica], 0] += own_at(space, replica, holder[replica])


@compiled
def _off(value: float, lower: float, upper: float) -> float:
    """Return the square of what a load lacks to its band, or has too much."""
    if value > upper:
        return (value - upper) ** 2
    if value < lower:
        return (lower - value) ** 2
    return 0.0


def beyond(space: SearchSpace, load: Floats) -> Floats:
    """Return brokers × goals: what each load has too much, or lacks to its band."""
    over: Floats = np.maximum(load - space.upper, 0.0) + np.maximum(space.lower - load, 0.0)
    return over


@compiled
def wrong(load: Floats, lower: Floats, upper: Floats, broker: int) -> float:
    """Return a broker's distance from its bands: the sum of the squares of excess and shortage."""
    total = 0.0
    for goal in range(load.shape[1]):
        total += _off(load[broker, goal], lower[broker, goal], upper[broker, goal])
    return total


@compiled
def wrong_after(
    load: Floats,
    lower: Floats,
    upper: Floats,
    broker: int,
    weight: Floats,
    comes: int,
    goes: int,
    more: float = 0.0,
) -> float:
    """Return the distance if one partition's replica came and another's went; -1 for none.

    `more` is what their own sizes add to the first goal.
    """
    total = 0.0
    for goal in range(load.shape[1]):
        value = load[broker, goal] + (more if goal == 0 else 0.0)
        if comes >= 0:
            value += weight[comes, goal]
        if goes >= 0:
            value -= weight[goes, goal]
        total += _off(value, lower[broker, goal], upper[broker, goal])
    return total


@compiled
def change(
    space: SearchSpace, state: SearchState, broker: int, comes: int, goes: int, more: float, now: float
) -> float:
    """Return the change of a broker's distance from its bands when replicas come and go."""
    after = wrong_after(state.load, space.lower, space.upper, broker, space.weight, comes, goes, more)
    return after - now


@compiled
def transfer(space: SearchSpace, state: SearchState, replica: int, there: int) -> None:
    """Move a replica to another broker."""
    here = state.holder[replica]
    partition = space.part_of[replica]
    for goal in range(state.load.shape[1]):
        state.load[here, goal] -= space.weight[partition, goal]
        state.load[there, goal] += space.weight[partition, goal]
    state.load[here, 0] -= own_at(space, replica, here)
    state.load[there, 0] += own_at(space, replica, there)
    settle(space, state, replica, there)


@compiled
def settle(space: SearchSpace, state: SearchState, replica: int, there: int) -> None:
    """Record that a broker holds a replica; loads are not changed."""
    here = state.holder[replica]
    state.holder[replica] = there
    if len(space.topic_most):
        topic = space.topic[space.part_of[replica]]
        state.spread[topic, there] += 1
        if here >= 0:
            state.spread[topic, here] -= 1
