"""Choose the leaders, once the replicas have their brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.search.leaders import Lead, choose_leaders, spread_leaders
from restow.plan.search.rules import add_own
from restow.plan.search.scale import sums
from restow.plan.search.trade import trade_leaders

if TYPE_CHECKING:
    from restow.plan.search.problem import Floats, Ints, Problem
    from restow.plan.search.scale import Scaled

# Leaders cost nothing, so the search aims this far inside their bands, as a share of their width: it need not
# end exactly at the edge.
_INSIDE = 0.05
_PASSES = 200


def lead_of(problem: Problem, scaled: Scaled, holder: Ints, leader: Ints, inside: float = 0.0) -> Lead:
    """Return all that leadership depends on, with the loads of these leaders."""
    brokers = len(problem.rack)
    load = sums(holder, scaled.following, scaled.replicas.part_of, brokers)
    load += sums(holder[leader], scaled.extra, np.arange(len(leader)), brokers)
    add_own(scaled.replicas, holder, load)
    margin = np.full(load.shape[1], inside)
    margin[scaled.goals] = 0.0
    width = scaled.upper - scaled.lower
    none = np.zeros(0, dtype=np.int64)
    limited = problem.topic_leaders is not None and len(problem.topic_leaders) > 0
    return Lead(
        load=load,
        lower=scaled.lower + width * margin,
        upper=scaled.upper - width * margin,
        leading=scaled.extra,
        following=scaled.following,
        offsets=problem.offsets,
        part_of=scaled.replicas.part_of,
        holder=holder,
        leader=leader,
        may_lead=problem.may_lead,
        may_change=problem.may_change_leader,
        topic=scaled.replicas.topic,
        topic_most=problem.topic_leaders if limited and problem.topic_leaders is not None else none,
        spread=table(problem, holder[leader], np.arange(len(leader)), limited),
    )


def table(problem: Problem, holder: Ints, part_of: Ints, wanted: bool) -> Ints:
    """Return topics × brokers: the replicas of each broker; empty if not wanted."""
    if not wanted or problem.topic is None:
        return np.zeros((0, 0), dtype=np.int64)
    topics, brokers = int(problem.topic.max()) + 1, len(problem.rack)
    there = holder >= 0
    place = problem.topic[part_of[there]] * brokers + holder[there]
    return np.bincount(place, minlength=topics * brokers).reshape(topics, brokers).astype(np.int64)


def choose(problem: Problem, scaled: Scaled, holder: Ints, *, trades: bool = True) -> Ints:
    """Return the leader of each partition; `trades` are tried where passing on one leader does not help."""
    lead = lead_of(problem, scaled, holder, problem.leader.copy(), _INSIDE)
    _leave_the_unable(lead)
    if len(lead.topic_most):
        spread_leaders(lead)
    choose_leaders(lead, _PASSES)
    return _traded(problem, scaled, lead) if trades else lead.leader


def _traded(problem: Problem, scaled: Scaled, lead: Lead) -> Ints:
    """Return the same or better leaders: trades continue only while the bands themselves are missed."""
    if out_of_band(scaled, lead.load).sum() > 0.0:
        trade_leaders(lead._replace(lower=scaled.lower, upper=scaled.upper), problem.seed)
    return lead.leader


def _leave_the_unable(lead: Lead) -> None:
    """Take leadership from brokers that may not lead, for the first replica that may."""
    for partition in np.flatnonzero(~lead.may_lead[lead.holder[lead.leader]] & lead.may_change).tolist():
        first, last = int(lead.offsets[partition]), int(lead.offsets[partition + 1])
        for replica in range(first, last):
            there = int(lead.holder[replica])
            if lead.may_lead[there]:
                here = int(lead.holder[lead.leader[partition]])
                lead.load[here] -= lead.leading[partition]
                lead.load[there] += lead.leading[partition]
                lead.leader[partition] = replica
                break


def out_of_band(scaled: Scaled, load: Floats) -> Floats:
    """Return by goal how far brokers are out of their bands, added up."""
    over = np.maximum(load - scaled.upper, 0.0) + np.maximum(scaled.lower - load, 0.0)
    total: Floats = over.sum(axis=0)
    return total
