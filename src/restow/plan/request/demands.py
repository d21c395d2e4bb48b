"""Lay out the replicas that must move whatever the balance: forced off, added, or dropped.

Every future replica gets a slot. An existing replica has a home; one that a larger replication factor adds
has none. Forced replicas need a new place. For some there was no choice (their broker leaves, or they are
new); others were chosen among several (one of two in the same rack).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.plan.goals import DEFAULT_BAND, TOPIC_REPLICAS, most_per_broker
from restow.plan.search.arrays import first_alive, mask_of

if TYPE_CHECKING:
    from restow.model import BrokerId
    from restow.plan.request.framing import Asked
    from restow.plan.request.request import PlanRequest
    from restow.plan.search.arrays import Arrays
    from restow.plan.search.problem import Bools, Floats, Ints


NOWHERE = -1


@frozen
class Slots:
    """The future replicas of all partitions, and which of them must move."""

    offsets: Ints
    home: Ints
    own: Floats | None
    """By how many bytes each replica differs from its leader's size; None if none does."""
    leader: Ints
    mandatory: Bools
    """Forced without a choice: every plan has to copy these."""
    for_racks: Bools
    for_topics: Bools
    pinned: Ints
    """The target of a forced replica; -1 if it is open."""
    dropped: int
    """How many replicas a smaller replication factor drops."""

    @property
    def forced(self) -> Bools:
        forced: Bools = self.mandatory | self.for_racks | self.for_topics
        return forced

    @property
    def part_of(self) -> Ints:
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def slots_of(arrays: Arrays, request: PlanRequest, covered: Bools, able: Bools) -> Slots:
    """Lay out the future replicas, and mark those that must move."""
    offsets, home, own, dropped = _with_replication_factors(arrays, request, covered)
    part_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    there = home >= 0
    excluded = mask_of(arrays, request.except_brokers)
    mine = covered[part_of] & ~(there & excluded[home])
    leaving = mask_of(arrays, request.leaving)
    leader = _leaders(arrays, offsets, home, request)
    mandatory = ~there | (there & leaving[home] & mine)
    pinned = np.full(len(home), NOWHERE, dtype=np.int64)
    for old, new in request.replace.items():
        pinned[mandatory & (home == arrays.index[old])] = arrays.index[new]
    for_racks = np.zeros(len(home), dtype=bool)
    if request.fix_racks:
        exact = pinned != NOWHERE
        future = np.where(exact, pinned, home)
        for_racks = _doubled(arrays, offsets, future, leader, mandatory & ~exact, mine & ~exact, able)
    for_topics = np.zeros(len(home), dtype=bool)
    if request.spread_topics and request.sheds:
        for_topics = _crowded(arrays, part_of, home, mandatory | for_racks, mine, able, request)
    return Slots(
        offsets=offsets,
        home=home,
        own=own,
        leader=leader,
        mandatory=mandatory,
        for_racks=for_racks,
        for_topics=for_topics,
        pinned=pinned,
        dropped=dropped,
    )


def _leaders(arrays: Arrays, offsets: Ints, home: Ints, request: PlanRequest) -> Ints:
    """Return the first replica of each partition on a working broker, never one that is still to be created.

    A dead broker that is being replaced counts: its replacement leads what it led.
    """
    nowhere = len(arrays.brokers)
    replaced = mask_of(arrays, request.replace)
    able = np.append(arrays.alive | replaced, False)
    return first_alive(offsets, np.where(home >= 0, home, nowhere), able)


