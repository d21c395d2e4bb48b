"""Choose the log dirs of replicas within their broker.

A new replica goes to the log dir with the fewest bytes of replicas, relative to the file system. With `disks`
requested, replicas also change log dirs until each log dir has its share. Other files on a file system count
for the free space, not for the balance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.model import BrokerId, LiveBroker, LogDir, Snapshot, TopicPartition


@dataclass(slots=True)
class Directory:
    """The contents of one log dir, and its limit."""

    path: str
    total: float
    used: float
    """Bytes used on the file system, by anything."""
    limit: float
    cordoned: bool = False
    """It keeps its replicas and receives no more."""
    held: dict[TopicPartition, float] = field(default_factory=dict)
    load: float = 0.0
    """The bytes of replicas in it."""

    def fits(self, size: float) -> bool:
        return not self.cordoned and self.used + size <= self.limit

    def put(self, partition: TopicPartition, size: float) -> None:
        self.used += size
        self.load += size
        self.held[partition] = size

    def take(self, partition: TopicPartition) -> float:
        size = self.held.pop(partition)
        self.used -= size
        self.load -= size
        return size


class Shelves:
    """The log dirs of every broker, as they will be once all moves are done."""

    def __init__(self, snapshot: Snapshot, fill: float) -> None:
        self._snapshot = snapshot
        self._of = {broker.id: _directories(broker, fill) for broker in snapshot.brokers}
        if any(self._of.values()):
            self._put_what_is_there()

    def _put_what_is_there(self) -> None:
        nothing: dict[str, Directory] = {}
        for name, partition in self._snapshot.all_partitions():
            for broker, path, size, _, future in partition.copies:
                directory = self._of.get(broker, nothing).get(path)
                if directory is not None and not future:
                    directory.held[name] = float(size)
                    directory.load += size

    def several(self, broker: BrokerId) -> bool:
        """Return whether the broker has more than one log dir."""
        return len(self._of.get(broker, {})) > 1

    def remove(self, partition: TopicPartition, broker: BrokerId) -> None:
        """Remove a replica."""
        directories = self._of.get(broker)
        there = self._snapshot.partition(partition) if directories else None
        if there is None or not directories:
            return
        lies = {copy.broker: copy.log_dir for copy in there.copies}
        directory = directories.get(lies.get(broker, ""))
        if directory is not None and partition in directory.held:
            directory.take(partition)

    def add(self, partition: TopicPartition, broker: BrokerId, size: float) -> str | None:
        """Add a replica; return its log dir, or None if it fits into none."""
        fitting = [each for each in self._of.get(broker, {}).values() if each.fits(size)]
        if not fitting:
            return None
        best = min(
            fitting, key=lambda each: ((each.load + size) / (each.total or 1.0), len(each.held), each.path)
        )
        best.put(partition, size)
        return best.path

    def known(self, broker: BrokerId) -> bool:
        """Return whether the broker's log dirs are known."""
        return bool(self._of.get(broker))

    def even_out(
        self, broker: BrokerId, band: float, movable: Iterable[TopicPartition]
    ) -> dict[TopicPartition, str]:
        """Move replicas between log dirs until each has its share; return the new log dirs."""
        directories = list(self._of.get(broker, {}).values())
        may = set(movable)
        went: dict[TopicPartition, str] = {}
        share = _shares(directories)
        while len(directories) > 1:
            best = _best_change(directories, share, band, may - went.keys())
            if best is None:
                break
            partition, source, target = best
            target.put(partition, source.take(partition))
            went[partition] = target.path
        return went


def _shares(directories: list[Directory]) -> dict[str, float]:
    """Return the even load of each log dir; a cordoned one below it keeps its load."""
    part = list(directories)
    while True:
        weight = sum(each.total or 1.0 for each in part)
        load = sum(each.load for each in part)
        share = {each.path: load * (each.total or 1.0) / weight for each in part}
        taking = [each for each in part if not each.cordoned or each.load >= share[each.path]]
        if len(taking) == len(part) or not taking:
            kept = {each.path: each.load for each in directories}
            return kept | share
        part = taking


def _best_change(
    directories: list[Directory], share: Mapping[str, float], band: float, may: set[TopicPartition]
) -> tuple[TopicPartition, Directory, Directory] | None:
    """Return the change that brings log dirs nearest to their bands; None if none does."""

    def beyond(directory: Directory, change: float = 0.0) -> float:
        mean, load = share[directory.path], directory.load + change
        return max(load - mean * (1 + band), mean * (1 - band) - load, 0.0)

    best, best_cost = None, 0.0
    for source in directories:
        for target in directories:
            if source is target or beyond(source) + beyond(target) <= 0:
                continue
            if source.load - share[source.path] <= 0 or target.load - share[target.path] >= 0:
                continue
            now = beyond(source) + beyond(target)
            for partition, size in source.held.items():
                if partition not in may or size <= 0 or not target.fits(size):
                    continue
                gain = now - beyond(source, -size) - beyond(target, size)
                if gain > 1e-9 * now and (best is None or (-gain, size) < (-best_cost, best[0])):
                    best, best_cost = (size, partition, source, target), gain
    return None if best is None else best[1:]


def _directories(broker: LiveBroker, fill: float) -> dict[str, Directory]:
    working = [each for each in broker.log_dirs if not each.failed]
    known = all(each.total_bytes is not None and each.usable_bytes is not None for each in working)
    return {each.path: _directory(each, fill, known) for each in working}


def _directory(log_dir: LogDir, fill: float, known: bool) -> Directory:
    if not known:
        return Directory(log_dir.path, 0.0, 0.0, float("inf"), log_dir.cordoned)
    total, usable = float(log_dir.total_bytes or 0), float(log_dir.usable_bytes or 0)
    return Directory(log_dir.path, total, total - usable, total * fill, log_dir.cordoned)
