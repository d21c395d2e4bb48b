"""For every move the reason, in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.trim import load_of

if TYPE_CHECKING:
    from restow.plan.arrays import Floats, Ints
    from restow.plan.framing import Asked


class Reasons:
    """Why partitions move: because they must, or for the goal that their broker is furthest from."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        problem = asked.problem
        load = load_of(asked, problem.home, problem.leader)
        mean = np.maximum(asked.share.mean(axis=0), 1e-300)
        self._above: Floats = (load - problem.upper) / mean
        self._below: Floats = (problem.lower - load) / mean
        self._forced_slots = asked.slots.forced.tolist()

    def of(self, number: int, holder: Ints, leader: Ints) -> str:
        """The reason of one partition's move."""
        problem = self._asked.problem
        span = range(int(problem.offsets[number]), int(problem.offsets[number + 1]))
        for slot in span:
            if self._forced_slots[slot]:
                return self._forced(slot)
        moved = [slot for slot in span if holder[slot] != problem.home[slot]]
        pairs = [(int(problem.home[slot]), int(holder[slot])) for slot in moved]
        if not pairs:
            old, new = int(problem.home[problem.leader[number]]), int(holder[leader[number]])
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
        source, target = max(pairs, key=lambda pair: float(self._above[pair[0]].max()))
        if self._above[source].max() > 0:
            goal = goals[int(self._above[source].argmax())]
            return f"{goal.name}: broker {arrays.brokers[source]} has too much"
        if self._below[target].max() > 0:
            goal = goals[int(self._below[target].argmax())]
            return f"{goal.name}: broker {arrays.brokers[target]} has too little"
        return f"balance: makes room on broker {arrays.brokers[source]}"
