"""Prices of load, which tell the search what is worth moving, and prove how much has to be.

A broker above a band would pay to be rid of a unit of that goal, one below a band would pay for one more. At
given prices every partition is on its own: each replica stays, or goes where that is cheapest, copying
included. The prices rise and fall until the brokers' loads are in band: the dual of the linear program over
all replicas and brokers. So that many brokers of the same price share what comes, a replica goes to each of
them in part, the more the cheaper it is there.

`judge/bound.py` turns any prices into a bound that is never too high.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.search.compiled import FEW
from restow.plan.search.offers import Offers, respond

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.plan.search.offers import Singles
    from restow.plan.search.problem import Bools, Floats, Ints, Problem

# The prices are found on partitions with so many places for their replicas, drawn with odds that grow with
# their size, in so many turns, and then adjusted to more of them in a few more.
_PLACES, _MORE_PLACES = 150_000, 750_000
_TURNS, _TURNS_FOR_ALL = 200, 30
# A small cluster takes more turns: as many as look at so many places, but no more than this.
_MOST_PLACES, _MOST_TURNS = 5_000_000, 1_000
# How far a price moves in one turn at first, in the bytes of an average broker for its load of the goal.
_STEP, _LAST_STEP = 0.1, 0.0005
# How much dearer a place may be that a replica still goes to in part, as a share of its own cost.
_VAGUE, _EXACT, _MORE_EXACT = 0.02, 0.004, 0.001
_MEMORY, _MEMORY_OF_SQUARES, _LEAST = 0.9, 0.95, 1e-3
# A band that is wider than so many average loads is no limit.
_WIDE = 4.0


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
        self._few = len(problem.home) <= FEW
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

    def refine(self, prices: Floats, out_of_time: Callable[[], bool]) -> Floats:
        """Return the prices for more partitions."""
        many = self.sample(_MORE_PLACES)
        return self._adjust(
            many, prices, _TURNS_FOR_ALL, (_STEP / 10, _LAST_STEP), (_EXACT, _EXACT), out_of_time
        )

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
    ) -> Floats:
        """Return prices nearer to those at which the loads are in band.

        Each turn goes up the slope of the dual function (with momentum, by coordinate as in Adam), and then
        gives way to the bands: a price within the step's reach of zero becomes zero.
        """
        upper = np.minimum(self.upper, self.lower + _WIDE)
        middle, half = (upper + self.lower) / 2, (upper - self.lower) / 2
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
            load += respond(each, prices, vague, few=self._few)
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
