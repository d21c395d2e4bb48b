"""Simulated annealing, where the direct search leaves brokers out of their bands.

Replicas change brokers, two swap places, leadership changes, all at random; changes for the worse are
accepted less and less often. Small clusters have tabu search instead; for very large ones this is too slow,
and not needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.plan.search.compiled import compiled
from restow.plan.search.rules import may_go, own_at, settle

if TYPE_CHECKING:
    from restow.plan.search.leaders import Lead
    from restow.plan.search.problem import Bools, Floats, Ints, SearchSpace, SearchState

# The final cost of being out of band by an average broker's load, relative to copying its bytes. It is lower
# before, so that the search can pass through worse states.
_PENALTY = 1e4
# The extra cost of making a goal worse than at the start.
_WORSE = 10.0


class Chances(NamedTuple):
    """The allowed changes, and their costs."""

    replicas: Ints
    """Replicas that may change brokers."""
    partitions: Ints
    """Partitions whose leader may change."""
    targets: Ints
    """Brokers that may receive replicas."""
    is_target: Bools
    """By broker: whether it is in `targets`."""
    home: Ints
    size: Floats
    """The cost of copying one replica of each partition, in average brokers."""
    at_first: Floats
    """By goal: how far out of the bands all brokers were at the start."""


class Cooling(NamedTuple):
    """How many attempts to make, and which changes to accept."""

    steps: int
    penalty: float
    """The cost of being out of band by an average broker's load, relative to copying it."""
    hot: float
    """The cost of a change that is accepted now and then, at the start."""
    cold: float
    """The same at the end."""
    seed: int


class Try(NamedTuple):
    """A change to consider: the leader of a partition, or the place of one replica or of two."""

    here: int
    there: int
    """The target broker; -1 if the change is not possible."""
    partition: int
    """The partition whose leader changes; -1 if replicas move."""
    first: int
    second: int
    """The replica that comes back, or the new leader; -1 if there is none."""
    fare: float
    less: float
    """How much more of the first goal leaves `here` than a new replica would have."""
    more: float
    """How much more of it comes to `there`."""


@compiled
def anneal(space: SearchSpace, state: SearchState, lead: Lead, chances: Chances, cooling: Cooling) -> float:
    """Make so many attempts while cooling down; leave the best state found, and return its cost.

    Changes the holders and the spread of `state`, and the loads, holders and leaders of `lead`, whose holders
    are the same array as those of `state`.
    """
    np.random.seed(cooling.seed)
    out = _out_of_band(lead)
    copied = _copied(space, state, chances)
    best = _PENALTY * _cost(out, chances.at_first) + copied
    best_holder, best_leader = state.holder.copy(), lead.leader.copy()
    moved, back, after = np.empty_like(out), np.empty_like(out), np.empty_like(out)
    factor = (cooling.cold / cooling.hot) ** (1.0 / max(cooling.steps, 1))
    heat = cooling.hot
    led_only = not len(chances.replicas)
    for _ in range(cooling.steps):
        heat *= factor
        if len(chances.partitions) and (led_only or np.random.random() < 0.25):
            tried = _try_leader(lead, chances, moved)
        else:
            tried = _try_replica(space, state, lead, chances, moved, back)
        if tried.there < 0:
            continue
        _after(lead, tried, moved, out, after)
        wrong = _cost(after, chances.at_first)
        change = cooling.penalty * (wrong - _cost(out, chances.at_first)) + tried.fare
        if change > 0 and np.random.random() >= np.exp(-change / heat):
            continue
        if tried.partition >= 0:
            lead.leader[tried.partition] = tried.second
        elif not _swap(space, state, lead, tried, moved[0]):
            continue
        lead.load[tried.here] -= moved
        lead.load[tried.there] += moved
        lead.load[tried.here, 0] -= tried.less
        lead.load[tried.there, 0] += tried.more
        out[:] = after
        copied += tried.fare
        if _PENALTY * wrong + copied < best - 1e-9:
            best = _PENALTY * wrong + copied
            best_holder[:], best_leader[:] = state.holder, lead.leader
    _restore(space, state, best_holder)
    lead.leader[:] = best_leader
    return best


@compiled
def _try_leader(lead: Lead, chances: Chances, moved: Floats) -> Try:
    """Propose another leader for a random partition."""
    partition = chances.partitions[np.random.randint(len(chances.partitions))]
    first_of, end = lead.offsets[partition], lead.offsets[partition + 1]
    second = first_of + np.random.randint(end - first_of)
    here, there = lead.holder[lead.leader[partition]], lead.holder[second]
    if here == there or not lead.may_lead[there]:
        return Try(here, -1, partition, -1, second, 0.0, 0.0, 0.0)
    moved[:] = lead.leading[partition]
    return Try(here, there, partition, -1, second, 0.0, 0.0, 0.0)


