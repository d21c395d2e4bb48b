"""A request as a problem for the search: bands for every goal, what must move, what may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from restow.errors import InvalidInput
from restow.plan.arrays import arrays_of
from restow.plan.demands import check_brokers, slots_of
from restow.plan.goals import GOALS, TOPIC_LEADERS, TOPIC_REPLICAS, most_per_broker, resource_goal
from restow.plan.goals.base import DEFAULT_BAND
from restow.plan.search.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.model import Snapshot
    from restow.model.load import LoadModel
    from restow.plan.arrays import Arrays, Bools, Floats, Ints
    from restow.plan.demands import Slots
    from restow.plan.goals import Columns, Goal
    from restow.plan.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request in numbers."""

    request: Request
    arrays: Arrays
    slots: Slots
    goals: tuple[Goal, ...]
    share: Floats
    """Brokers × goals: what each would have if all were even."""
    covered: Bools
    able: Bools
    problem: Problem


def ask(snapshot: Snapshot, load: LoadModel | None, request: Request) -> Asked:
    """Put a request into numbers, or say why it cannot be."""
    _check_numbers(request)
    arrays = arrays_of(snapshot, load, request.fill)
    check_brokers(arrays, request)
    goals = _goals(arrays, request)
    covered = _covered(arrays, request)
    able = _able(arrays, request)
    slots = slots_of(arrays, request, covered, able)
    _check_factors(arrays, slots, able)
    share, lower, upper = _bands(arrays, slots, request, goals, able)
    forced, mine = slots.forced, covered[slots.part_of]
    touched = np.add.reduceat(forced & (slots.pinned < 0), slots.offsets[:-1]) > 0
    led_by = slots.home[slots.leader]
    settled = (slots.home >= 0) & able[slots.home]
    problem = Problem(
        rack=arrays.rack,
        offsets=slots.offsets,
        home=slots.home,
        leader=slots.leader,
        leading=np.stack([columns.leading for _, columns in goals], axis=1),
        following=np.stack([columns.following for _, columns in goals], axis=1),
        lower=lower,
        upper=upper,
        importance=np.array([request.weights.get(goal.name, 1.0) or 1.0 for goal, _ in goals]),
        room=arrays.room,
        racks_wanted=_racks_wanted(arrays, slots, able),
        receives=_receives(arrays, request, able, forced),
        may_lead=able,
        forced=forced,
        pinned=slots.pinned,
        movable=mine & settled & request.sheds,
        may_change_leader=covered & (touched | (able[led_by] & (request.sheds | request.leaders))),
        sheds=request.sheds,
        topic=arrays.topic,
        topic_replicas=_topic_limit(arrays, slots.part_of, request, TOPIC_REPLICAS, able),
        topic_leaders=_topic_limit(arrays, np.arange(len(arrays.names)), request, TOPIC_LEADERS, able),
        seed=request.seed,
    )
    return Asked(
        request=request,
        arrays=arrays,
        slots=slots,
        goals=tuple(goal for goal, _ in goals),
        share=share,
        covered=covered,
        able=able,
        problem=problem,
    )


def _check_numbers(request: Request) -> None:
    numbers = [*request.bands.items(), *request.weights.items(), *request.relieve.items()]
    for name, value in numbers:
        if value is not None and not (np.isfinite(value) and value >= 0):
            raise InvalidInput(f"{name}: {value} cannot be a band, weight or limit; give a number from 0 on")
    if not 0 < request.fill <= 1:
        raise InvalidInput(f"fill {request.fill} is not a share of a disk: give a number between 0 and 1")
    for what, most in (("bytes", request.most_bytes), ("moves", request.most_moves)):
        if most is not None and most < 0:
            raise InvalidInput(f"at most {most} {what} cannot be: give a number from 0 on")
    for topic, factor in request.factors.items():
        if factor < 1:
            raise InvalidInput(f"replication factor {factor} for {topic} cannot be: it is at least 1")


