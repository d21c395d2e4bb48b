"""Change the leaders of two partitions at once, where changing one does not help any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.search.compiled import begin, compiled, pick, step
from restow.plan.search.leaders import is_crowded, pass_on
from restow.plan.search.rules import wrong, wrong_after

if TYPE_CHECKING:
    from restow.plan.search.leaders import Lead
    from restow.plan.search.problem import Floats, Ints

_NOTHING = 1e-18
_TRIES = 20_000
# A trade must reduce its broker's distance from the bands by this share,
_WORTH = 1e-3
# and one that reduces it by this much is made at once.
_GOOD = 0.1
_ROUNDS = 50


@compiled
def trade_leaders(lead: Lead, seed: int) -> float:
    """Let brokers out of band trade the lead of one partition for another; return the remaining distance.

    Changes `lead.load` and `lead.leader`.
    """
    brokers = lead.load.shape[0]
    off = np.empty(brokers)
    for broker in range(brokers):
        off[broker] = wrong(lead.load, lead.lower, lead.upper, broker)
    draw = begin(seed)
    for broker in np.argsort(-off):
        if off[broker] <= _NOTHING:
            continue
        mine = _slots_of(lead, broker)
        for _ in range(_ROUNDS):
            if off[broker] <= _NOTHING:
                break
            draw = step(draw)
            taken, given = _best_trade(lead, off, broker, mine, draw)
            if taken < 0:
                break
            pass_on(lead, off, lead.part_of[taken], taken)
            pass_on(lead, off, lead.part_of[given], given)
    return float(off.sum())


@compiled
def _slots_of(lead: Lead, broker: int) -> Ints:
    """Return a broker's replicas of partitions whose leader may change."""
    found = np.empty(len(lead.holder), np.int64)
    count = 0
    for replica in range(len(lead.holder)):
        if lead.holder[replica] == broker and lead.may_change[lead.part_of[replica]]:
            found[count] = replica
            count += 1
    return found[:count].copy()


@compiled
def _best_trade(lead: Lead, off: Floats, broker: int, mine: Ints, draw: np.uint64) -> tuple[int, int]:
    """Return a replica of this broker that should lead, and one elsewhere that should lead in return."""
    best_taken, best_given, best_gain = -1, -1, -off[broker] * _WORTH
    for _ in range(_TRIES if len(mine) > 1 and lead.may_lead[broker] else 0):
        draw = step(draw)
        taken = mine[pick(draw, len(mine))]
        draw = step(draw)
        left = mine[pick(draw, len(mine))]
        one, other = lead.part_of[taken], lead.part_of[left]
        if lead.leader[one] == taken or lead.leader[other] != left:
            continue
        draw = step(draw)
        given = lead.offsets[other] + pick(draw, lead.offsets[other + 1] - lead.offsets[other])
        to, from_ = lead.holder[given], lead.holder[lead.leader[one]]
        if given == left or not lead.may_lead[to]:
            continue
        if len(lead.topic_most) and (is_crowded(lead, one, broker, 0) or is_crowded(lead, other, to, 0)):
            continue
        gain = _gain(lead, off, broker, from_, to, one, other)
        if gain < best_gain:
            best_taken, best_given, best_gain = taken, given, gain
            if best_gain < -off[broker] * _GOOD:
                break
    return best_taken, best_given


@compiled
def _gain(lead: Lead, off: Floats, broker: int, from_: int, to: int, one: int, other: int) -> float:
    load, lower, upper, leading = lead.load, lead.lower, lead.upper, lead.leading
    gain: float = wrong_after(load, lower, upper, broker, leading, one, other) - off[broker]
    if from_ == to:
        gain += wrong_after(load, lower, upper, to, leading, other, one) - off[to]
    else:
        gain += wrong_after(load, lower, upper, from_, leading, -1, one) - off[from_]
        gain += wrong_after(load, lower, upper, to, leading, other, -1) - off[to]
    return gain
