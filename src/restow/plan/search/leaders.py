"""Choose leaders among existing replicas, which copies nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.plan.search.compiled import compiled
from restow.plan.search.rules import wrong, wrong_after

if TYPE_CHECKING:
    from restow.plan.search.problem import Bools, Floats, Ints

_NOTHING = 1e-12


class Lead(NamedTuple):
    """All that leadership depends on; loads and bands are brokers × goals, as elsewhere."""

    load: Floats
    lower: Floats
    upper: Floats
    leading: Floats
    """Partitions × goals: the load that leading adds."""
    following: Floats
    """Partitions × goals: the load of a replica that does not lead."""
    offsets: Ints
    part_of: Ints
    """Each replica's partition."""
    holder: Ints
    leader: Ints
    """The leading replica of each partition."""
    may_lead: Bools
    """Brokers that may lead."""
    may_change: Bools
    """Partitions whose leader may change."""
    topic: Ints
    """Each partition's topic."""
    topic_most: Ints
    """The most leaders of each topic that one broker may have; empty without such a limit."""
    spread: Ints
    """Topics × brokers: each broker's leaders of a topic; empty without a limit."""


@compiled
def choose_leaders(lead: Lead, passes: int) -> int:
    """Pass leadership on wherever that brings brokers nearer to their bands; return how often.

    Changes `lead.load` and `lead.leader`.
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
                pass_on(lead, off, partition, best)
                changed += 1
        if changed == before:
            break
    return changed


@compiled
def _best_leader(lead: Lead, off: Floats, partition: int) -> int:
    load, lower, upper, leading = lead.load, lead.lower, lead.upper, lead.leading
    here = lead.holder[lead.leader[partition]]
    trouble = off[here]
    for replica in range(lead.offsets[partition], lead.offsets[partition + 1]):
        trouble += off[lead.holder[replica]]
    if trouble == 0.0:
        return -1
    relief = wrong_after(load, lower, upper, here, leading, -1, partition) - off[here]
    best, best_gain = -1, -_NOTHING
    for replica in range(lead.offsets[partition], lead.offsets[partition + 1]):
        there = lead.holder[replica]
        if there == here or not lead.may_lead[there] or (off[here] == 0.0 and off[there] == 0.0):
            continue
        if len(lead.topic_most) and is_crowded(lead, partition, there, 0):
            continue
        gain = relief + wrong_after(load, lower, upper, there, leading, partition, -1) - off[there]
        if gain < best_gain:
            best, best_gain = replica, gain
    return best


@compiled
def pass_on(lead: Lead, off: Floats, partition: int, replica: int) -> None:
    """Make another replica lead a partition; update the loads and the distances from the bands."""
    here, there = lead.holder[lead.leader[partition]], lead.holder[replica]
    for goal in range(lead.load.shape[1]):
        lead.load[here, goal] -= lead.leading[partition, goal]
        lead.load[there, goal] += lead.leading[partition, goal]
    off[here] = wrong(lead.load, lead.lower, lead.upper, here)
    off[there] = wrong(lead.load, lead.lower, lead.upper, there)
    lead.leader[partition] = replica
    if len(lead.topic_most):
        topic = lead.topic[partition]
        lead.spread[topic, here] -= 1
        lead.spread[topic, there] += 1


@compiled
def is_crowded(lead: Lead, partition: int, broker: int, beyond: int) -> bool:
    """Return whether a broker leads as many partitions of this one's topic as allowed, plus `beyond`."""
    topic = lead.topic[partition]
    return bool(lead.spread[topic, broker] >= lead.topic_most[topic] + beyond)


@compiled
def spread_leaders(lead: Lead) -> None:
    """Take leadership from brokers that lead too many partitions of a topic, at the least cost."""
    load, lower, upper, leading = lead.load, lead.lower, lead.upper, lead.leading
    off = np.empty(load.shape[0])
    for broker in range(len(off)):
        off[broker] = wrong(load, lower, upper, broker)
    for partition in range(len(lead.leader)):
        here = lead.holder[lead.leader[partition]]
        if not lead.may_change[partition] or not is_crowded(lead, partition, here, 1):
            continue
        best, least = -1, np.inf
        for replica in range(lead.offsets[partition], lead.offsets[partition + 1]):
            there = lead.holder[replica]
            if there == here or not lead.may_lead[there] or is_crowded(lead, partition, there, 0):
                continue
            harm = wrong_after(load, lower, upper, there, leading, partition, -1) - off[there]
            if harm < least:
                best, least = replica, harm
        if best >= 0:
            pass_on(lead, off, partition, best)