@compiled
def _try_replica(
    space: SearchSpace, state: SearchState, lead: Lead, chances: Chances, moved: Floats, back: Floats
) -> Try:
    """Propose another broker for a replica, or a swap of two replicas."""
    first, second = chances.replicas[np.random.randint(len(chances.replicas))], -1
    here = state.holder[first]
    _carried(space, lead, first, moved)
    draw = np.random.random()
    if draw < 0.5:
        second = chances.replicas[np.random.randint(len(chances.replicas))]
        there = state.holder[second]
        if there == here or not _may_swap(space, chances, first, second, here, there):
            return Try(here, -1, -1, first, second, 0.0, 0.0, 0.0)
        _carried(space, lead, second, back)
        moved -= back
    else:
        there = _somewhere(chances, first, draw)
        if there < 0 or there == here:
            return Try(here, -1, -1, first, second, 0.0, 0.0, 0.0)
    fare = _fare(space, chances, first, here, there)
    if second >= 0:
        fare += _fare(space, chances, second, there, here)
    less = own_at(space, first, here) - own_at(space, second, here)
    more = own_at(space, first, there) - own_at(space, second, there)
    return Try(here, there, -1, first, second, fare, less, more)


@compiled
def _restore(space: SearchSpace, state: SearchState, holder: Ints) -> None:
    for replica in range(len(holder)):
        if state.holder[replica] != holder[replica]:
            settle(space, state, replica, holder[replica])


@compiled
def _somewhere(chances: Chances, replica: int, draw: float) -> int:
    """Return the replica's home now and then, otherwise any broker that may receive replicas."""
    if draw < 0.6:
        return int(chances.home[replica])
    return int(chances.targets[np.random.randint(len(chances.targets))])


@compiled
def _may_swap(space: SearchSpace, chances: Chances, first: int, second: int, here: int, there: int) -> bool:
    if space.part_of[first] == space.part_of[second]:
        return False
    return _welcome(chances, first, there) and _welcome(chances, second, here)


@compiled
def _welcome(chances: Chances, replica: int, there: int) -> bool:
    if chances.home[replica] == there:
        return True
    return bool(chances.is_target[there])


@compiled
def _carried(space: SearchSpace, lead: Lead, replica: int, into: Floats) -> None:
    """Write the load of a replica, including leadership if it leads."""
    partition = space.part_of[replica]
    into[:] = lead.following[partition]
    if lead.leader[partition] == replica:
        into += lead.leading[partition]


@compiled
def _fare(space: SearchSpace, chances: Chances, replica: int, here: int, there: int) -> float:
    """Return the cost of moving a replica there from here; zero where its partition has been."""
    partition = space.part_of[replica]
    fare = 0.0
    for other in range(space.offsets[partition], space.offsets[partition + 1]):
        if chances.home[other] == here:
            fare += chances.size[partition]
        if chances.home[other] == there:
            fare -= chances.size[partition]
    return fare


@compiled
def _copied(space: SearchSpace, state: SearchState, chances: Chances) -> float:
    total = 0.0
    for replica in range(len(state.holder)):
        total -= _fare(space, chances, replica, state.holder[replica], -2)
    return total


@compiled
def _beyond(lead: Lead, broker: int, goal: int, value: float) -> float:
    if value > lead.upper[broker, goal]:
        return float(value - lead.upper[broker, goal])
    if value < lead.lower[broker, goal]:
        return float(lead.lower[broker, goal] - value)
    return 0.0


@compiled
def _out_of_band(lead: Lead) -> Floats:
    """Return by goal how far brokers are out of their bands, added up."""
    out = np.zeros(lead.load.shape[1])
    for broker in range(lead.load.shape[0]):
        for goal in range(lead.load.shape[1]):
            out[goal] += _beyond(lead, broker, goal, lead.load[broker, goal])
    return out


@compiled
def _after(lead: Lead, tried: Try, moved: Floats, out: Floats, after: Floats) -> None:
    here, there = tried.here, tried.there
    for goal in range(len(out)):
        less, more = lead.load[here, goal], lead.load[there, goal]
        gone = moved[goal] + (tried.less if goal == 0 else 0.0)
        come = moved[goal] + (tried.more if goal == 0 else 0.0)
        change = _beyond(lead, here, goal, less - gone) - _beyond(lead, here, goal, less)
        change += _beyond(lead, there, goal, more + come) - _beyond(lead, there, goal, more)
        after[goal] = out[goal] + change


@compiled
def _cost(out: Floats, at_first: Floats) -> float:
    total = 0.0
    for goal in range(len(out)):
        total += out[goal] + _WORSE * max(float(out[goal] - at_first[goal]) - 1e-12, 0.0)
    return total


@compiled
def _swap(space: SearchSpace, state: SearchState, lead: Lead, tried: Try, moved: float) -> bool:
    """Swap two replicas if the rules allow it, and return whether they do.

    `moved` is what goes from here to there of the first goal, own sizes aside.
    """
    first, second, here, there = tried.first, tried.second, tried.here, tried.there
    come, back = moved + tried.more, -moved - tried.less
    if come > 0.0 and lead.load[there, 0] + come > space.room[there]:
        return False
    if back > 0.0 and lead.load[here, 0] + back > space.room[here]:
        return False
    for replica, to in ((first, there), (second, here)):
        if replica < 0:
            continue
        if lead.leader[space.part_of[replica]] == replica and not lead.may_lead[to]:
            return False
        if not may_go(space, state, replica, to):
            return False
    settle(space, state, first, there)
    if second >= 0:
        settle(space, state, second, here)
    return True
