"""Move replicas between the log dirs of their broker until each log dir has its share."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.model import BrokerId, TopicPartition
    from restow.plan.schedule.log_dirs import LogDirSpace, LogDirUse


@dataclass(frozen=True, slots=True)
class _Source:
    """A log dir, its share of the broker's load, and the replicas in it that may move, with their sizes."""

    log_dir: LogDirUse
    share: float
    movable: dict[TopicPartition, int]

    def out_of_band(self, band: float, change: int = 0) -> float:
        """Return how many bytes it would be outside its band after a change."""
        load = self.log_dir.replica_bytes + change
        return max(load - self.share * (1 + band), self.share * (1 - band) - load, 0.0)


class _Change(NamedTuple):
    size_bytes: int
    partition: TopicPartition
    source: _Source
    target: _Source


def even_out(
    space: LogDirSpace, brokers: Iterable[BrokerId], band: float, movable: Iterable[TopicPartition]
) -> dict[tuple[TopicPartition, BrokerId], str]:
    """Return the new log dirs of the replicas that change theirs."""
    held: dict[tuple[BrokerId, str], dict[TopicPartition, int]] = defaultdict(dict)
    for name in movable:
        for broker, location in space.locations(name).items():
            held[broker, location.path][name] = location.size_bytes
    moved: dict[tuple[TopicPartition, BrokerId], str] = {}
    for broker in brokers:
        log_dirs = tuple(space.of(broker).values())
        shares = _shares(log_dirs)
        sources = [_Source(each, shares[each.path], held[broker, each.path]) for each in log_dirs]
        while change := _best_change(sources, band):
            del change.source.movable[change.partition]
            change.source.log_dir.remove(change.size_bytes)
            change.target.log_dir.add(change.size_bytes)
            moved[change.partition, broker] = change.target.log_dir.path
    return moved


def _shares(log_dirs: Sequence[LogDirUse]) -> Mapping[str, float]:
    """Return the even load of each log dir; a cordoned one below it keeps its load."""
    part = list(log_dirs)
    while True:
        weight = sum(each.weight for each in part)
        load = float(sum(each.replica_bytes for each in part))
        share = {each.path: load * each.weight / weight for each in part}
        taking = [each for each in part if not each.cordoned or each.replica_bytes >= share[each.path]]
        if len(taking) == len(part) or not taking:
            kept = {each.path: float(each.replica_bytes) for each in log_dirs}
            return kept | share
        part = taking


def _best_change(log_dirs: Sequence[_Source], band: float) -> _Change | None:
    """Return the change that brings log dirs nearest to their bands; None if none does."""
    best, best_gain = None, 0.0
    for source in log_dirs:
        for target in log_dirs:
            now = source.out_of_band(band) + target.out_of_band(band)
            if source is target or now <= 0 or target.log_dir.cordoned:
                continue
            if source.log_dir.replica_bytes <= source.share or target.log_dir.replica_bytes >= target.share:
                continue
            for partition, size in source.movable.items():
                if size <= 0 or not target.log_dir.fits(size):
                    continue
                gain = now - source.out_of_band(band, -size) - target.out_of_band(band, size)
                if gain > 1e-9 * now and (best is None or (-gain, size) < (-best_gain, best.size_bytes)):
                    best, best_gain = _Change(size, partition, source, target), gain
    return best