def _with_replication_factors(
    arrays: Arrays, request: PlanRequest, covered: Bools
) -> tuple[Ints, Ints, Floats | None, int]:
    """Return offsets, homes and own sizes with the requested replication factors, and how many that drops."""
    if not request.replication_factors:
        return arrays.offsets, arrays.holder, arrays.own, 0
    counts = arrays.counts
    wanted = counts.copy()
    for number in np.flatnonzero(covered).tolist():
        wanted[number] = wanted_replication_factor(arrays, request, number) or counts[number]
    keep = np.ones(len(arrays.holder), dtype=bool)
    fullness = _fullness(arrays)
    for number in np.flatnonzero(wanted < counts).tolist():
        _drop(arrays, number, int(counts[number] - wanted[number]), request, fullness, keep)
    offsets = np.concatenate(([0], np.cumsum(wanted))).astype(np.int64)
    home = np.full(int(offsets[-1]), NOWHERE, dtype=np.int64)
    kept = np.cumsum(keep) - keep
    part_of = arrays.part_of
    place = offsets[part_of] + kept - kept[arrays.offsets[part_of]]
    home[place[keep]] = arrays.holder[keep]
    own = None if arrays.own is None else np.zeros(len(home))
    if own is not None and arrays.own is not None:
        own[place[keep]] = arrays.own[keep]
    return offsets, home, own, int((~keep).sum())


def wanted_replication_factor(arrays: Arrays, request: PlanRequest, number: int) -> int | None:
    """Return the replication factor that the request wants for a partition; None if it wants none."""
    return request.replication_factor_of(arrays.names[number].topic, internal=bool(arrays.internal[number]))


def _fullness(arrays: Arrays) -> Floats:
    each = arrays.facts.size_bytes[arrays.part_of] + (0.0 if arrays.own is None else arrays.own)
    return np.bincount(arrays.holder, each, minlength=len(arrays.brokers)) / arrays.facts.disk_bytes


def _drop(
    arrays: Arrays, number: int, many: int, request: PlanRequest, fullness: Floats, keep: Bools
) -> None:
    """Choose the replicas that a smaller factor drops: on leaving or dead brokers, then second in a rack.

    The partition keeps as many racks as it has, or as it will have replicas. Excluded brokers keep their
    replicas.
    """
    first, last = int(arrays.offsets[number]), int(arrays.offsets[number + 1])
    racks_kept = min(last - first - many, len({int(arrays.rack[at]) for at in arrays.holder[first:last]}))
    for _ in range(many):
        left = [replica for replica in range(first, last) if keep[replica]]
        free = [each for each in left if arrays.brokers[arrays.holder[each]] not in request.except_brokers]
        if not free:
            raise InvalidInput(
                f"{arrays.names[number]} is to have {many} replicas fewer, but those left are on excluded "
                "brokers: exclude fewer, or leave its replication factor as it is"
            )
        racks = [int(arrays.rack[arrays.holder[replica]]) for replica in left]

        def badness(replica: int, racks: list[int] = racks) -> tuple[bool, bool, bool, bool, bool, float]:
            broker = int(arrays.holder[replica])
            is_second = racks.count(int(arrays.rack[broker])) > 1
            return (
                len({*racks}) - (not is_second) >= racks_kept,
                arrays.brokers[broker] in request.leaving,
                not arrays.alive[broker],
                replica != arrays.leader[number],
                is_second,
                float(fullness[broker]),
            )

        keep[max(free, key=badness)] = False