def _goals(arrays: Arrays, request: Request) -> list[tuple[Goal, Columns]]:
    known = {goal.name for goal in GOALS}
    others = [resource_goal(name) for name in arrays.facts.resources if name not in known]
    wanted = [*GOALS, *others]
    names = {goal.name for goal in wanted} | {TOPIC_REPLICAS, TOPIC_LEADERS, "log_dirs"}
    for name in (*request.bands, *request.weights, *request.relieve):
        if name not in names:
            raise InvalidInput(f"there is no goal {name!r}: there are {', '.join(sorted(names))}")
    found = [(goal, goal.columns(arrays.facts)) for goal in wanted]
    return [
        (goal, columns)
        for number, (goal, columns) in enumerate(found)
        if columns is not None and (number == 0 or _band(request, goal) is not None)
    ]


def _band(request: Request, goal: Goal) -> float | None:
    if request.weights.get(goal.name) == 0:
        return None
    return request.bands.get(goal.name, goal.band)


def _covered(arrays: Arrays, request: Request) -> Bools:
    """Partitions that may be touched. Patterns that fit no topic are refused: they are likely misspelt."""
    starts = np.flatnonzero(np.diff(arrays.topic, prepend=-1)).tolist()
    topics = {arrays.names[at].topic for at in starts}
    for pattern in (*request.only_topics, *request.factors):
        if not any(_fits(topic, pattern) for topic in topics):
            raise InvalidInput(f"no topic is called {pattern!r}: {_some(sorted(topics))}")
    by_topic = np.zeros(int(arrays.topic[-1]) + 1, dtype=bool)
    for at in starts:
        by_topic[arrays.topic[at]] = request.covers(arrays.names[at].topic)
    covered: Bools = by_topic[arrays.topic]
    if request.except_partitions:
        numbers = {name: at for at, name in enumerate(arrays.names)}
        unknown = request.except_partitions - numbers.keys()
        if unknown:
            raise InvalidInput(f"there is no partition {min(unknown)}")
        covered[[numbers[name] for name in request.except_partitions]] = False
    if not covered.any():
        raise InvalidInput("every partition is excluded: exclude fewer topics or partitions")
    covered &= arrays.settled
    if not covered.any():
        raise InvalidInput(
            "every partition that may be touched is without a leader or already being moved: wait, or start "
            "the brokers that are down"
        )
    return covered


def _fits(topic: str, pattern: str) -> bool:
    from fnmatch import fnmatchcase

    return fnmatchcase(topic, pattern)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    return f"there are {shown}" + (f" and {len(names) - 5:,} others" if len(names) > 5 else "")


def _able(arrays: Arrays, request: Request) -> Bools:
    """Which brokers may be given something."""
    able: Bools = arrays.alive & np.array([each not in request.barred for each in arrays.brokers], dtype=bool)
    if not able.any():
        raise InvalidInput(
            "no broker is left that could take a replica: drain or exclude one broker less, or add one"
        )
    return able


def _check_factors(arrays: Arrays, slots: Slots, able: Bools) -> None:
    """Every partition with a replica to place needs a broker for each of its replicas."""
    forced = slots.forced
    counts = np.diff(slots.offsets)
    stays = np.add.reduceat(~forced & (slots.home >= 0) & ~able[slots.home], slots.offsets[:-1])
    needs = np.where(np.add.reduceat(forced, slots.offsets[:-1]) > 0, counts - stays, 0)
    worst = int(np.argmax(needs))
    missing = int(needs[worst]) - int(able.sum())
    if missing > 0:
        raise InvalidInput(
            f"{arrays.names[worst]} is to have {counts[worst]} replicas on different brokers, but only "
            f"{int(able.sum())} brokers may take them: add {missing} or let {missing} fewer leave, or lower "
            f"its replication factor to {int(counts[worst]) - missing}"
        )


