"""Decide which steps may be under way at the same time.

The planner orders a plan with it, and the executor asks it before every step. While a replica is copied its
bytes count twice, in the old place and in the new; the old place is freed when the old replica is gone. A new
replica counts with its leader's size, an old one with its own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from restow.model import ANY_DIR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from restow.model import BrokerId, Limits, Snapshot, Step, TopicPartition


@dataclass(slots=True)
class Room:
    """The state of one log dir: bytes used, bytes allowed, number of partitions."""

    used_bytes: int
    limit_bytes: int | None
    partitions: int
    cordoned: bool = False
    """Brokers choose no cordoned log dir for a new replica."""

    def takes(self, size_bytes: int) -> bool:
        return self.limit_bytes is None or self.used_bytes + size_bytes <= self.limit_bytes


class _Lying(NamedTuple):
    """The log dir of a replica, and its own size."""

    path: str
    size_bytes: int


class LogDirSpace:
    """The log dirs of all brokers, and their future contents."""

    def __init__(self, snapshot: Snapshot, fill: float) -> None:
        """Take the share of a file system that may be used. Where sizes are unknown, everything fits."""
        self._snapshot = snapshot
        self._rooms: dict[BrokerId, dict[str, Room]] = {}
        self._lies: dict[TopicPartition, dict[BrokerId, _Lying]] = {}
        """The log dirs of the partitions that were asked for so far."""
        for broker in snapshot.brokers:
            self._rooms[broker.id] = {
                each.path: Room(
                    _used(each.total_bytes, each.usable_bytes),
                    _limit(each.total_bytes, fill),
                    0,
                    each.cordoned,
                )
                for each in broker.log_dirs
                if not each.failed
            }
        self._rooms_known = any(self._rooms.values())
        if any(len(rooms) > 1 for rooms in self._rooms.values()):
            self._count_partitions()

    def _count_partitions(self) -> None:
        """Count partitions by log dir; that matters only where a broker has several."""
        nothing: dict[str, Room] = {}
        for _, partition in self._snapshot.all_partitions():
            for broker, path, _, _, future in partition.copies:
                room = self._rooms.get(broker, nothing).get(path)
                if room is not None and not future:
                    room.partitions += 1

    def _places(self, name: TopicPartition) -> dict[BrokerId, _Lying]:
        """Return the present log dirs of a partition's replicas, as far as they are known."""
        found = self._lies.get(name)
        if found is None:
            partition = self._snapshot.partition(name)
            found = self._lies[name] = {
                copy.broker: _Lying(copy.log_dir, copy.size_bytes)
                for copy in (() if partition is None else partition.copies)
                if not copy.future and copy.log_dir in self._rooms.get(copy.broker, ())
            }
        return found

    def directory_for(self, broker: BrokerId, target: str) -> str | None:
        """Return the log dir of a new replica: its target, or the one with the fewest partitions."""
        rooms = self._rooms.get(broker, {})
        if target != ANY_DIR:
            return target
        if len(rooms) == 1:
            return next(iter(rooms))
        open_ones = [path for path, room in rooms.items() if not room.cordoned]
        return min(open_ones or rooms, key=lambda path: rooms[path].partitions, default=None)

    def arrivals(self, step: Step) -> Iterable[tuple[BrokerId, str]]:
        """Return the log dirs that a step copies into, between brokers and within."""
        if step.log_dirs:
            return self._targets(step)
        if not self._rooms_known:
            return ()
        found = [(broker, self.directory_for(broker, ANY_DIR)) for broker in step.adding]
        return [(broker, path) for broker, path in found if path is not None]

    def _targets(self, step: Step) -> Iterator[tuple[BrokerId, str]]:
        targets = dict(zip(step.after, step.log_dirs, strict=False))
        for broker in step.after:
            target = targets.get(broker, ANY_DIR)
            lying = self._places(step.partition).get(broker)
            if broker in step.before and (target == ANY_DIR or (lying is not None and target == lying.path)):
                continue
            path = self.directory_for(broker, target)
            if path is not None:
                yield broker, path

    def _comes(self, step: Step, broker: BrokerId) -> int:
        """Return the bytes that a step copies to a broker: the leader's size, or its own between log dirs."""
        lying = self._places(step.partition).get(broker) if broker in step.before else None
        return step.size_bytes if lying is None else lying.size_bytes

    def too_full(self, step: Step) -> tuple[BrokerId, str] | None:
        """Return a log dir that this step would fill past its limit, if there is one."""
        for broker, path in self.arrivals(step):
            room = self._rooms.get(broker, {}).get(path)
            if room is not None and not room.takes(self._comes(step, broker)):
                return broker, path
        return None

    def begin(self, step: Step) -> dict[BrokerId, str]:
        """Reserve the bytes that the step copies; return their log dirs."""
        where = dict(self.arrivals(step))
        for broker, path in where.items():
            self._add(broker, path, self._comes(step, broker), 1)
        return where

    def finish(self, step: Step, where: dict[BrokerId, str]) -> None:
        """Free the bytes of the replicas that the step removed."""
        if not self._rooms_known and not where:
            return
        places = self._places(step.partition)
        came = {broker: _Lying(path, self._comes(step, broker)) for broker, path in where.items()}
        for broker in (*step.removing, *(each for each in where if each in step.before)):
            lying = places.pop(broker, None)
            if lying is not None:
                self._add(broker, lying.path, -lying.size_bytes, -1)
        places.update(came)

    def give_back(self, step: Step, where: dict[BrokerId, str]) -> None:
        """Undo `begin`."""
        for broker, path in where.items():
            self._add(broker, path, -self._comes(step, broker), -1)

    def _add(self, broker: BrokerId, path: str, size_bytes: int, partitions: int) -> None:
        room = self._rooms.get(broker, {}).get(path)
        if room is not None:
            room.used_bytes += size_bytes
            room.partitions += partitions


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

    where: dict[BrokerId, str]
    route: Route


