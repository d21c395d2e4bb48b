"""Where a replica may go, and how far a broker is out of its bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.plan.search.compiled import compiled

if TYPE_CHECKING:
    from restow.plan.search.ground import Floats, Ground, State


@compiled
def may_go(ground: Ground, state: State, replica: int, there: int) -> bool:
    """Whether a replica may go to a broker: no second one of its partition there, and no rack fewer.

    A partition that is spread over fewer racks than it could be may stay so, but never gets worse.
    """
    rack, holder = ground.rack, state.holder
    partition = ground.part_of[replica]
    new_rack, old_rack = rack[there], rack[holder[replica]]
    comes_new, goes_last = True, True
    for other in range(ground.offsets[partition], ground.offsets[partition + 1]):
        if other == replica:
            continue
        if holder[other] == there:
            return False
        if rack[holder[other]] == new_rack:
            comes_new = False
        if rack[holder[other]] == old_rack:
            goes_last = False
    if comes_new or not goes_last or new_rack == old_rack:
        return True
    return bool(racks_of(ground, state, partition) > ground.racks_wanted[partition])


@compiled
def racks_of(ground: Ground, state: State, partition: int) -> int:
    """Over how many racks a partition is spread."""
    distinct = 0
    for replica in range(ground.offsets[partition], ground.offsets[partition + 1]):
        first = True
        for earlier in range(ground.offsets[partition], replica):
            if ground.rack[state.holder[earlier]] == ground.rack[state.holder[replica]]:
                first = False
        if first:
            distinct += 1
    return distinct


@compiled
def has_room(ground: Ground, state: State, broker: int, comes: int, goes: int) -> bool:
    """Whether a broker's disks hold one partition's replica more and another's less; -1 for none."""
    size = 0.0
    if comes >= 0:
        size += ground.weight[comes, 0]
    if goes >= 0:
        size -= ground.weight[goes, 0]
    return size <= 0.0 or state.load[broker, 0] + size <= ground.room[broker]


@compiled
def wrong(load: Floats, lower: Floats, upper: Floats, broker: int) -> float:
    """How far a broker is out of its bands: the squares of what is too much and too little, summed up."""
    total = 0.0
    for goal in range(load.shape[1]):
        value = load[broker, goal]
        if value > upper[broker, goal]:
            total += (value - upper[broker, goal]) ** 2
        elif value < lower[broker, goal]:
            total += (lower[broker, goal] - value) ** 2
    return total


@compiled
def wrong_after(
    load: Floats, lower: Floats, upper: Floats, broker: int, weight: Floats, comes: int, goes: int
) -> float:
    """The same if what one partition weighs came and what another weighs went; -1 for none."""
    total = 0.0
    for goal in range(load.shape[1]):
        value = load[broker, goal]
        if comes >= 0:
            value += weight[comes, goal]
        if goes >= 0:
            value -= weight[goes, goal]
        if value > upper[broker, goal]:
            total += (value - upper[broker, goal]) ** 2
        elif value < lower[broker, goal]:
            total += (lower[broker, goal] - value) ** 2
    return total


@compiled
def change(ground: Ground, state: State, broker: int, comes: int, goes: int, now: float) -> float:
    """By how much a broker gets more wrong, or less if that is negative, when replicas come and go."""
    after = wrong_after(state.load, ground.lower, ground.upper, broker, ground.weight, comes, goes)
    return after - now


@compiled
def transfer(ground: Ground, state: State, replica: int, there: int) -> None:
    """Let a broker have a replica of another's."""
    here = state.holder[replica]
    partition = ground.part_of[replica]
    for goal in range(state.load.shape[1]):
        state.load[here, goal] -= ground.weight[partition, goal]
        state.load[there, goal] += ground.weight[partition, goal]
    state.holder[replica] = there
