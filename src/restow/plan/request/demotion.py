"""Brokers that are to lead nothing: leadership passes to another replica that is there and in sync."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from restow.model import BrokerId
    from restow.plan.request.demands import Slots
    from restow.plan.request.framing import Asked
    from restow.plan.request.request import PlanRequest
    from restow.plan.search.arrays import Arrays, Bools, Ints


def demotable(arrays: Arrays, request: PlanRequest, slots: Slots) -> Bools:
    """Partitions that a demoted broker leads, or would lead, and that another replica could lead."""
    found = np.zeros(len(arrays.names), dtype=bool)
    for number in led_by_demoted(arrays, request):
        holders = slots.home[int(slots.offsets[number]) : int(slots.offsets[number + 1])].tolist()
        found[number] = any(_may_lead(arrays, request, number, holder) for holder in holders)
    return found


def led_by_demoted(arrays: Arrays, request: PlanRequest) -> list[int]:
    """Partitions with a demoted broker as their leader, or as the first of their live replicas."""
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
    """The same leaders, but where a demoted broker would still lead the first replica that is in sync does.

    The search leaves out partitions with a replica that lags behind: it does not know which one could be
    elected.
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
    """The same replicas, those on demoted brokers after the others."""
    return sorted(replicas, key=lambda broker: broker in request.demote) if request.demote else replicas


def _may_lead(arrays: Arrays, request: PlanRequest, number: int, holder: int) -> bool:
    if holder < 0 or not arrays.alive[holder]:
        return False
    broker = arrays.brokers[holder]
    partition = arrays.partitions[number]
    barred = broker in request.demote or broker in request.barred
    return not barred and (broker in partition.isr or broker not in partition.replicas)
