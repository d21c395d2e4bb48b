"""Decide which steps may be under way at the same time.

The planner orders a plan with it, and the executor asks it before every step. While a replica is copied its
bytes count twice, in the old place and in the new; the old place is freed when the old replica is gone.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from restow.plan.schedule.log_dirs import LogDirSpace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from restow.model import BrokerId, Limits, Partition, Snapshot, Step, TopicPartition


class Route(NamedTuple):
    """The brokers that a step keeps busy: the receivers, and the leader that sends."""

    receivers: frozenset[BrokerId]
    sender: BrokerId | None


class Gate(NamedTuple):
    """One end of routes: a broker's receiving or sending side. Without a sender it is always open."""

    receives: bool
    broker: BrokerId | None


NOWHERE = Route(frozenset(), None)


class _Admitted(NamedTuple):
    """The room that a step takes until it has ended."""

    arrivals: dict[BrokerId, str]
    """The log dirs that it copies into."""
    route: Route


class Admission:
    """Decides which steps may begin, given those under way."""

    def __init__(
        self, snapshot: Snapshot, limits: Limits, held: Callable[[Step], str | None] | None = None
    ) -> None:
        """Set the limits; `held` may give further reasons to wait, from the present state of the cluster."""
        self.limits = limits
        self.held = held
        self.log_dirs = LogDirSpace(snapshot, limits.fill)
        self._snapshot = snapshot
        self._seen: Mapping[TopicPartition, Partition] = {}
        self._into: Counter[BrokerId] = Counter()
        self._out_of: Counter[BrokerId] = Counter()
        self._admitted: dict[TopicPartition, _Admitted] = {}
        self._blocked: set[TopicPartition] = set()
        """Partitions among those whose step can copy nothing now: their routes are not counted."""

    def fork(self) -> Admission:
        """Return the same state, to look ahead from here: only limits and room hold steps back in it."""
        other = copy(self)
        other.held, other.log_dirs = None, self.log_dirs.fork()
        into, out_of = Counter(self._into), Counter(self._out_of)
        vars(other).update(
            _into=into, _out_of=out_of, _admitted=dict(self._admitted), _blocked=set(self._blocked)
        )
        return other

    @property
    def idle(self) -> bool:
        """Whether no step is admitted that has not ended, but for those that are blocked."""
        return len(self._admitted) == len(self._blocked)

    def has_admitted(self, step: Step) -> bool:
        """Return whether this step has begun, for this object, and has not ended."""
        return step.partition in self._admitted

    def route(self, step: Step) -> Route:
        """Return the route of a step: from the leader to the receivers, or within one broker."""
        adding = step.adding
        within = self.log_dirs.arrivals(step) if step.log_dirs else ()
        receivers = frozenset((*adding, *(broker for broker, _ in within)))
        partition = self._latest(step.partition) if adding else None
        return Route(receivers, None if partition is None else partition.leader)

    def see(self, partitions: Mapping[TopicPartition, Partition]) -> None:
        """Count steps for the leaders that partitions have now, also those that are under way."""
        self._seen = partitions
        for name, admitted in self._admitted.items():
            leader = partitions[name].leader if name in partitions else None
            if leader is not None and admitted.route.sender not in (None, leader):
                self._change_route(name, admitted.route._replace(sender=leader))

    def _latest(self, name: TopicPartition) -> Partition | None:
        return self._seen.get(name) or self._snapshot.partition(name)

    def shut(self, gate: Gate) -> bool:
        """Return whether a broker receives, or sends, as many replicas as it may."""
        receives, broker = gate
        if broker is None:
            return False
        if receives:
            return self._into.get(broker, 0) >= self.limits.moves_in
        return self._out_of.get(broker, 0) >= self.limits.moves_out

    def shut_gate(self, route: Route) -> Gate | None:
        """Return the first end of a route that is shut; None if both are open."""
        receivers, sender = route
        most = self.limits.moves_in
        for broker in receivers:
            if self._into.get(broker, 0) >= most:
                return Gate(True, broker)
        if sender is not None and self._out_of.get(sender, 0) >= self.limits.moves_out:
            return Gate(False, sender)
        return None

    def busy(self, route: Route) -> str | None:
        """Say why this route is busy now; None if it is free."""
        for broker in route.receivers:
            if self._into[broker] >= self.limits.moves_in:
                return f"broker {broker} is receiving {self._into[broker]} replicas"
        if route.sender is not None and self._out_of[route.sender] >= self.limits.moves_out:
            return f"broker {route.sender} is sending {self._out_of[route.sender]} replicas"
        return None

    def hindrance(self, step: Step, route: Route | None = None) -> str | None:
        """Say why this step has to wait; None if it may begin. `route` is its own, if known."""
        if step.partition in self._admitted:
            return "an earlier step of the same partition is under way"
        if reason := self.busy(self.route(step) if route is None else route):
            return reason
        if full := self.log_dirs.too_full(step):
            return f"{full[1]} of broker {full[0]} would be filled past {self.limits.fill:.0%}"
        return None if self.held is None else self.held(step)

    def begin(self, step: Step, route: Route | None = None) -> None:
        """Count a step as under way, whether or not it would have been admitted."""
        route = self.route(step) if route is None else route
        self._count(route, 1)
        self._admitted[step.partition] = _Admitted(self.log_dirs.begin(step), route)

    def arrivals(self, step: Step) -> dict[BrokerId, str]:
        """Return the log dirs that a step under way copies into, by broker, as far as they are known."""
        return self._admitted[step.partition].arrivals

    def let_go(self, step: Step) -> None:
        """Let other steps copy, although the outcome of this one is not known yet: its copying has ended."""
        self._change_route(step.partition, NOWHERE)

    def block(self, step: Step) -> bool:
        """Let other steps copy while this one cannot, because a broker or a log dir is gone; return whether
        that is new.

        It keeps its room in log dirs: it may go on at any moment.
        """
        if step.partition in self._blocked:
            return False
        self._count(self._admitted[step.partition].route, -1)
        self._blocked.add(step.partition)
        return True

    def unblock(self, step: Step) -> bool:
        """Count a step again that can go on, even if its brokers then have more under way than they may;
        return whether it was blocked.
        """
        if step.partition not in self._blocked:
            return False
        self._blocked.remove(step.partition)
        self._count(self._admitted[step.partition].route, 1)
        return True

    def finish(self, step: Step) -> None:
        """Count a step as completed."""
        self.log_dirs.finish(step, self._leave(step))

    def give_up(self, step: Step) -> None:
        """Count a step as cancelled: its copies are gone again."""
        self.log_dirs.give_back(step, self._leave(step))

    def _leave(self, step: Step) -> dict[BrokerId, str]:
        """Remove a step from those under way; return the log dirs that it copied into."""
        self.unblock(step)
        admitted = self._admitted.pop(step.partition)
        self._count(admitted.route, -1)
        return admitted.arrivals

    def _change_route(self, name: TopicPartition, route: Route) -> None:
        admitted = self._admitted[name]
        if name not in self._blocked:
            self._count(admitted.route, -1)
            self._count(route, 1)
        self._admitted[name] = admitted._replace(route=route)

    def _count(self, route: Route, by: int) -> None:
        for broker in route.receivers:
            self._into[broker] += by
        if route.sender is not None:
            self._out_of[route.sender] += by