def _racks_wanted(arrays: Arrays, slots: Slots, able: Bools) -> Ints:
    """Over how many racks each partition can be: those that may take replicas, and others where it stays."""
    racks = np.unique(arrays.rack[able])
    resting = (slots.home >= 0) & ~slots.forced
    elsewhere = np.flatnonzero(resting & ~np.isin(arrays.rack[slots.home], racks))
    many = int(arrays.rack.max()) + 1
    pairs = np.unique(slots.part_of[elsewhere] * many + arrays.rack[slots.home[elsewhere]])
    others = np.bincount(pairs // many, minlength=len(slots.offsets) - 1)
    return np.minimum(np.diff(slots.offsets), len(racks) + others).astype(np.int64)


def _receives(arrays: Arrays, request: Request, able: Bools, forced: Bools) -> Bools:
    """Brokers that are being added take everything, unless something else is asked for too."""
    if not request.add or request.balance or request.relieve or forced.any():
        return able
    new: Bools = able & np.array([broker in request.add for broker in arrays.brokers], dtype=bool)
    return new


def _topic_limit(arrays: Arrays, part_of: Ints, request: Request, name: str, able: Bools) -> Ints:
    band = request.bands.get(name, DEFAULT_BAND)
    if not request.spread_topics or band is None:
        return np.zeros(0, dtype=np.int64)
    return most_per_broker(np.bincount(arrays.topic[part_of]), int(able.sum()), band)


def _bands(
    arrays: Arrays, slots: Slots, request: Request, goals: Sequence[tuple[Goal, Columns]], able: Bools
) -> tuple[Floats, Floats, Floats]:
    """Shares, and between what and what each broker should have of each goal.

    Where nothing is to be balanced, a broker may keep what it has, but gets no worse than its band.
    """
    share = np.zeros((len(able), len(goals)))
    lower, upper = np.zeros_like(share), np.zeros_like(share)
    for number, (goal, columns) in enumerate(goals):
        total, now, fixed = _sums(slots, columns, able)
        strength = np.where(able, columns.strength, 0.0)
        mean = max(total - fixed, 0.0) * strength / strength.sum()
        share[:, number] = mean
        band = _band(request, goal)
        low, high = _around(mean, band, goal.counted)
        if band is None:
            low, high = np.zeros_like(mean), np.full_like(mean, 2 * total + 1)
        elif goal.name in request.relieve and not request.balance:
            low, high = np.minimum(low, now), mean * request.relieve[goal.name]
        elif not (request.balance or request.add or _led(request, columns)):
            low, high = np.minimum(low, now), np.maximum(high, now)
        if request.add and not request.balance:
            new = np.array([broker in request.add for broker in arrays.brokers], dtype=bool)
            low = np.where(new, low, np.minimum(low, now))
        lower[:, number] = np.where(able, low, 0.0)
        upper[:, number] = np.where(able, high, 2 * total + 1)
    return share, lower, upper


def _led(request: Request, columns: Columns) -> bool:
    """Whether leaders are to be evened out and the goal depends on who leads."""
    return request.leaders and bool((columns.leading != columns.following).any())


def _around(mean: Floats, band: float | None, counted: bool) -> tuple[Floats, Floats]:
    band = band or 0.0
    low, high = mean * (1 - min(band, 1.0)), mean * (1 + band)
    if counted:
        low, high = np.minimum(low, np.floor(mean + 1e-9)), np.maximum(high, np.ceil(mean - 1e-9))
    return low, high


def _sums(slots: Slots, columns: Columns, able: Bools) -> tuple[float, Floats, float]:
    """All there will be of a goal, what each broker has of it now, and what stays on those that take none."""
    counts = np.diff(slots.offsets)
    total = float((columns.leading + columns.following * (counts - 1)).sum())
    carried = columns.following[slots.part_of]
    carried[slots.leader] = columns.leading
    there = slots.home >= 0
    now: Floats = np.bincount(slots.home[there], carried[there], minlength=len(able)).astype(np.float64)
    stays = there & ~slots.mandatory & ~able[slots.home]
    return total, now, float(carried[stays].sum())