def _doubled(
    arrays: Arrays,
    offsets: Ints,
    home: Ints,
    leader: Ints,
    mandatory: Bools,
    mine: Bools,
    able: Bools,
) -> Bools:
    """Return all but one of a partition's replicas in a rack, while another rack could take one.

    A replica that is replaced counts in `home` at its new broker, and is not `mine` to move on.
    """
    forced = np.zeros(len(home), dtype=bool)
    part_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    racks = len(np.unique(arrays.rack)) + 1
    staying = (home >= 0) & ~mandatory
    pairs = np.unique(part_of[staying] * racks + arrays.rack[home[staying]])
    distinct = np.bincount(pairs // racks, minlength=len(offsets) - 1)
    resting = np.bincount(part_of[staying], minlength=len(offsets) - 1)
    able_racks = set(arrays.rack[able].tolist())
    fullness = _fullness(arrays)
    for number in np.flatnonzero(distinct < resting).tolist():
        first, last = int(offsets[number]), int(offsets[number + 1])
        held = [slot for slot in range(first, last) if staying[slot]]
        present = {int(arrays.rack[home[slot]]) for slot in held}
        open_racks = len(able_racks - present) - (last - first - len(held))
        spare = min(len(held) - len(present), max(open_racks, 0))
        seen: set[int] = set()
        doubles = []
        for slot in sorted(held, key=lambda at: (mine[at], at != leader[number], fullness[home[at]])):
            rack = int(arrays.rack[home[slot]])
            if rack in seen and mine[slot]:
                doubles.append(slot)
            seen.add(rack)
        forced[doubles[len(doubles) - spare :] if spare else []] = True
    return forced


def _crowded(
    arrays: Arrays, part_of: Ints, home: Ints, forced: Bools, mine: Bools, able: Bools, request: PlanRequest
) -> Bools:
    """Return the smallest replicas to move where a live broker has too many of one topic."""
    band = request.bands.get(TOPIC_REPLICAS, DEFAULT_BAND)
    crowded = np.zeros(len(home), dtype=bool)
    if band is None:
        return crowded
    topic = arrays.topic[part_of]
    most = most_per_broker(np.bincount(topic), int(able.sum()), band)
    staying = np.flatnonzero((home >= 0) & ~forced & arrays.alive[home])
    place = topic[staying] * len(arrays.brokers) + home[staying]
    size = arrays.facts.size_bytes[part_of[staying]]
    order = np.lexsort((size, ~mine[staying], place))
    place, staying = place[order], staying[order]
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    counts = np.diff(np.append(starts, len(place)))
    rank = np.arange(len(place)) - np.repeat(starts, counts)
    excess = np.repeat(counts, counts) - most[topic[staying]]
    crowded[staying[(rank < excess) & mine[staying]]] = True
    return crowded


def demotable(arrays: Arrays, request: PlanRequest, slots: Slots) -> Bools:
    """Return partitions that a demoted broker leads, or would lead, and that another replica could lead."""
    found = np.zeros(len(arrays.names), dtype=bool)
    for number in led_by_demoted(arrays, request):
        holders = slots.home[int(slots.offsets[number]) : int(slots.offsets[number + 1])].tolist()
        found[number] = any(_may_lead(arrays, request, number, holder) for holder in holders)
    return found


def led_by_demoted(arrays: Arrays, request: PlanRequest) -> list[int]:
    """Return partitions whose leader, or first live replica, is on a demoted broker."""
    if not request.demote:
        return []
    first = arrays.holder[arrays.leader]
    by_order = {arrays.index[broker] for broker in request.demote}
    return [
        number
        for number, (holder, partition) in enumerate(zip(first.tolist(), arrays.partitions, strict=True))
        if holder in by_order or partition.leader in request.demote
    ]


def with_leaders_in_sync(asked: Asked, holder: Ints, leader: Ints) -> Ints:
    """Return the leaders, with the first in-sync replica where a demoted broker would still lead.

    The search leaves out partitions with a replica out of sync: it does not know which one could be elected.
    """
    arrays, request, offsets = asked.arrays, asked.request, asked.problem.offsets
    if not request.demote:
        return leader
    leader = leader.copy()
    for number in np.flatnonzero(asked.must).tolist():
        if arrays.brokers[int(holder[leader[number]])] not in request.demote:
            continue
        for slot in range(int(offsets[number]), int(offsets[number + 1])):
            if _may_lead(arrays, request, number, int(holder[slot])):
                leader[number] = slot
                break
    return leader


def demoted_last(request: PlanRequest, replicas: list[BrokerId]) -> list[BrokerId]:
    """Return the replicas with those on demoted brokers last."""
    return sorted(replicas, key=lambda broker: broker in request.demote) if request.demote else replicas


def _may_lead(arrays: Arrays, request: PlanRequest, number: int, holder: int) -> bool:
    if holder < 0 or not arrays.alive[holder]:
        return False
    broker = arrays.brokers[holder]
    partition = arrays.partitions[number]
    barred = broker in request.demote or broker in request.barred
    return not barred and (broker in partition.isr or broker not in partition.replicas)
