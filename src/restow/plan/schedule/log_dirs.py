"""Account for the log dirs of all brokers: bytes used, bytes allowed, and the replicas in them.

The schedule counts with it which steps fit side by side. The planner chooses log dirs with it, as they will
be when all moves are done. A new replica counts with its leader's size, a present one with its own. Other
files on a file system count for the free space, not for the balance. Where sizes are unknown, everything
fits. Cordoned log dirs keep their replicas and receive no more.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from restow.model import ANY_DIR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from restow.model import BrokerId, LiveBroker, LogDir, Snapshot, Step, TopicPartition


@dataclass(slots=True)
class LogDirUse:
    """What one log dir holds, and how much it may hold."""

    path: str
    used_bytes: int
    """Bytes used on the file system, by anything."""
    limit_bytes: int | None
    weight: float
    """Its part of the broker's load: the size of its file system, or 1 for each if a size is unknown."""
    cordoned: bool
    replicas: int = 0
    replica_bytes: int = 0
    """The bytes of the replicas in it. Both are counted only if some broker has several log dirs."""

    def fits(self, size_bytes: int) -> bool:
        return self.limit_bytes is None or self.used_bytes + size_bytes <= self.limit_bytes

    def add(self, size_bytes: int) -> None:
        self.used_bytes += size_bytes
        self.replica_bytes += size_bytes
        self.replicas += 1

    def remove(self, size_bytes: int) -> None:
        self.used_bytes -= size_bytes
        self.replica_bytes -= size_bytes
        self.replicas -= 1


class _Location(NamedTuple):
    """The log dir of a replica, and its own size."""

    path: str
    size_bytes: int


