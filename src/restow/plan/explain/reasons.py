"""Give the reason for every move, in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.request.trim import load_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.model import BrokerId
    from restow.plan.request.framing import Asked


class Reasons:
    """Why partitions move: because they must, or for a goal that their brokers miss and the move helps."""

    def __init__(self, asked: Asked, holder: Sequence[int], leader: Sequence[int]) -> None:
        """Take the target: the broker of every slot, and the leading slot of every partition."""
        self._asked = asked
        self._holder, self._leader = holder, leader
        problem = asked.problem
        load = load_of(asked, problem.home, problem.leader)
        mean = asked.share.mean(axis=0)
        mean = np.where(mean > 0, mean, 1.0)
        self._above: list[list[float]] = ((load - problem.upper) / mean).tolist()
        self._below: list[list[float]] = ((problem.lower - load) / mean).tolist()
        moved = np.asarray(holder) != problem.home
        self._receives = set(np.asarray(holder)[moved].tolist())
        self._gives = set(problem.home[moved].tolist())
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
            return self._goal(number, pairs) + self._passed_on(number)
        if last - first < self._asked.arrays.counts[number]:
            return "replication factor: fewer" + self._passed_on(number)
        return self._order(number, home[self._led[number]], holder[self._leader[number]])

    def _passed_on(self, number: int) -> str:
        """Say which broker leads from now on, where the leader keeps its replica."""
        old, new = self._home[self._led[number]], self._holder[self._leader[number]]
        if old == new or old not in self._holder[self._offsets[number] : self._offsets[number + 1]]:
            return ""
        brokers = self._asked.arrays.brokers
        return f"; broker {brokers[new]} leads instead of {brokers[old]}"

    def _order(self, number: int, old: int, new: int) -> str:
        """Return the reason for a move that only changes the leader."""
        brokers = self._asked.arrays.brokers
        if old in self._demoted:
            return f"demote broker {brokers[old]}: broker {brokers[new]} leads"
        if old == new:
            return f"preferred leader: broker {brokers[new]}, which leads, comes first"
        passes = f"broker {brokers[new]} leads instead of {brokers[old]}"
        if served := self._served(number):
            goal, broker, above = served
            return f"{goal}: broker {broker} leads too {'much' if above else 'little'}, {passes}"
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

    def _goal(self, number: int, pairs: list[tuple[int, int]]) -> str:
        """Return the goal that the move serves, or else the other move that it makes up for."""
        if served := self._served(number):
            goal, broker, above = served
            return f"{goal}: broker {broker} has too {'much' if above else 'little'}"
        brokers = self._asked.arrays.brokers
        for source, _ in pairs:
            if source in self._receives:
                return f"balance: makes room on broker {brokers[source]} for another replica"
        for _, target in pairs:
            if target in self._gives:
                return f"balance: broker {brokers[target]} takes it for a replica that it gives away"
        source, target = pairs[0]
        return f"balance: broker {brokers[target]} takes it from {brokers[source]}"

    def _served(self, number: int) -> tuple[str, BrokerId, bool] | None:
        """Return a goal, a broker that misses it and has less or more by this move, and whether it has less.

        It is the broker that is furthest above a band, or else the one furthest below.
        """
        goals, brokers = self._asked.goals, self._asked.arrays.brokers
        changes = self._changes(number)
        for sign, missed in ((-1.0, self._above), (1.0, self._below)):
            found = [
                (missed[broker][goal], -broker, -goal)
                for broker, change in changes.items()
                for goal, more in enumerate(change)
                if sign * more > 0 and missed[broker][goal] > 0
            ]
            if found:
                _, broker, goal = max(found)
                return goals[-goal].name, brokers[-broker], sign < 0
        return None

    def _changes(self, number: int) -> dict[int, list[float]]:
        """Return how much more of each goal the brokers of a partition have by its move."""
        problem = self._asked.problem
        leading, following = problem.leading[number].tolist(), problem.following[number].tolist()
        changes: dict[int, list[float]] = {}
        sides = (-1.0, self._home, self._led[number]), (1.0, self._holder, self._leader[number])
        for sign, places, leader in sides:
            for slot in range(self._offsets[number], self._offsets[number + 1]):
                carried = list(leading if slot == leader else following)
                if places[slot] == self._home[slot] and problem.own is not None:
                    carried[0] += float(problem.own[slot])
                has = changes.get(places[slot]) or [0.0] * len(carried)
                changes[places[slot]] = [had + sign * more for had, more in zip(has, carried, strict=True)]
        return changes
