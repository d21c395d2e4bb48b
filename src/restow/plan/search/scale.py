"""Scale the problem to shares of an average broker, so that goals can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.plan.search.compiled import compiled
from restow.plan.search.problem import SearchSpace
from restow.plan.search.rules import add_own

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.plan.search.problem import Bools, Floats, Ints, Problem


# A goal belongs to replicas rather than leaders if this share of it stays when leadership changes.
_BELONGS_TO_REPLICAS = 0.5
# The search aims inside the bands by this share of an average broker,
_INSIDE = 1e-4
# and finally stays this far inside, so that rounding does not lead out of them.
_BARELY_INSIDE = 1e-9


class Scaled(NamedTuple):
    """Loads and bands in shares."""

    replicas: SearchSpace
    """With the bands to aim at, for the load of replicas."""
    lowest: Floats
    """The lower bounds that must hold, for the load of replicas."""
    highest: Floats
    """The upper bounds that must hold, for the load of replicas."""
    goals: Ints
    """The goals that belong to replicas."""
    following: Floats
    """Partitions × goals: the load of a replica that does not lead."""
    extra: Floats
    """Partitions × goals: the load that leading adds."""
    lower: Floats
    upper: Floats
    size: Floats
    """The cost of copying one replica of each partition."""


def scale(problem: Problem) -> Scaled:
    """Return the constant part of the search."""
    counts = np.diff(problem.offsets)
    part_of = np.repeat(np.arange(len(counts)), counts)
    alone = counts == 1
    total = problem.leading.sum(axis=0) + (counts - 1) @ problem.following
    stays = counts @ problem.following + (problem.leading[alone] - problem.following[alone]).sum(axis=0)
    goals = np.flatnonzero(stays >= _BELONGS_TO_REPLICAS * total)
    average = np.where(total > 0, total, 1.0) / max(int(problem.may_lead.sum()), 1)
    unit = average if problem.importance is None else average / problem.importance
    lower, upper = problem.lower / unit, problem.upper / unit
    following, extra, weight = _shares(problem, unit, goals, alone)
    home = np.where(problem.forced, -1, problem.home)
    own = np.zeros(0) if problem.own is None else np.where(home >= 0, problem.own / unit[0], 0.0)
    led = np.where(total > 0, 1.0 - stays / np.where(total > 0, total, 1.0), 0.0)[goals]
    first = np.where(alone, -1, problem.home[problem.leader])
    none = np.zeros(0, dtype=np.int64)
    space = SearchSpace(
        weight=weight,
        part_of=part_of,
        offsets=problem.offsets,
        rack=problem.rack,
        racks_wanted=problem.racks_wanted,
        lower=lower,
        upper=upper,
        room=problem.room / unit[0],
        topic=none if problem.topic is None else problem.topic,
        topic_most=none if problem.topic_replicas is None else problem.topic_replicas,
        home=home,
        own=own,
        barred=_barred(problem, home, part_of),
    )
    now = held(space, problem.home)
    whole = now + sums(first, extra, np.arange(len(first)), len(problem.rack))[:, goals]
    low, high = _without_leading(lower[:, goals], upper[:, goals], led, now, whole)
    aim_low, aim_high = _inside(low, high, now, _INSIDE)
    lowest, highest = _inside(low, high, now, _BARELY_INSIDE)
    return Scaled(
        replicas=space._replace(lower=aim_low, upper=aim_high),
        lowest=lowest,
        highest=highest,
        goals=goals,
        following=following,
        extra=extra,
        lower=lower,
        upper=upper,
        size=problem.following[:, 0] / average[0],
    )


def _barred(problem: Problem, home: Ints, part_of: Ints) -> Ints:
    """Return the broker of the leader for replicas that may not take its place, -1 for the others."""
    led = np.where(problem.may_change_leader, -1, home[problem.leader])
    barred: Ints = led[part_of]
    barred[problem.leader] = -1
    return barred


def held(space: SearchSpace, holder: Ints) -> Floats:
    """Return brokers × goals: the load of replicas, each with its own size; -1 is no broker."""
    load = sums(holder, space.weight, space.part_of, len(space.rack))
    add_own(space, holder, load)
    return load


@compiled
def sums(holder: Ints, weight: Floats, part_of: Ints, brokers: int) -> Floats:
    """Return brokers × goals: the total load of these replicas by broker, -1 being none."""
    goals = weight.shape[1]
    found = np.zeros((brokers, goals))
    for replica in range(len(holder)):
        broker, partition = holder[replica], part_of[replica]
        if broker >= 0:
            for goal in range(goals):
                found[broker, goal] += weight[partition, goal]
    return found


def _shares(problem: Problem, unit: Floats, goals: Ints, alone: Bools) -> tuple[Floats, Floats, Floats]:
    """Return the loads of replicas, of leading, and in these goals; a lone replica always leads."""
    follows, extra = np.empty(problem.following.shape), np.empty(problem.following.shape)
    weight = np.empty((len(alone), len(goals)))
    _divide(problem.leading, problem.following, unit, goals, alone, follows, extra, weight)
    return follows, extra, weight


@compiled
def _divide(
    leading: Floats,
    following: Floats,
    unit: Floats,
    goals: Ints,
    alone: Bools,
    follows: Floats,
    extra: Floats,
    weight: Floats,
) -> None:
    for partition in range(len(following)):
        for goal in range(len(unit)):
            follows[partition, goal] = following[partition, goal] / unit[goal]
            extra[partition, goal] = leading[partition, goal] / unit[goal] - follows[partition, goal]
        for at, goal in enumerate(goals):
            lone = leading[partition, goal] / unit[goal]
            weight[partition, at] = lone if alone[partition] else follows[partition, goal]


def _without_leading(
    lower: Floats, upper: Floats, led: Floats, now: Floats, whole: Floats
) -> tuple[Floats, Floats]:
    """Return bands for the load of replicas alone, without each broker's share of leading.

    A broker in band with its present leaders need not move anything.
    """
    leading = led * (lower + upper) / 2
    low, high = np.maximum(lower - leading, 0.0), upper - leading
    low = np.where((led > 0) & (whole >= lower), np.minimum(low, now), low)
    high = np.where((led > 0) & (whole <= upper), np.maximum(high, now), high)
    return low, high


def _inside(lower: Floats, upper: Floats, now: Floats, most: float) -> tuple[Floats, Floats]:
    """Return slightly narrower bands, but not so narrow that a broker in band now would be out."""
    margin = np.minimum(most, (upper - lower) / 2)
    low = np.where(now < lower, lower + margin, np.minimum(lower + margin, now))
    high = np.where(now > upper, upper - margin, np.maximum(upper - margin, now))
    return np.ascontiguousarray(low), np.ascontiguousarray(high)


_HALVINGS = 50


def drained_to(load: Floats, lower: Floats, upper: Floats, coming: Floats) -> Floats:
    """Return what each broker keeps: its upper bound, or less if brokers below their band need more."""
    above = np.maximum(load - upper, 0.0).sum(axis=0)
    below = np.maximum(lower - load, 0.0).sum(axis=0)
    needed = np.maximum(above, below - coming)
    return _level(upper, lower, lambda level: np.maximum(load - level, 0.0).sum(axis=0) < needed)


def filled_to(load: Floats, lower: Floats, upper: Floats, coming: Floats) -> Floats:
    """Return the target of each broker: its lower bound, or more if more arrives than is missing."""
    return _level(lower, upper, lambda level: np.maximum(level - load, 0.0).sum(axis=0) < coming)


def _level(start: Floats, end: Floats, too_near: Callable[[Floats], Bools]) -> Floats:
    """Return by goal the first level from start to end that is not too near the start."""
    near, far = np.zeros(start.shape[1]), np.ones(start.shape[1])
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        step_on = too_near(start + (end - start) * middle)
        near, far = np.where(step_on, middle, near), np.where(step_on, far, middle)
    return start + (end - start) * far
