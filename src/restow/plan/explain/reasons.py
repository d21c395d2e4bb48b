"""Give the reason for every move, in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.request.trim import load_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.plan.request.framing import Asked
    from restow.plan.search.arrays import Floats


class _Worst:
    """The goal that each broker is furthest above, and the one that it is furthest below."""

    def __init__(self, above: Floats, below: Floats) -> None:
        self.above, self.most_above = above.max(axis=1).tolist(), above.argmax(axis=1).tolist()
        self.below, self.most_below = below.max(axis=1).tolist(), below.argmax(axis=1).tolist()


class Reasons:
    """Why partitions move: because they must, or for the goal that their broker is furthest from."""

    def __init__(self, asked: Asked, holder: Sequence[int], leader: Sequence[int]) -> None:
        """Take the target: the broker of every slot, and the leading slot of every partition."""
        self._asked = asked
        self._holder, self._leader = holder, leader
        problem = asked.problem
        load = load_of(asked, problem.home, problem.leader)
        mean = asked.share.mean(axis=0)
        mean = np.where(mean > 0, mean, 1.0)
        above, below = (load - problem.upper) / mean, (problem.lower - load) / mean
        self._any = _Worst(above, below)
        only_replicas = ~(problem.leading != problem.following).any(axis=0)
        self._led_by = _Worst(*(np.where(only_replicas, -np.inf, each) for each in (above, below)))
        forced = asked.slots.forced
        self._must = (np.add.reduceat(forced, problem.offsets[:-1]) > 0).tolist()
        self._demoted = {asked.arrays.index[broker] for broker in asked.request.demote}
        self._forced_slots = forced.tolist()
        self._offsets, self._home = problem.offsets.tolist(), problem.home.tolist()
        self._led = problem.leader.tolist()

    def of(self, number: int) -> str:
        """Return the reason for one partition's move."""
        home, holder = self._home, self._holder
        first, last = self._offsets[number], self._offsets[number + 1]
        if self._must[number]:
            return self._forced(self._forced_slots.index(True, first, last)) + self._passed_on(number)
        pairs = [
            (old, new) for old, new in zip(home[first:last], holder[first:last], strict=True) if old != new
        ]
        if {old for old, _ in pairs} != {new for _, new in pairs}:
            return self._goal(pairs) + self._passed_on(number)
        if last - first < self._asked.arrays.counts[number]:
            return "replication factor: fewer" + self._passed_on(number)
        return self._order(home[self._led[number]], holder[self._leader[number]])

    def _passed_on(self, number: int) -> str:
        """Say which broker leads from now on, where the leader keeps its replica."""
        old, new = self._home[self._led[number]], self._holder[self._leader[number]]
        if old == new or old not in self._holder[self._offsets[number] : self._offsets[number + 1]]:
            return ""
        brokers = self._asked.arrays.brokers
        return f"; broker {brokers[new]} leads instead of {brokers[old]}"

    def _order(self, old: int, new: int) -> str:
        """Return the reason for a move that only changes the leader."""
        brokers, goals = self._asked.arrays.brokers, self._asked.goals
        if old in self._demoted:
            return f"demote broker {brokers[old]}: broker {brokers[new]} leads"
        if old == new:
            return f"preferred leader: broker {brokers[new]}, which leads, comes first"
        worst = self._led_by
        passes = f"broker {brokers[new]} leads instead of {brokers[old]}"
        if worst.above[old] > 0:
            return f"{goals[worst.most_above[old]].name}: broker {brokers[old]} leads too much, {passes}"
        if worst.below[new] > 0:
            return f"{goals[worst.most_below[new]].name}: broker {brokers[new]} leads too little, {passes}"
        return f"leaders: {passes}, to make up for other changes"

    def _forced(self, slot: int) -> str:
        slots, arrays, request = self._asked.slots, self._asked.arrays, self._asked.request
        if slots.for_racks[slot]:
            return "racks: two replicas are in one"
        if slots.for_topics[slot]:
            return "topic: too many of its replicas on one broker"
        if slots.home[slot] < 0:
            return "replication factor: one more"
        broker = arrays.brokers[int(slots.home[slot])]
        if broker in request.replace:
            return f"replace broker {broker} by {request.replace[broker]}"
        return f"drain broker {broker}"

    def _goal(self, pairs: list[tuple[int, int]]) -> str:
        """Return the goal that the source is furthest above, or else the one the target is furthest below."""
        arrays, goals = self._asked.arrays, self._asked.goals
        source, target = pairs[0]
        if len(pairs) > 1:
            source, target = max(pairs, key=lambda pair: self._any.above[pair[0]])
        if self._any.above[source] > 0:
            goal = goals[self._any.most_above[source]]
            return f"{goal.name}: broker {arrays.brokers[source]} has too much"
        if self._any.below[target] > 0:
            goal = goals[self._any.most_below[target]]
            return f"{goal.name}: broker {arrays.brokers[target]} has too little"
        return f"balance: makes room on broker {arrays.brokers[source]}"
