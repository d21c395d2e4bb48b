"""Refuse impossible requests: what is wrong, where, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.errors import InvalidInput
from restow.sizes import count, some

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.plan.request.demands import Slots
    from restow.plan.request.request import PlanRequest
    from restow.plan.search.arrays import Arrays
    from restow.plan.search.problem import Bools


def check_numbers(request: PlanRequest) -> None:
    """Refuse numbers that cannot be bands, weights, limits or replication factors."""
    numbers = [*request.bands.items(), *request.weights.items(), *request.relieve.items()]
    for name, value in numbers:
        if value is not None and not (np.isfinite(value) and value >= 0):
            raise InvalidInput(f"{name}: {value} cannot be a band, weight or limit; give a number from 0 on")
    if not 0 < request.fill <= 1:
        raise InvalidInput(f"fill {request.fill} is not a share of a disk: give a number between 0 and 1")
    for what, most in (("bytes", request.most_bytes), ("moves", request.most_moves)):
        if most is not None and most < 0:
            raise InvalidInput(f"at most {most} {what} cannot be: give a number from 0 on")
    for topic, replication_factor in request.replication_factors.items():
        if replication_factor < 1:
            raise InvalidInput(
                f"replication factor {replication_factor} for {topic} cannot be: it is at least 1"
            )


def check_brokers(arrays: Arrays, request: PlanRequest) -> None:
    """Refuse brokers that do not exist, and receiving brokers that are down."""
    unknown = sorted(request.named - set(arrays.brokers))
    if unknown:
        there = ", ".join(map(str, arrays.brokers))
        raise InvalidInput(f"unknown brokers {', '.join(map(str, unknown))}: there are {there}")
    new = request.add | frozenset(request.replace.values())
    dead = sorted(broker for broker in new if not arrays.alive[arrays.index[broker]])
    if dead:
        raise InvalidInput(f"brokers {', '.join(map(str, dead))} are down: start them first")
    kept = sorted(request.leaving & request.except_brokers)
    if kept:
        raise InvalidInput(
            f"brokers {', '.join(map(str, kept))} are to be emptied and to be left alone: choose one"
        )
    both = sorted(new & (request.barred | request.cordon))
    if both:
        raise InvalidInput(
            f"brokers {', '.join(map(str, both))} are to receive replicas and to get none: choose one"
        )
    shut = sorted(broker for broker in new if arrays.cordoned[arrays.index[broker]])
    if shut:
        raise InvalidInput(
            f"brokers {', '.join(map(str, shut))} are to receive replicas, but all their log dirs are "
            "cordoned: uncordon one, or choose other brokers"
        )


def check_replication_factors(arrays: Arrays, slots: Slots, able: Bools) -> None:
    """Refuse partitions with more replicas to place than brokers to take them."""
    _check_insync(arrays, slots)
    forced = slots.forced
    counts = np.diff(slots.offsets)
    stays = np.add.reduceat(~forced & (slots.home >= 0) & ~able[slots.home], slots.offsets[:-1])
    needs = np.where(np.add.reduceat(forced, slots.offsets[:-1]) > 0, counts - stays, 0)
    worst = int(np.argmax(needs))
    missing = int(needs[worst]) - int(able.sum())
    if missing > 0:
        raise InvalidInput(
            f"{arrays.names[worst]} is to have {counts[worst]} replicas on different brokers, but only "
            f"{count(int(able.sum()), 'broker')} may take them: add {missing} or let {missing} "
            f"fewer leave, or lower its replication factor to {int(counts[worst]) - missing}"
        )


def _check_insync(arrays: Arrays, slots: Slots) -> None:
    """Refuse fewer replicas than min.insync.replicas: producers with acks=all could no longer write."""
    counts = np.diff(slots.offsets)
    fewer = np.flatnonzero((counts < arrays.counts) & (counts < arrays.min_insync))
    if fewer.size:
        first = int(fewer[0])
        raise InvalidInput(
            f"{arrays.names[first]} is to have {counts[first]} replicas, but min.insync.replicas of "
            f"{arrays.names[first].topic} is {arrays.min_insync[first]}: nobody could write with acks=all. "
            f"{len(fewer):,} partitions are like that: lower min.insync.replicas first, or leave them out"
        )


def check_replacements(arrays: Arrays, request: PlanRequest, slots: Slots) -> None:
    """Refuse a replacement that cannot have exactly the replicas of the replaced broker."""
    pinned = np.flatnonzero(slots.pinned >= 0)
    if not pinned.size:
        return
    part_of = slots.part_of
    target = np.where(slots.pinned >= 0, slots.pinned, slots.home)
    twice, one_rack = [], []
    for slot in pinned.tolist():
        number = int(part_of[slot])
        span = range(int(slots.offsets[number]), int(slots.offsets[number + 1]))
        others = [int(target[each]) for each in span if each != slot]
        new, old = int(slots.pinned[slot]), int(slots.home[slot])
        if new in others:
            twice.append((number, old, new))
            continue
        racks = {int(arrays.rack[each]) for each in others if each >= 0}
        had_own_rack = int(arrays.rack[old]) not in racks
        if had_own_rack and int(arrays.rack[new]) in racks and not request.any_rack:
            one_rack.append((number, old, new))
    if twice:
        _, old, new = twice[0]
        raise InvalidInput(
            f"broker {arrays.brokers[new]} cannot have all that broker {arrays.brokers[old]} has: of "
            f"{len(twice):,} partitions it has a replica already: {_named(arrays, twice)}. Choose another "
            f"broker, or spread what is there over several: restow plan drain {arrays.brokers[old]}"
        )
    if one_rack:
        number, old, new = one_rack[0]
        raise InvalidInput(
            f"broker {arrays.brokers[old]} is in rack {arrays.rack_names[old]!r}, but broker "
            f"{arrays.brokers[new]} in rack {arrays.rack_names[new]!r}: in its place it would put two "
            f"replicas into one rack, of {len(one_rack):,} partitions: {_named(arrays, one_rack)}. Choose a "
            f"broker in rack {arrays.rack_names[old]!r}, let the others share what it has (restow plan drain "
            f"{arrays.brokers[old]}), or allow it with --any-rack"
        )


def _named(arrays: Arrays, found: Sequence[tuple[int, int, int]]) -> str:
    return some(arrays.names[number] for number, _, _ in found)
