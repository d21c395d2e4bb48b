"""For every move the reason, in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.trim import load_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.plan.framing import Asked


class Reasons:
    """Why partitions move: because they must, or for the goal that their broker is furthest from."""

    def __init__(self, asked: Asked, holder: Sequence[int], leader: Sequence[int]) -> None:
        """`holder` and `leader` are what is to be: every slot's broker, every partition's slot that leads."""
        self._asked = asked
        self._holder, self._leader = holder, leader
        problem = asked.problem
        load = load_of(asked, problem.home, problem.leader)
        mean = np.maximum(asked.share.mean(axis=0), 1e-300)
        above, below = (load - problem.upper) / mean, (problem.lower - load) / mean
        self._above, self._most_above = above.max(axis=1).tolist(), above.argmax(axis=1).tolist()
        self._below, self._most_below = below.max(axis=1).tolist(), below.argmax(axis=1).tolist()
        forced = asked.slots.forced
        self._must = (np.add.reduceat(forced, problem.offsets[:-1]) > 0).tolist()
        self._forced_slots = forced.tolist()
        self._offsets, self._home = problem.offsets.tolist(), problem.home.tolist()
        self._led = problem.leader.tolist()

    def of(self, number: int) -> str:
        """The reason of one partition's move."""
        home, holder = self._home, self._holder
        first, last = self._offsets[number], self._offsets[number + 1]
        if self._must[number]:
            return self._forced(self._forced_slots.index(True, first, last))
        pairs = [
            (old, new) for old, new in zip(home[first:last], holder[first:last], strict=True) if old != new
        ]
        if not pairs:
            old, new = home[self._led[number]], holder[self._leader[number]]
            pairs = [(old, new)] if old != new else []
        if not pairs:
            return "fewer replicas" if self._asked.slots.dropped else "log dirs"
        return self._goal(pairs)

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
        """The goal that the source is furthest above, or else the target furthest below."""
        arrays, goals = self._asked.arrays, self._asked.goals
        source, target = pairs[0]
        if len(pairs) > 1:
            source, target = max(pairs, key=lambda pair: self._above[pair[0]])
        if self._above[source] > 0:
            goal = goals[self._most_above[source]]
            return f"{goal.name}: broker {arrays.brokers[source]} has too much"
        if self._below[target] > 0:
            goal = goals[self._most_below[target]]
            return f"{goal.name}: broker {arrays.brokers[target]} has too little"
        return f"balance: makes room on broker {arrays.brokers[source]}"
