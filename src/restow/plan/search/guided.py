"""Let prices say where replicas go, where shedding and filling one broker after another leads astray.

Each replica in turn goes where copying it and its load cost least, at the prices of the brokers' loads. A
price rises with each replica that comes, so those that would rather be elsewhere do not all go to the same
broker. After a look at all replicas each price moves by what its broker still has too much, or lacks, and
from then on rises more steeply. Topics that have to be spread have prices on each broker, too. Where nothing
binds, prices fall, and replicas that need not move go home: the search goes on along the edge of the bands,
and keeps the best placement there. (This is the method of multipliers, one replica at a time.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.plan.search.compiled import COMPILES, compiled
from restow.plan.search.rules import (
    beyond,
    has_room,
    may_go,
    own_at,
    racks_of,
    transfer,
    wrong,
    wrong_after,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.plan.search.problem import Bools, Floats, Ints, Problem, SearchSpace, SearchState

# Finding prices takes time in proportion to partitions × brokers.
_MOST_PLACES = 10_000_000
# So many turns at most, and so many without a better placement once one is in band.
_TURNS, _PATIENCE = 120, 15
# In so many turns at first, and in one of so many later, all replicas are looked at; in others only those
# that nearly moved: for so much more, as a share of their cost and of a part of the average one.
_LOOKS, _LOOK_AGAIN, _NEARLY, _OF_AVERAGE = 20, 10, 0.1, 0.1
# So many places are looked at between two looks at the clock.
_PLACES_AT_A_TIME = 5_000_000
# By how much a replica raises a price at first (one of the size that most of the load has), by how much one
# too many of a topic does, as a share of copying an average one, and how much more from turn to turn.
_STEEP, _CROWD, _STEEPER = 0.015, 0.1, 1.07
# Nearer to the bands than this, in average loads, mending does the rest.
_RIGHT = 1e-6
_NOTHING = 1e-15


class Bands(NamedTuple):
    """Where load begins to cost: a broker that pays to be rid of load behaves as if its band ended earlier.

    The cost is the square of what lies outside, times half of `steep`. Its slope is the price.
    """

    low: Floats
    high: Floats
    steep: float
    most: Floats
    """Topics × brokers: likewise, where the replicas of a topic begin to cost."""
    crowd: float
    """How many times as steep that is."""


@dataclass(slots=True, kw_only=True)
class _Prices:
    """What brokers pay for load, and topics for places, in average loads of a broker copied."""

    load: Floats
    """Brokers × goals: above 0 at the upper end of the band, below 0 at the lower end."""
    place: Floats
    """Topics × brokers."""
    steep: float
    crowd: float

    def bands(self, space: SearchSpace, most: Floats) -> Bands:
        return Bands(
            space.lower + np.maximum(-self.load, 0.0) / self.steep,
            space.upper - np.maximum(self.load, 0.0) / self.steep,
            self.steep,
            most - self.place / self.crowd,
            self.crowd / self.steep,
        )

    def adjust(self, space: SearchSpace, load: Floats, too_many: Floats) -> None:
        """Move prices by what is out of band, and let them rise more steeply."""
        above = np.maximum(np.maximum(self.load, 0.0) + self.steep * (load - space.upper), 0.0)
        below = np.maximum(np.maximum(-self.load, 0.0) + self.steep * (space.lower - load), 0.0)
        self.load = above - below
        self.place = np.maximum(self.place + self.crowd * too_many, 0.0)
        self.steep, self.crowd = self.steep * _STEEPER, self.crowd * _STEEPER


def is_priced(problem: Problem) -> bool:
    """Return whether prices could be found in reasonable time, and are free to say where replicas go."""
    pinned = problem.pinned is not None and (problem.pinned >= 0).any()
    return COMPILES and not pinned and len(problem.leader) * len(problem.rack) <= _MOST_PLACES


def guided(
    problem: Problem,
    space: SearchSpace,
    aim: SearchSpace,
    state: SearchState,
    cost: Floats,
    price: Floats,
    out_of_time: Callable[[], bool],
) -> SearchState | None:
    """Return a placement near the one that these prices of load suggest, found from this one on.

    `aim` has slightly narrower bands than `space`; `cost` is that of copying one replica of each partition,
    in average brokers. The placement breaks no rule, but may be out of band. None if none has been found.
    """
    state = state.copied()
    able = np.flatnonzero(problem.movable | problem.forced)
    near = able = able[np.argsort(-space.weight[space.part_of[able]].sum(axis=1), kind="stable")]
    most = np.maximum(space.topic_most[:, None], state.spread).astype(np.float64)
    receivers = np.flatnonzero(problem.receives)
    anywhere = aim._replace(topic_most=np.full_like(aim.topic_most, len(space.part_of)))
    look = _Look(anywhere, receivers, cost, float(cost.mean()) * _OF_AVERAGE, out_of_time)
    typical = float((space.weight**2).sum() / (space.weight.sum() + 1e-12)) + 1e-12
    steep, crowd = _STEEP / typical, _CROWD * float(cost.mean()) + 1e-12
    prices = _Prices(load=price, place=np.zeros_like(most), steep=steep, crowd=crowd)
    best, least, found = None, (np.inf, np.inf), 0
    for turn in range(_TURNS):
        bands = prices.bands(aim, most)
        if turn < _LOOKS or turn % _LOOK_AGAIN == 0:
            near = look.at(able, state, bands, _NEARLY)
        else:
            look.at(near, state, bands, 0.0)
        if out_of_time():
            break
        too_many = state.spread - most
        out = float(beyond(space, state.load).sum())
        away = state.holder != space.home
        score = (out if out > _RIGHT else 0.0, float(cost[space.part_of[away]].sum()))
        if score < least and not (too_many > 0).any():
            best, least, found = state.copied(), score, turn
        if least[0] == 0.0 and turn - found > _PATIENCE:
            break
        prices.adjust(aim, state.load, too_many)
    return best


class _Look(NamedTuple):
    """What every look at replicas needs."""

    space: SearchSpace
    receivers: Ints
    cost: Floats
    at_least: float
    out_of_time: Callable[[], bool]

    def at(self, replicas: Ints, state: SearchState, bands: Bands, nearly: float) -> Ints:
        """Move the replicas that are better off elsewhere; return those and the ones that nearly are."""
        at_a_time = max(_PLACES_AT_A_TIME // (len(self.receivers) + 1), 1)
        near, many = np.empty(len(replicas), np.int64), 0
        for first in range(0, len(replicas), at_a_time):
            if self.out_of_time():
                break
            some = replicas[first : first + at_a_time]
            many += _look(
                self.space, state, some, self.receivers, self.cost, bands, nearly, self.at_least, near[many:]
            )
        return near[:many]


@compiled
def _look(
    space: SearchSpace,
    state: SearchState,
    replicas: Ints,
    receivers: Ints,
    cost: Floats,
    bands: Bands,
    nearly: float,
    at_least: float,
    near: Ints,
) -> int:
    """Let each replica go where it is cheapest; list those that do or nearly do, and return how many."""
    load, weight, low, high = state.load, space.weight, bands.low, bands.high
    half, limited, many = bands.steep / 2, len(space.topic_most) > 0, 0
    is_open = np.empty(space.rack.max() + 1, np.bool_)
    now = np.empty(load.shape[0])
    for broker in range(len(now)):
        now[broker] = wrong(load, low, high, broker)
    for replica in replicas:
        here, home, partition = state.holder[replica], space.home[replica], space.part_of[replica]
        fare = cost[partition] / half if home >= 0 else 0.0
        left = wrong_after(load, low, high, here, weight, -1, partition, -own_at(space, replica, here))
        stays = now[here] - left + (fare if here != home else 0.0)
        if limited:
            stays += _crowding(space, state, bands, partition, here, 0)
        best, least, then = -1, stays + nearly * (fare + at_least / half), 0.0
        _open(space, state, replica, is_open)
        for at in range(len(receivers) + 1):
            there = home if at == len(receivers) else receivers[at]
            if there == here or there < 0 or not is_open[space.rack[there]]:
                continue
            more = own_at(space, replica, there)
            come = wrong_after(load, low, high, there, weight, partition, -1, more)
            change = come - now[there] + (fare if there != home else 0.0)
            if limited:
                change += _crowding(space, state, bands, partition, there, 1)
            if change >= least or not has_room(space, state, there, partition, -1, more):
                continue
            if may_go(space, state, replica, there):
                best, least, then = there, change, come
        if best >= 0:
            near[many] = replica
            many += 1
        if least < stays - _NOTHING:
            transfer(space, state, replica, best)
            now[here], now[best] = left, then
    return many


@compiled
def _crowding(
    space: SearchSpace, state: SearchState, bands: Bands, partition: int, broker: int, more: int
) -> float:
    """Return what the last replica of a topic costs on a broker, when so many more have come."""
    topic = space.topic[partition]
    beyond_it = state.spread[topic, broker] + more - bands.most[topic, broker]
    return float(bands.crowd * (max(beyond_it, 0.0) ** 2 - max(beyond_it - 1.0, 0.0) ** 2))


@compiled
def _open(space: SearchSpace, state: SearchState, replica: int, is_open: Bools) -> None:
    """Mark the racks that a replica may go to: not one where another is, if it is alone in its own."""
    partition, here = space.part_of[replica], state.holder[replica]
    is_open[:] = True
    for other in range(space.offsets[partition], space.offsets[partition + 1]):
        if other != replica and space.rack[state.holder[other]] == space.rack[here]:
            return
    if racks_of(space, state, partition) > space.racks_wanted[partition]:
        return
    for other in range(space.offsets[partition], space.offsets[partition + 1]):
        if other != replica:
            is_open[space.rack[state.holder[other]]] = False
