"""Where replicas may be, and where they go at given prices of load."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from restow.plan.search.compiled import COMPILES, compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from restow.plan.search.problem import Floats, Ints

    Singles: TypeAlias = NDArray[np.float32]

# A place that costs more than so many times what the vagueness allows gets no part.
_FAR = 20.0


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
    fare: Singles
    """Partitions × replicas × places: the bytes to copy, in average brokers; infinite where it may not be."""
    lead: Singles
    """Partitions × replicas × places: 0, or infinite if it may not lead there."""
    own: Singles
    """Partitions × replicas: how much more of the first goal it has at home."""


def respond(offers: Offers, prices: Floats, vague: float, *, few: bool) -> Floats:
    """Return brokers × goals: the load at these prices. Places that cost little more are taken too, in part.

    With `few` partitions arrays do: importing the compiler would take longer.
    """
    if few or not COMPILES:
        return _respond_in_arrays(offers, prices, vague)
    load = np.zeros_like(prices)
    least_width = vague * float(offers.following[:, 0].mean())
    by_goal = np.ascontiguousarray(prices.T)
    _respond(*offers[1:], bool(offers.own.any()), by_goal, least_width, vague, load)
    return load


def _respond_in_arrays(offers: Offers, prices: Floats, vague: float) -> Floats:
    count, brokers = len(offers.partitions), len(prices)
    at_prices = prices.T.astype(np.float32)
    cell = np.arange(count)[:, None, None] * brokers + offers.at
    follows = (offers.following @ at_prices).reshape(-1)[cell]
    follows += offers.fare
    if offers.own.any():
        follows[:, :, 0] += offers.own * at_prices[0][offers.at[:, :, 0]]
    leads = (offers.extra @ at_prices).reshape(-1)[cell]
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
    size = count * brokers
    some = np.bincount(cell.reshape(-1), follows.reshape(-1), size).reshape(count, brokers) * weight
    lead = np.bincount(cell.reshape(-1), leads.reshape(-1), size).reshape(count, brokers) * weight
    load: Floats = some.T @ offers.following + lead.T @ offers.extra
    if offers.own.any():
        stays = (follows[:, :, 0] * offers.own * weight).reshape(-1)
        load[:, 0] += np.bincount(offers.at[:, :, 0].reshape(-1), stays, brokers)
    return load


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


@compiled
def _respond(
    stand_for: Singles,
    following: Singles,
    extra: Singles,
    at: Ints,
    fare: Singles,
    lead: Singles,
    own: Singles,
    has_own: bool,
    prices: Floats,
    least_width: float,
    vague: float,
    load: Floats,
) -> None:
    """Add up the same load as the arrays do, one partition after the other."""
    count, replicas, places = at.shape
    goals, brokers = prices.shape
    follow, leading = np.empty(brokers), np.empty(brokers)
    follows, leads = np.empty((replicas, places)), np.empty((replicas, places))
    chance = np.empty(replicas)
    for partition in range(count):
        follow[:], leading[:] = 0.0, 0.0
        for goal in range(goals):
            one, more = float(following[partition, goal]), float(extra[partition, goal])
            for broker in range(brokers):
                follow[broker] += one * prices[goal, broker]
                leading[broker] += more * prices[goal, broker]
        width = vague * following[partition, 0] + least_width + vague * 1e-12
        for replica in range(replicas):
            for place in range(places):
                broker = at[partition, replica, place]
                cost = fare[partition, replica, place] + follow[broker]
                if has_own and place == 0:
                    cost += own[partition, replica] * prices[0, broker]
                follows[replica, place] = cost
                leads[replica, place] = cost + leading[broker] + lead[partition, replica, place]
            chance[replica] = _divide(leads[replica], width) - _divide(follows[replica], width)
        _divide(chance, width)
        for replica in range(replicas):
            for place in range(places):
                led = leads[replica, place] * chance[replica] * stand_for[partition]
                there = follows[replica, place] * (1.0 - chance[replica]) * stand_for[partition] + led
                if there == 0.0:
                    continue
                broker = at[partition, replica, place]
                for goal in range(goals):
                    load[broker, goal] += there * following[partition, goal] + led * extra[partition, goal]
                if has_own and place == 0:
                    load[broker, 0] += there * own[partition, replica]


@compiled
def _divide(costs: Floats, width: float) -> float:
    """Turn costs into the part that goes to each place; return the least, less if several share."""
    least = costs.min()
    if not np.isfinite(least):
        costs[:] = 0.0
        return 0.0
    whole = 0.0
    for place in range(len(costs)):
        more = (costs[place] - least) / width
        costs[place] = np.exp(-more) if more < _FAR else 0.0
        whole += costs[place]
    for place in range(len(costs)):
        costs[place] /= whole
    return float(least - width * np.log(whole))