class Admission:
    """Decides which steps may begin, given those under way."""

    def __init__(
        self, snapshot: Snapshot, limits: Limits, held: Callable[[Step], str | None] | None = None
    ) -> None:
        """Set the limits; `held` may give further reasons to wait, from the present state of the cluster."""
        self.limits = limits
        self._held = held
        self.disks = LogDirSpace(snapshot, limits.fill)
        self._snapshot = snapshot
        self._into: Counter[BrokerId] = Counter()
        self._out_of: Counter[BrokerId] = Counter()
        self._admitted: dict[TopicPartition, _Admitted] = {}

    @property
    def idle(self) -> bool:
        """Whether no step is admitted that has not ended."""
        return not self._admitted

    def has_admitted(self, step: Step) -> bool:
        """Return whether this step has begun, for this object, and has not ended."""
        return step.partition in self._admitted

    def route(self, step: Step) -> Route:
        """Return the route of a step: from the leader to the receivers, or within one broker."""
        adding = step.adding
        within = self.disks.arrivals(step) if step.log_dirs else ()
        receivers = frozenset((*adding, *(broker for broker, _ in within)))
        partition = self._snapshot.partition(step.partition) if adding else None
        return Route(receivers, None if partition is None else partition.leader)

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
        if full := self.disks.too_full(step):
            return f"{full[1]} of broker {full[0]} would be filled past {self.limits.fill:.0%}"
        return None if self._held is None else self._held(step)

    def begin(self, step: Step, route: Route | None = None) -> None:
        """Count a step as under way, whether or not it would have been admitted."""
        route = self.route(step) if route is None else route
        self._count(route, 1)
        self._admitted[step.partition] = _Admitted(self.disks.begin(step), route)

    def let_go(self, step: Step) -> None:
        """Let other steps copy, although the outcome of this one is not known yet: its copying has ended."""
        admitted = self._admitted[step.partition]
        self._count(admitted.route, -1)
        self._admitted[step.partition] = admitted._replace(route=NOWHERE)

    def finish(self, step: Step) -> None:
        """Count a step as completed."""
        admitted = self._admitted.pop(step.partition)
        self._count(admitted.route, -1)
        self.disks.finish(step, admitted.where)

    def give_up(self, step: Step) -> None:
        """Count a step as cancelled: its copies are gone again."""
        admitted = self._admitted.pop(step.partition)
        self._count(admitted.route, -1)
        self.disks.give_back(step, admitted.where)

    def _count(self, route: Route, by: int) -> None:
        for broker in route.receivers:
            self._into[broker] += by
        if route.sender is not None:
            self._out_of[route.sender] += by


def _used(total_bytes: int | None, usable_bytes: int | None) -> int:
    return 0 if total_bytes is None or usable_bytes is None else total_bytes - usable_bytes


def _limit(total_bytes: int | None, fill: float) -> int | None:
    return None if total_bytes is None else int(total_bytes * fill)
