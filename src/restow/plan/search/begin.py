"""Begin the search with the targets of an earlier plan, so that little of it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.search.lead import lead_of, out_of_band
from restow.plan.search.problem import Solution
from restow.plan.search.rules import has_room, may_go, own_at, transfer

if TYPE_CHECKING:
    from restow.plan.search.problem import Ints, Problem, SearchSpace, SearchState
    from restow.plan.search.scale import Scaled

_SLACK = 1e-9


def begin_with(problem: Problem, space: SearchSpace, state: SearchState) -> Ints:
    """Move replicas where the earlier plan has them, as far as the rules allow it now; return those."""
    moved: list[int] = []
    if problem.begin is None:
        return np.zeros(0, dtype=np.int64)
    may = problem.movable | problem.forced
    if problem.pinned is not None:
        may = may & (problem.pinned < 0)
    for replica in np.flatnonzero(may & (problem.begin != state.holder) & (problem.begin >= 0)).tolist():
        there = int(problem.begin[replica])
        partition = int(space.part_of[replica])
        if not problem.receives[there] or not may_go(space, state, replica, there):
            continue
        if has_room(space, state, there, partition, -1, own_at(space, replica, there)):
            transfer(space, state, replica, there)
            moved.append(replica)
    return np.array(moved, dtype=np.int64)


def as_begun(problem: Problem, scaled: Scaled, state: SearchState) -> Solution | None:
    """Return the earlier plan's placement and leaders if they bring everything into band, otherwise None."""
    leader = problem.leader if problem.begin_leader is None else problem.begin_leader
    leader = np.where(problem.may_change_leader, leader, problem.leader)
    leader = np.where(problem.may_lead[state.holder[leader]], leader, problem.leader)
    out = out_of_band(scaled, lead_of(problem, scaled, state.holder, leader).load)
    limited = problem.topic_leaders is not None and len(problem.topic_leaders) > 0
    if limited or not problem.may_lead[state.holder[leader]].all() or out.sum() > _SLACK:
        return None
    return Solution(holder=state.holder, leader=leader, homeless=np.zeros(0, dtype=np.int64), wrong=0.0)