class LogDirSpace:
    """The log dirs of all brokers, and their present and future contents."""

    def __init__(self, snapshot: Snapshot, fill: float) -> None:
        """Take the share of a file system that may be used."""
        self._snapshot = snapshot
        self._log_dirs = {broker.id: _working_log_dirs(broker, fill) for broker in snapshot.brokers}
        self._locations: dict[TopicPartition, dict[BrokerId, _Location]] = {}
        """The log dirs of the partitions that were asked for so far."""
        self._any_known = any(self._log_dirs.values())
        if any(len(log_dirs) > 1 for log_dirs in self._log_dirs.values()):
            self._count_replicas()

    def _count_replicas(self) -> None:
        """Count replicas by log dir; that matters only where a broker has several."""
        nothing: dict[str, LogDirUse] = {}
        for partition in self._snapshot.partitions:
            for broker, path, size, _, future in partition.copies:
                log_dir = self._log_dirs.get(broker, nothing).get(path)
                if log_dir is not None and not future:
                    log_dir.replicas += 1
                    log_dir.replica_bytes += size

    def fork(self) -> LogDirSpace:
        """Return the same state, to look ahead from here."""
        other = copy(self)
        uses = {
            broker: {path: replace(use) for path, use in log_dirs.items()}
            for broker, log_dirs in self._log_dirs.items()
        }
        locations = {name: dict(found) for name, found in self._locations.items()}
        vars(other).update(_log_dirs=uses, _locations=locations)
        return other

    def of(self, broker: BrokerId) -> Mapping[str, LogDirUse]:
        """Return the working log dirs of a broker by path; none if they are unknown."""
        return self._log_dirs.get(broker, {})

    def locations(self, name: TopicPartition) -> dict[BrokerId, _Location]:
        """Return the log dirs of a partition's replicas by broker, as far as they are known."""
        found = self._locations.get(name)
        if found is None:
            partition = self._snapshot.partition(name)
            found = self._locations[name] = {
                copy.broker: _Location(copy.log_dir, copy.size_bytes)
                for copy in (() if partition is None else partition.copies)
                if not copy.future and copy.log_dir in self._log_dirs.get(copy.broker, ())
            }
        return found

    def place(self, broker: BrokerId, size_bytes: int) -> str | None:
        """Add a new replica to the log dir with the fewest bytes for its size; None if it fits into none."""
        fitting = [each for each in self.of(broker).values() if not each.cordoned and each.fits(size_bytes)]
        if not fitting:
            return None
        best = min(
            fitting,
            key=lambda each: ((each.replica_bytes + size_bytes) / each.weight, each.replicas, each.path),
        )
        best.add(size_bytes)
        return best.path

    def remove(self, name: TopicPartition, broker: BrokerId) -> None:
        """Remove a present replica, if its log dir is known."""
        location = self.locations(name).pop(broker, None)
        log_dir = None if location is None else self.of(broker).get(location.path)
        if location is not None and log_dir is not None:
            log_dir.remove(location.size_bytes)

    def arrivals(self, step: Step) -> Iterable[tuple[BrokerId, str]]:
        """Return the log dirs that a step copies into, between brokers and within."""
        if step.log_dirs:
            return self._targets(step)
        if not self._any_known:
            return ()
        found = [(broker, self._likely_log_dir(broker)) for broker in step.adding]
        return [(broker, path) for broker, path in found if path is not None]

    def _targets(self, step: Step) -> Iterator[tuple[BrokerId, str]]:
        targets = dict(zip(step.after, step.log_dirs, strict=False))
        for broker in step.after:
            target = targets.get(broker, ANY_DIR)
            location = self.locations(step.partition).get(broker)
            if broker in step.before and (
                target == ANY_DIR or (location is not None and target == location.path)
            ):
                continue
            path = self._likely_log_dir(broker) if target == ANY_DIR else target
            if path is not None:
                yield broker, path

    def _likely_log_dir(self, broker: BrokerId) -> str | None:
        """Return the log dir that a broker chooses for a new replica: the one with the fewest replicas."""
        log_dirs = self.of(broker)
        if len(log_dirs) == 1:
            return next(iter(log_dirs))
        open_ones = [path for path, log_dir in log_dirs.items() if not log_dir.cordoned]
        return min(open_ones or log_dirs, key=lambda path: log_dirs[path].replicas, default=None)

    def _bytes_copied(self, step: Step, broker: BrokerId) -> int:
        """Return the bytes that a step copies to a broker: the leader's size, or its own between log dirs."""
        location = self.locations(step.partition).get(broker) if broker in step.before else None
        return step.size_bytes if location is None else location.size_bytes

    def too_full(self, step: Step) -> tuple[BrokerId, str] | None:
        """Return a log dir that this step would fill past its limit, if there is one."""
        for broker, path in self.arrivals(step):
            log_dir = self.of(broker).get(path)
            if log_dir is not None and not log_dir.fits(self._bytes_copied(step, broker)):
                return broker, path
        return None

    def begin(self, step: Step) -> dict[BrokerId, str]:
        """Reserve the bytes that the step copies; return their log dirs."""
        arrivals = dict(self.arrivals(step))
        for log_dir, size_bytes in self._reserved(step, arrivals):
            log_dir.add(size_bytes)
        return arrivals

    def finish(self, step: Step, arrivals: Mapping[BrokerId, str]) -> None:
        """Free the bytes of the replicas that the step removed."""
        if not self._any_known and not arrivals:
            return
        new = {broker: _Location(path, self._bytes_copied(step, broker)) for broker, path in arrivals.items()}
        for broker in (*step.removing, *(each for each in arrivals if each in step.before)):
            self.remove(step.partition, broker)
        self.locations(step.partition).update(new)

    def give_back(self, step: Step, arrivals: Mapping[BrokerId, str]) -> None:
        """Undo `begin`."""
        for log_dir, size_bytes in self._reserved(step, arrivals):
            log_dir.remove(size_bytes)

    def _reserved(self, step: Step, arrivals: Mapping[BrokerId, str]) -> Iterator[tuple[LogDirUse, int]]:
        for broker, path in arrivals.items():
            log_dir = self.of(broker).get(path)
            if log_dir is not None:
                yield log_dir, self._bytes_copied(step, broker)


def _working_log_dirs(broker: LiveBroker, fill: float) -> dict[str, LogDirUse]:
    working = broker.working_dirs
    all_known = all(each.total_bytes is not None and each.usable_bytes is not None for each in working)
    return {each.path: _use_of(each, fill, weighted=all_known) for each in working}


def _use_of(log_dir: LogDir, fill: float, *, weighted: bool) -> LogDirUse:
    total, usable = log_dir.total_bytes, log_dir.usable_bytes
    if total is None or usable is None:
        return LogDirUse(log_dir.path, 0, None, 1.0, log_dir.cordoned)
    weight = float(total or 1) if weighted else 1.0
    return LogDirUse(log_dir.path, total - usable, int(total * fill), weight, log_dir.cordoned)
