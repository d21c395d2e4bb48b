"""Prices of load, which tell the search what is worth moving, and prove how much has to be.

A broker above a band would pay to be rid of a unit of that goal, one below a band would pay for one more. At
given prices every partition is on its own: each replica stays, or goes where that is cheapest, copying
included. The prices rise and fall until the brokers' loads are in band: the dual of the linear program over
all replicas and brokers. So that many brokers of the same price share what comes, a replica goes to each of
them in part, the more the cheaper it is there.

`judge/bound.py` turns any prices into a bound that is never too high.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from restow.plan.search.problem import Bools, Floats, Ints, Problem

    Singles = NDArray[np.float32]

# The prices are found on partitions with so many places for their replicas, drawn with odds that grow with
# their size, in so many turns, and then adjusted to more of them in a few more.
_PLACES, _MORE_PLACES = 150_000, 750_000
_TURNS, _TURNS_FOR_ALL, _TURNS_INSIDE = 200, 30, 20
# A small cluster takes more turns: as many as look at so many places, but no more than this.
_MOST_PLACES, _MOST_TURNS = 5_000_000, 1_000
# How much narrower the bands are at last, in average loads.
_INSIDE = 0.005
# How far a price moves in one turn at first, in the bytes of an average broker for its load of the goal.
_STEP, _LAST_STEP = 0.1, 0.0005
# How much dearer a place may be that a replica still goes to in part, as a share of its own cost.
_VAGUE, _EXACT, _MORE_EXACT = 0.02, 0.004, 0.001
_MEMORY, _MEMORY_OF_SQUARES, _LEAST = 0.9, 0.95, 1e-3
# A band that is wider than so many average loads is no limit.
_WIDE = 4.0
_PLACES_AT_A_TIME = 2_000_000


class Offers(NamedTuple):
    """Where replicas may be, and what that costs: of partitions with the same number of them.

    A place is one of the brokers where a replica may be. The first is its home.
    """

    partitions: Ints
    stand_for: Singles
    """How many partitions each of them stands for, where they are a sample."""
    following: Singles
    """Partitions × goals: the load of a replica, in average loads of a broker."""
    extra: Singles
    """Partitions × goals: the load that leading adds."""
    at: Ints
    """Partitions × replicas × places: the broker."""
    cell: Ints
    """The same as a cell of a table of partitions × brokers."""
    fare: Singles
    """Partitions × replicas × places: the bytes to copy, in average brokers; infinite where it may not be."""
    lead: Singles
    """Partitions × replicas × places: 0, or infinite if it may not lead there."""
    own: Singles
    """Partitions × replicas: how much more of the first goal it has at home."""


class Reaction(NamedTuple):
    """What partitions do at given prices."""

    load: Floats
    """Brokers × goals."""
    there: Singles
    """Partitions × replicas × places: which part of each replica is there."""


class Market:
    """A problem in average loads of a broker, to find prices for it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        counts = np.diff(problem.offsets)
        total = problem.leading.sum(axis=0) + (counts - 1) @ problem.following
        self.unit: Floats = np.where(total > 0, total, 1.0) / max(int(problem.may_lead.sum()), 1)
        self.lower, self.upper = problem.lower / self.unit, problem.upper / self.unit
        self._unlimited = self.upper > len(problem.rack)
        self._counts = counts
        self._home = np.where(problem.forced, -1, problem.home)
        racks = int(problem.rack.max()) + 1
        members = [np.flatnonzero((problem.rack == rack) & problem.receives) for rack in range(racks)]
        self._most = max(map(len, members))
        self._members = np.full((racks, max(self._most, 1)), -1, dtype=np.int64)
        for rack, brokers in enumerate(members):
            self._members[rack, : len(brokers)] = brokers

    def find(self, out_of_time: Callable[[], bool]) -> Floats:
        """Return brokers × goals: the prices of load, above 0 where there is too much."""
        few = self.sample(_PLACES)
        places = sum(each.at.size for each in few)
        turns = min(max(_TURNS, _MOST_PLACES // max(places, 1)), _MOST_TURNS)
        exact = _EXACT if turns < _MOST_TURNS else _MORE_EXACT
        prices = np.zeros_like(self.lower)
        prices[:, 0] = self._respond(few, prices, exact)[:, 0] > self.upper[:, 0]
        return self._adjust(few, prices, turns, (_STEP, _LAST_STEP), (_VAGUE, exact), out_of_time)

    def refine(self, prices: Floats, out_of_time: Callable[[], bool]) -> tuple[Floats, Floats]:
        """Return the prices for more partitions, and those for slightly narrower bands.

        With the second ones whole replicas are likely to keep to the real bands.
        """
        many, steps, exact = self.sample(_MORE_PLACES), (_STEP / 10, _LAST_STEP), (_EXACT, _EXACT)
        prices = self._adjust(many, prices, _TURNS_FOR_ALL, steps, exact, out_of_time)
        return prices, self._adjust(many, prices, _TURNS_INSIDE, steps, exact, out_of_time, _INSIDE)

    def in_bytes(self, prices: Floats) -> Floats:
        """Return prices for the units of the problem, and none where there is no limit."""
        real: Floats = np.where(self._unlimited, np.minimum(prices, 0.0), prices) * self.unit[0] / self.unit
        return real

    def _adjust(
        self,
        offers: list[Offers],
        prices: Floats,
        turns: int,
        steps: tuple[float, float],
        vagueness: tuple[float, float],
        out_of_time: Callable[[], bool],
        inside: float = 0.0,
    ) -> Floats:
        """Return prices nearer to those at which the loads are in band.

        Each turn goes up the slope of the dual function (with momentum, by coordinate as in Adam), and then
        gives way to the bands: a price within the step's reach of zero becomes zero.
        """
        upper = np.minimum(self.upper, self.lower + _WIDE)
        middle, half = (upper + self.lower) / 2, np.maximum((upper - self.lower) / 2 - inside, 0.0)
        slope, squares = np.zeros_like(prices), np.zeros_like(prices)
        for turn in range(1, turns + 1):
            if out_of_time():
                break
            left = 1.0 - turn / turns
            vague = vagueness[1] + (vagueness[0] - vagueness[1]) * left**2
            step = steps[1] + (steps[0] - steps[1]) * left
            up = self._respond(offers, prices, vague) - middle
            slope = _MEMORY * slope + (1 - _MEMORY) * up
            squares = _MEMORY_OF_SQUARES * squares + (1 - _MEMORY_OF_SQUARES) * up * up
            reach = step / (np.sqrt(squares / (1 - _MEMORY_OF_SQUARES**turn)) + _LEAST)
            prices = prices + reach * slope / (1 - _MEMORY**turn)
            prices = np.sign(prices) * np.maximum(np.abs(prices) - reach * half, 0.0)
        return prices

    def _respond(self, offers: list[Offers], prices: Floats, vague: float) -> Floats:
        load: Floats = np.zeros_like(prices)
        for each in offers:
            load += respond(each, prices, vague).load
        return load

    def sample(self, places: int) -> list[Offers]:
        """Return the offers of all partitions, or of some if they have more places than these."""
        rng, partitions = np.random.default_rng(self.problem.seed), len(self._counts)
        each = self._most if int(self._counts.max()) == len(self._members) else len(self.problem.rack)
        many = max(places // (int(self._counts.max()) * max(each, 1)), 1)
        if partitions <= many:
            chosen, odds = np.arange(partitions), np.ones(partitions)
        else:
            size = self.problem.following[:, 0]
            odds = size / max(float(size.sum()), 1e-300) + 1 / partitions
            for _ in range(5):
                odds = np.minimum(odds * (many / odds.sum()), 1.0)
            chosen = np.flatnonzero(rng.random(partitions) < odds)
        return [
            self.offers(some, (1.0 / odds[some]).astype(np.float32))
            for count in np.unique(self._counts[chosen])
            if (some := chosen[self._counts[chosen] == count]).size
        ]

    def everything(self) -> Iterator[Offers]:
        """Yield the offers of all partitions, some at a time."""
        for count in np.unique(self._counts).tolist():
            some = np.flatnonzero(self._counts == count)
            at_a_time = max(_PLACES_AT_A_TIME // (count * len(self.problem.rack)), 1)
            for first in range(0, len(some), at_a_time):
                part = some[first : first + at_a_time]
                yield self.offers(part, np.ones(len(part), dtype=np.float32))

    def offers(self, partitions: Ints, stand_for: Singles) -> Offers:
        """Return the offers of partitions that have the same number of replicas."""
        problem = self.problem
        slots = problem.offsets[partitions][:, None] + np.arange(int(self._counts[partitions[0]]))
        home, was = self._home[slots], problem.home[slots]
        apart = self._apart(partitions, was)
        may_move = problem.movable[slots] | problem.forced[slots]
        at, allowed = self._places(was, apart)
        allowed &= may_move[:, :, None] & (at >= 0) & (at != home[:, :, None])
        for other in range(home.shape[1]):
            allowed &= at != home[:, other, None, None]
        cost = (problem.following[partitions, 0] / self.unit[0])[:, None, None]
        at = np.concatenate((np.maximum(home, 0)[:, :, None], np.maximum(at, 0)), axis=2)
        stays = np.where(home >= 0, 0.0, np.inf)[:, :, None]
        fare = np.concatenate((stays, np.where(allowed, cost, np.inf)), axis=2)
        lead = np.where(problem.may_lead[at], 0.0, np.inf)
        led: Bools = np.any(np.isfinite(lead), axis=2)
        lead[~np.all(led, axis=1)] = 0.0
        own = np.zeros(home.shape) if problem.own is None else np.where(home >= 0, problem.own[slots], 0.0)
        return Offers(
            partitions=partitions,
            stand_for=stand_for,
            following=(problem.following[partitions] / self.unit).astype(np.float32),
            extra=((problem.leading - problem.following)[partitions] / self.unit).astype(np.float32),
            at=at,
            cell=np.arange(len(partitions))[:, None, None] * len(problem.rack) + at,
            fare=fare.astype(np.float32),
            lead=lead.astype(np.float32),
            own=(own / self.unit[0]).astype(np.float32),
        )

    def _apart(self, partitions: Ints, home: Ints) -> Bools:
        """Return the partitions whose replicas are in racks of their own and have to stay so."""
        rack = np.where(home >= 0, self.problem.rack[home], -1 - np.arange(home.shape[1]))
        alone = np.ones(len(home), dtype=bool)
        for one in range(home.shape[1]):
            for other in range(one):
                alone &= rack[:, one] != rack[:, other]
        wanted: Bools = self.problem.racks_wanted[partitions] >= home.shape[1]
        return alone & wanted

    def _places(self, home: Ints, apart: Bools) -> tuple[Ints, Bools]:
        """Return brokers for each replica, and whether it may go there.

        A replica in a rack of its own goes to another broker of that rack, or to a rack without any: where
        another one goes into its rack, the two are the same but for their names.
        """
        rack, brokers = self.problem.rack, len(self.problem.rack)
        racks = np.where(home >= 0, rack[home], -1)
        if apart.all() and (home >= 0).all() and len(np.unique(rack)) == home.shape[1]:
            at = self._members[racks]
            return at, np.ones(at.shape, dtype=bool)
        at = np.broadcast_to(np.arange(brokers), (*home.shape, brokers))
        allowed = np.broadcast_to(self.problem.receives, at.shape).copy()
        for one in range(home.shape[1]):
            for other in range(home.shape[1]):
                if one != other:
                    taken = rack[None, :] == racks[:, other, None]
                    allowed[:, one] &= ~(taken & apart[:, None])
        return at, allowed


def respond(offers: Offers, prices: Floats, vague: float) -> Reaction:
    """Return what partitions do at these prices: places that cost little more are taken too, in part."""
    count, brokers = len(offers.partitions), len(prices)
    at_prices = prices.T.astype(np.float32)
    follows = (offers.following @ at_prices).reshape(-1)[offers.cell]
    follows += offers.fare
    if offers.own.any():
        follows[:, :, 0] += offers.own * at_prices[0][offers.at[:, :, 0]]
    leads = (offers.extra @ at_prices).reshape(-1)[offers.cell]
    leads += follows
    leads += offers.lead
    cost = offers.following[:, 0]
    width = (vague * (cost + float(cost.mean()) + 1e-12)).astype(np.float32)[:, None, None]
    least, least_led = _in_parts(follows, width), _in_parts(leads, width)
    chance = (least_led - least)[:, None, :]
    _in_parts(chance, width)
    chance = chance[:, 0, :, None]
    leads *= chance
    follows *= 1 - chance
    follows += leads
    weight = offers.stand_for[:, None]
    cell, size = offers.cell.reshape(-1), count * brokers
    some = np.bincount(cell, follows.reshape(-1), size).reshape(count, brokers) * weight
    lead = np.bincount(cell, leads.reshape(-1), size).reshape(count, brokers) * weight
    load: Floats = some.T @ offers.following + lead.T @ offers.extra
    if offers.own.any():
        stays = (follows[:, :, 0] * offers.own * weight).reshape(-1)
        load[:, 0] += np.bincount(offers.at[:, :, 0].reshape(-1), stays, brokers)
    return Reaction(load, follows)


def _in_parts(costs: Singles, width: Singles) -> Singles:
    """Turn costs into the part that goes to each place; return the least, less if several share."""
    least = costs.min(axis=2, keepdims=True)
    least[~np.isfinite(least)] = 0.0
    np.subtract(least, costs, out=costs)
    costs /= width
    np.exp(costs, out=costs)
    whole = costs.sum(axis=2, keepdims=True)
    whole[whole == 0] = 1.0
    costs /= whole
    mean: Singles = (least - width * np.log(whole))[:, :, 0]
    return mean
