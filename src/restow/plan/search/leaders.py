"""Who leads: leadership passes between replicas that are there anyway, which copies nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.plan.search.compiled import compiled
from restow.plan.search.rules import wrong, wrong_after

if TYPE_CHECKING:
    from restow.plan.search.ground import Bools, Floats, Ints

_NOTHING = 1e-12


class Lead(NamedTuple):
    """All that leadership depends on; loads and bands are brokers × goals, as elsewhere."""

    load: Floats
    lower: Floats
    upper: Floats
    leading: Floats
    """Partitions × goals: what leading adds to a broker's load."""
    offsets: Ints
    holder: Ints
    leader: Ints
    """Which replica leads each partition."""
    may_lead: Bools
    """Which brokers may."""
    may_change: Bools
    """Which partitions' leaders may change."""


@compiled
def choose_leaders(lead: Lead, passes: int) -> int:
    """Pass leadership on wherever that brings brokers nearer to their bands; return how often it was.

    `lead.load` and `lead.leader` are changed.
    """
    off = np.empty(lead.load.shape[0])
    for broker in range(len(off)):
        off[broker] = wrong(lead.load, lead.lower, lead.upper, broker)
    changed = 0
    for _ in range(passes):
        if off.sum() < _NOTHING:
            break
        before = changed
        for partition in range(len(lead.leader)):
            if not lead.may_change[partition]:
                continue
            best = _best_leader(lead, off, partition)
            if best >= 0:
                _pass_on(lead, off, partition, best)
                changed += 1
        if changed == before:
            break
    return changed


@compiled
def _best_leader(lead: Lead, off: Floats, partition: int) -> int:
    load, lower, upper, leading = lead.load, lead.lower, lead.upper, lead.leading
    here = lead.holder[lead.leader[partition]]
    relief = wrong_after(load, lower, upper, here, leading, -1, partition) - off[here]
    best, best_gain = -1, -_NOTHING
    for replica in range(lead.offsets[partition], lead.offsets[partition + 1]):
        there = lead.holder[replica]
        if there == here or not lead.may_lead[there] or (off[here] == 0.0 and off[there] == 0.0):
            continue
        gain = relief + wrong_after(load, lower, upper, there, leading, partition, -1) - off[there]
        if gain < best_gain:
            best, best_gain = replica, gain
    return best


@compiled
def _pass_on(lead: Lead, off: Floats, partition: int, replica: int) -> None:
    here, there = lead.holder[lead.leader[partition]], lead.holder[replica]
    for goal in range(lead.load.shape[1]):
        lead.load[here, goal] -= lead.leading[partition, goal]
        lead.load[there, goal] += lead.leading[partition, goal]
    off[here] = wrong(lead.load, lead.lower, lead.upper, here)
    off[there] = wrong(lead.load, lead.lower, lead.upper, there)
    lead.leader[partition] = replica
