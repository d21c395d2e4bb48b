"""Turn a request into a problem for the search: bands for every goal, what must move, what may."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.plan.goals import (
    DEFAULT_BAND,
    GOALS,
    TOPIC_LEADERS,
    TOPIC_REPLICAS,
    most_per_broker,
    resource_goal,
)
from restow.plan.request.demands import demotable, slots_of
from restow.plan.request.refusals import (
    check_brokers,
    check_numbers,
    check_replacements,
    check_replication_factors,
)
from restow.plan.search.arrays import arrays_of, mask_of
from restow.plan.search.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.model import Plan, Snapshot
    from restow.model.load import LoadModel
    from restow.plan.goals import Columns, Goal
    from restow.plan.request.demands import Slots
    from restow.plan.request.request import PlanRequest
    from restow.plan.search.arrays import Arrays
    from restow.plan.search.problem import Bools, Floats, Ints


@frozen
class Asked:
    """A request as arrays."""

    request: PlanRequest
    arrays: Arrays
    slots: Slots
    goals: tuple[Goal, ...]
    share: Floats
    """Brokers × goals: the even load."""
    share_before: Floats
    """The even load of what there is now, on the brokers that carry it now."""
    covered: Bools
    able: Bools
    """Brokers that may receive replicas."""
    must: Bools
    """Partitions that must change: a replica has to move, or leadership has to leave a broker."""
    problem: Problem


def ask(snapshot: Snapshot, load: LoadModel | None, request: PlanRequest) -> Asked:
    """Turn a request into arrays, or raise an error that says why it is impossible."""
    check_numbers(request)
    arrays = arrays_of(snapshot, load, request.fill)
    check_brokers(arrays, request)
    goals = _goals(arrays, request)
    covered = _covered(arrays, request)
    able, cordoned = _able(arrays, request)
    slots = slots_of(arrays, request, covered, able)
    check_replication_factors(arrays, slots, able)
    check_replacements(arrays, request, slots)
    brokers = _Roles(able=able, cordoned=cordoned, demoted=mask_of(arrays, request.demote))
    share, lower, upper = _bands(arrays, slots, request, goals, brokers)
    forced, mine = slots.forced, covered[slots.part_of]
    touched = np.add.reduceat(forced & (slots.pinned < 0), slots.offsets[:-1]) > 0
    led_by = slots.home[slots.leader]
    evened = ~arrays.lagging & brokers.may_lead[led_by] & (request.sheds | request.leaders)
    demoted = covered & demotable(arrays, request, slots)
    settled = (slots.home >= 0) & (able | cordoned)[slots.home]
    problem = Problem(
        rack=arrays.rack,
        offsets=slots.offsets,
        home=slots.home,
        own=slots.own,
        leader=slots.leader,
        leading=np.stack([columns.leading for _, columns in goals], axis=1),
        following=np.stack([columns.following for _, columns in goals], axis=1),
        lower=lower,
        upper=upper,
        importance=np.array([request.weights.get(goal.name, 1.0) or 1.0 for goal, _ in goals]),
        room=arrays.room,
        racks_wanted=_racks_wanted(arrays, slots, able),
        receives=_receives(arrays, request, able, forced),
        may_lead=brokers.may_lead,
        forced=forced,
        pinned=slots.pinned,
        movable=mine & settled & request.sheds,
        may_change_leader=covered & (touched | evened | (demoted & ~arrays.lagging)),
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
        share_before=share if request.keeps_shares else _share_before(arrays, request, goals, covered),
        covered=covered,
        able=able,
        must=demoted | (np.add.reduceat(forced, slots.offsets[:-1]) > 0),
        problem=problem,
    )


def begun(asked: Asked, old: Plan) -> Problem:
    """Return the problem with the targets of an old plan to begin with, as far as they fit the request."""
    arrays, problem = asked.arrays, asked.problem
    begin, leader = problem.home.copy(), problem.leader.copy()
    number = {name: at for at, name in enumerate(arrays.names)}
    for move in old.moves:
        at = number.get(move.partition)
        if at is None or not {*move.after} <= arrays.index.keys():
            continue
        slots = range(int(problem.offsets[at]), int(problem.offsets[at + 1]))
        if len(move.after) != len(slots):
            continue
        wanted = [arrays.index[each] for each in move.after]
        stays = {slot for slot in slots if int(problem.home[slot]) in wanted and not problem.forced[slot]}
        come = iter([each for each in wanted if each not in {int(problem.home[slot]) for slot in stays}])
        for slot in slots:
            if slot not in stays:
                begin[slot] = next(come)
            if begin[slot] == wanted[0]:
                leader[at] = slot
    return replace(problem, begin=begin, begin_leader=leader)


def _share_before(
    arrays: Arrays, request: PlanRequest, goals: Sequence[tuple[Goal, Columns]], covered: Bools
) -> Floats:
    """Return the even load if the request changed no replication factor and took nothing from a broker."""
    kept = replace(
        request,
        fix_racks=False,
        spread_topics=False,
        drain=frozenset(),
        demote=frozenset(),
        replace={},
        replication_factors={},
    )
    able, cordoned = _able(arrays, kept)
    brokers = _Roles(able=able, cordoned=cordoned, demoted=mask_of(arrays, kept.demote))
    return _bands(arrays, slots_of(arrays, kept, covered, able), kept, goals, brokers)[0]


@frozen
class _Roles:
    """Which brokers may receive replicas, which may only give, and which may not lead."""

    able: Bools
    cordoned: Bools
    demoted: Bools

    @property
    def sharing(self) -> Bools:
        """Return the brokers that share the load."""
        both: Bools = self.able | self.cordoned
        return both

    @property
    def may_lead(self) -> Bools:
        may: Bools = self.sharing & ~self.demoted
        return may


def _goals(arrays: Arrays, request: PlanRequest) -> list[tuple[Goal, Columns]]:
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


def _band(request: PlanRequest, goal: Goal) -> float | None:
    if request.weights.get(goal.name) == 0:
        return None
    return request.bands.get(goal.name, goal.band)


def _covered(arrays: Arrays, request: PlanRequest) -> Bools:
    """Return the partitions that may change. Refuse patterns without a topic: they are likely misspelt."""
    starts = np.flatnonzero(np.diff(arrays.topic, prepend=-1)).tolist()
    topics = {arrays.names[at].topic for at in starts}
    for pattern in (*request.only_topics, *request.replication_factors):
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
    if not covered.any() and not request.names_partitions:
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


def _able(arrays: Arrays, request: PlanRequest) -> tuple[Bools, Bools]:
    """Return which brokers may receive replicas, and which may only give."""
    may: Bools = arrays.alive & ~mask_of(arrays, request.barred)
    cordoned: Bools = may & (arrays.cordoned | mask_of(arrays, request.cordon))
    able: Bools = may & ~cordoned
    if not able.any():
        raise InvalidInput(
            "no broker is left that could take a replica: drain, exclude or cordon fewer brokers, or add one"
        )
    return able, cordoned


def _racks_wanted(arrays: Arrays, slots: Slots, able: Bools) -> Ints:
    """Return how many racks each partition can span, counting racks where its replicas stay."""
    racks = np.unique(arrays.rack[able])
    resting = (slots.home >= 0) & ~slots.forced
    elsewhere = np.flatnonzero(resting & ~np.isin(arrays.rack[slots.home], racks))
    many = int(arrays.rack.max()) + 1
    pairs = np.unique(slots.part_of[elsewhere] * many + arrays.rack[slots.home[elsewhere]])
    others = np.bincount(pairs // many, minlength=len(slots.offsets) - 1)
    return np.minimum(np.diff(slots.offsets), len(racks) + others).astype(np.int64)


def _receives(arrays: Arrays, request: PlanRequest, able: Bools, forced: Bools) -> Bools:
    """Return the receiving brokers: only the added ones, unless the request asks for more."""
    if not request.add or request.balance or request.relieve or forced.any():
        return able
    new: Bools = able & mask_of(arrays, request.add)
    return new


def _topic_limit(arrays: Arrays, part_of: Ints, request: PlanRequest, name: str, able: Bools) -> Ints:
    band = request.bands.get(name, DEFAULT_BAND)
    if not request.spread_topics or band is None:
        return np.zeros(0, dtype=np.int64)
    return most_per_broker(np.bincount(arrays.topic[part_of]), int(able.sum()), band)


def _bands(
    arrays: Arrays, slots: Slots, request: PlanRequest, goals: Sequence[tuple[Goal, Columns]], brokers: _Roles
) -> tuple[Floats, Floats, Floats]:
    """Return the shares, and the lower and upper bounds of each broker for each goal.

    Without balancing, a broker may keep its load, but must not get worse than its band.
    """
    share = np.zeros((len(brokers.able), len(goals)))
    lower, upper = np.zeros_like(share), np.zeros_like(share)
    for number, (goal, columns) in enumerate(goals):
        only_leaders_count = not columns.following.any()
        takes_part = brokers.may_lead if only_leaders_count else brokers.sharing
        total, now, fixed = _sums(slots, columns, brokers.sharing, None if number else slots.own)
        strength = np.where(takes_part, columns.strength, 0.0)
        givers = brokers.cordoned & (not only_leaders_count)
        mean = _shared_out(total - fixed, strength, now, givers)
        share[:, number] = mean
        band = _band(request, goal)
        low, high = around(mean, band, goal.counted)
        if band is None:
            low, high = np.zeros_like(mean), np.full_like(mean, 2 * total + 1)
        elif goal.name in request.relieve and not request.balance:
            low, high = np.minimum(low, now), mean * request.relieve[goal.name]
        elif not is_asked(request, columns.leading, columns.following):
            low, high = np.minimum(low, now), np.maximum(high, now)
        if request.add and not request.balance:
            new = mask_of(arrays, request.add)
            low = np.where(new, low, np.minimum(low, now))
        if (columns.leading != columns.following).any():
            low = np.where(brokers.demoted, 0.0, low)
        short = takes_part & givers & (mean <= 0.0)
        level = mean.sum() / max(float(strength[mean > 0.0].sum()), 1e-300)
        high = np.where(short, np.maximum(now, level * strength * (1 + (band or 0.0))), high)
        lower[:, number] = np.where(takes_part & ~short, low, 0.0)
        upper[:, number] = np.where(takes_part, high, 2 * total + 1)
    return share, lower, upper


def _shared_out(amount: float, strength: Floats, now: Floats, givers: Bools) -> Floats:
    """Return the even load of each broker, in proportion to its capacity.

    Cordoned brokers (`givers`) receive nothing: one below its share keeps its load, with a share of 0, and
    the others share the rest.
    """
    part = strength > 0
    while True:
        weight = np.where(part, strength, 0.0)
        kept = float(now[(strength > 0) & ~part].sum())
        mean: Floats = max(amount - kept, 0.0) * weight / max(float(weight.sum()), 1e-300)
        short = part & givers & (now < mean)
        if not short.any():
            return mean
        part = part & ~short


def is_asked(request: PlanRequest, leading: Floats, following: Floats) -> bool:
    """Return whether the request balances a goal: all goals, or those that depend on leaders."""
    if request.balance or request.add:
        return True
    return request.leaders and bool((leading != following).any())


def around(mean: Floats, band: float | None, counted: bool) -> tuple[Floats, Floats]:
    """Return the band around the shares; for counted goals, at least to the next whole numbers."""
    band = band or 0.0
    low, high = mean * (1 - min(band, 1.0)), mean * (1 + band)
    if counted:
        low, high = np.minimum(low, np.floor(mean + 1e-9)), np.maximum(high, np.ceil(mean - 1e-9))
    return low, high


def _sums(slots: Slots, columns: Columns, sharing: Bools, own: Floats | None) -> tuple[float, Floats, float]:
    """Return the total of a goal, each broker's present load, and the load outside the sharing brokers.

    Replicas count with their `own` sizes, and in the total those that every plan copies with their leader's.
    """
    counts = np.diff(slots.offsets)
    total = float((columns.leading + columns.following * (counts - 1)).sum())
    carried = columns.following[slots.part_of]
    carried[slots.leader] = columns.leading
    there = slots.home >= 0
    if own is not None:
        total += float(own[~slots.mandatory].sum())
        carried += own
    now: Floats = np.bincount(slots.home[there], carried[there], minlength=len(sharing)).astype(np.float64)
    stays = there & ~slots.mandatory & ~sharing[slots.home]
    return total, now, float(carried[stays].sum())
