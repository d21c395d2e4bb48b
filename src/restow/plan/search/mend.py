"""Bringing brokers into their bands that are still a little out of them.

First with what moves anyway: it may go somewhere else, or two may change places, and no byte more is copied.
Then, if that does not do it, with what did not move so far, or by leaving where it is something that did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.search.compiled import compiled
from restow.plan.search.rules import change, has_room, may_go, transfer, wrong

if TYPE_CHECKING:
    from restow.plan.search.ground import Bools, Floats, Ground, Ints, State

_NOTHING = 1e-19
# A change must be worth this share of what is wrong with the broker that it is made for.
_WORTH = 1e-3


@compiled
def mend(
    ground: Ground,
    state: State,
    home: Ints,
    candidates: Ints,
    receives: Bools,
    cost: float,
    rounds: int,
    drawn: int,
    seed: int,
) -> float:
    """Change the places of candidates as long as that helps the worst broker; return what is still wrong.

    `cost` is what copying an average broker's bytes counts against being wrong; what is brought back to its
    `home` saves as much. Of many candidates so many are `drawn` at random for each change.
    """
    np.random.seed(seed)
    brokers = state.load.shape[0]
    off = np.empty(brokers)
    for broker in range(brokers):
        off[broker] = wrong(state.load, ground.lower, ground.upper, broker)
    stuck = np.zeros(brokers, np.bool_)
    for _ in range(rounds if len(candidates) else 0):
        broker = _worst(off, stuck)
        if broker < 0:
            break
        replica, there, gain = _best_move(ground, state, home, candidates, receives, off, broker, cost, drawn)
        comes, goes, better = _best_exchange(
            ground, state, home, candidates, receives, off, broker, cost, drawn, gain
        )
        if better < gain:
            other = state.holder[comes]
            transfer(ground, state, comes, broker)
            transfer(ground, state, goes, other)
        elif replica >= 0:
            other = state.holder[replica] if there == broker else there
            transfer(ground, state, replica, there)
        else:
            stuck[broker] = True
            continue
        for touched in (broker, other):
            off[touched] = wrong(state.load, ground.lower, ground.upper, touched)
            stuck[touched] = False
    return float(off.sum())


@compiled
def _worst(off: Floats, stuck: Bools) -> int:
    """The broker most out of its bands for which not everything has been tried, or -1."""
    found, most = -1, _NOTHING
    for broker in range(len(off)):
        if not stuck[broker] and off[broker] > most:
            found, most = broker, off[broker]
    return found


@compiled
def _fare(ground: Ground, home: Ints, replica: int, here: int, there: int, cost: float) -> float:
    """What it costs to have a replica there instead of here; negative if it need not be copied any more."""
    if here == home[replica]:
        return cost * float(ground.weight[ground.part_of[replica], 0])
    if there == home[replica]:
        return -cost * float(ground.weight[ground.part_of[replica], 0])
    return 0.0


@compiled
def _best_move(
    ground: Ground,
    state: State,
    home: Ints,
    candidates: Ints,
    receives: Bools,
    off: Floats,
    broker: int,
    cost: float,
    drawn: int,
) -> tuple[int, int, float]:
    """The replica whose coming to this broker or going from it helps most, where it goes, and by how much."""
    best, best_to, best_gain = -1, -1, -off[broker] * _WORTH
    many = len(candidates)
    for turn in range(min(many, drawn)):
        replica = candidates[turn if many <= drawn else np.random.randint(many)]
        partition, here = ground.part_of[replica], state.holder[replica]
        if here == broker:
            relief = change(ground, state, broker, -1, partition, off[broker])
            if relief >= best_gain:
                continue
            for there in range(len(off)):
                if there == broker or not (receives[there] or home[replica] == there):
                    continue
                gain = relief + change(ground, state, there, partition, -1, off[there])
                gain += _fare(ground, home, replica, here, there, cost)
                if (
                    gain < best_gain
                    and has_room(ground, state, there, partition, -1)
                    and may_go(ground, state, replica, there)
                ):
                    best, best_to, best_gain = replica, there, gain
        elif receives[broker] or home[replica] == broker:
            gain = change(ground, state, broker, partition, -1, off[broker])
            if gain >= best_gain:
                continue
            gain += change(ground, state, here, -1, partition, off[here])
            gain += _fare(ground, home, replica, here, broker, cost)
            if (
                gain < best_gain
                and has_room(ground, state, broker, partition, -1)
                and may_go(ground, state, replica, broker)
            ):
                best, best_to, best_gain = replica, broker, gain
    return best, best_to, best_gain


@compiled
def _best_exchange(
    ground: Ground,
    state: State,
    home: Ints,
    candidates: Ints,
    receives: Bools,
    off: Floats,
    broker: int,
    cost: float,
    drawn: int,
    to_beat: float,
) -> tuple[int, int, float]:
    """A replica elsewhere and one of this broker's that had better change places, and how much that helps."""
    best_comes, best_goes, best_gain = -1, -1, to_beat
    many = len(candidates)
    own = np.empty(drawn, np.int64)
    count = 0
    for turn in range(min(many, drawn)):
        replica = candidates[turn if many <= drawn else np.random.randint(many)]
        if state.holder[replica] == broker:
            own[count] = replica
            count += 1
    for _ in range(drawn if count and receives[broker] else 0):
        goes, comes = own[np.random.randint(count)], candidates[np.random.randint(many)]
        there, coming, going = state.holder[comes], ground.part_of[comes], ground.part_of[goes]
        if there == broker or coming == going or not receives[there]:
            continue
        gain = change(ground, state, broker, coming, going, off[broker])
        if gain >= best_gain:
            continue
        gain += change(ground, state, there, going, coming, off[there])
        gain += _fare(ground, home, comes, there, broker, cost)
        gain += _fare(ground, home, goes, broker, there, cost)
        if (
            gain < best_gain
            and has_room(ground, state, broker, coming, going)
            and has_room(ground, state, there, going, coming)
            and may_go(ground, state, comes, broker)
            and may_go(ground, state, goes, there)
        ):
            best_comes, best_goes, best_gain = comes, goes, gain
    return best_comes, best_goes, best_gain
