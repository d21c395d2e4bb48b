"""The problem in shares of an average broker, so that goals can be weighed against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.plan.search.compiled import compiled
from restow.plan.search.problem import Ground

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.plan.search.problem import Bools, Floats, Ints, Problem


# A goal belongs to replicas rather than to leaders if this share of it stays when leadership changes.
_BELONGS_TO_REPLICAS = 0.5
# Bands are aimed at a little inside, by this share of an average broker,
_INSIDE = 1e-4
# and in the end kept so far inside that rounding does not lead out of them.
_BARELY_INSIDE = 1e-9


class Scaled(NamedTuple):
    """Loads and bands in shares."""

    replicas: Ground
    """With the bands that are aimed at;"""
    lowest: Floats
    """and the ones that must not be left,"""
    highest: Floats
    """both for what replicas carry wherever they are."""
    goals: Ints
    """Which goals belong to replicas."""
    following: Floats
    """Partitions × goals: what each replica is whoever leads,"""
    extra: Floats
    """and what leading adds to that."""
    lower: Floats
    upper: Floats
    size: Floats
    """What one replica of each partition costs to copy."""


def scale(problem: Problem) -> Scaled:
    """All that stays as it is during the search."""
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
    now = sums(problem.home, weight, part_of, len(problem.rack))
    led = np.where(total > 0, 1.0 - stays / np.where(total > 0, total, 1.0), 0.0)[goals]
    first = np.where(alone, -1, problem.home[problem.leader])
    whole = now + sums(first, extra, np.arange(len(first)), len(problem.rack))[:, goals]
    low, high = _without_leading(lower[:, goals], upper[:, goals], led, now, whole)
    aim_low, aim_high = _inside(low, high, now, _INSIDE)
    lowest, highest = _inside(low, high, now, _BARELY_INSIDE)
    none = np.zeros(0, dtype=np.int64)
    ground = Ground(
        weight=weight,
        part_of=part_of,
        offsets=problem.offsets,
        rack=problem.rack,
        racks_wanted=problem.racks_wanted,
        lower=aim_low,
        upper=aim_high,
        room=problem.room / unit[0],
        topic=none if problem.topic is None else problem.topic,
        topic_most=none if problem.topic_replicas is None else problem.topic_replicas,
    )
    return Scaled(
        replicas=ground,
        lowest=lowest,
        highest=highest,
        goals=goals,
        following=following,
        extra=extra,
        lower=lower,
        upper=upper,
        size=problem.following[:, 0] / average[0],
    )


@compiled
def sums(holder: Ints, weight: Floats, part_of: Ints, brokers: int) -> Floats:
    """Brokers × goals: what replicas of these partitions weigh together at these brokers, -1 being none."""
    goals = weight.shape[1]
    found = np.zeros((brokers, goals))
    for replica in range(len(holder)):
        broker, partition = holder[replica], part_of[replica]
        if broker >= 0:
            for goal in range(goals):
                found[broker, goal] += weight[partition, goal]
    return found


def _shares(problem: Problem, unit: Floats, goals: Ints, alone: Bools) -> tuple[Floats, Floats, Floats]:
    """What replicas are, what leading adds, and what they weigh in these goals: a lone one always leads."""
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
    """Bands for what replicas carry alone: less what each broker will carry for leading its share.

    Who is in band with the leaders as they are need not move anything.
    """
    leading = led * (lower + upper) / 2
    low, high = np.maximum(lower - leading, 0.0), upper - leading
    low = np.where((led > 0) & (whole >= lower), np.minimum(low, now), low)
    high = np.where((led > 0) & (whole <= upper), np.maximum(high, now), high)
    return low, high


def _inside(lower: Floats, upper: Floats, now: Floats, most: float) -> tuple[Floats, Floats]:
    """Bands drawn in a little, but not so far that who is in band now would be out of it."""
    margin = np.minimum(most, (upper - lower) / 2)
    low = np.where(now < lower, lower + margin, np.minimum(lower + margin, now))
    high = np.where(now > upper, upper - margin, np.maximum(upper - margin, now))
    return np.ascontiguousarray(low), np.ascontiguousarray(high)


_HALVINGS = 50


def drained_to(load: Floats, lower: Floats, upper: Floats, coming: Floats) -> Floats:
    """What each broker keeps: its upper band, or less if those below need more than is above and coming."""
    above = np.maximum(load - upper, 0.0).sum(axis=0)
    below = np.maximum(lower - load, 0.0).sum(axis=0)
    needed = np.maximum(above, below - coming)
    return _level(upper, lower, lambda level: np.maximum(load - level, 0.0).sum(axis=0) < needed)


def filled_to(load: Floats, lower: Floats, upper: Floats, coming: Floats) -> Floats:
    """What each broker should get to: its lower band, or more if more is coming than those below need."""
    return _level(lower, upper, lambda level: np.maximum(level - load, 0.0).sum(axis=0) < coming)


def _level(start: Floats, end: Floats, too_near: Callable[[Floats], Bools]) -> Floats:
    """The first level on the way from start to end that is not too near the start, goal by goal."""
    near, far = np.zeros(start.shape[1]), np.ones(start.shape[1])
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        step_on = too_near(start + (end - start) * middle)
        near, far = np.where(step_on, middle, near), np.where(step_on, far, middle)
    return start + (end - start) * far
