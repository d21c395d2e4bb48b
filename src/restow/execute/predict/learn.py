"""Learn the model's constants from the journals of earlier runs on the same cluster.

throttled run      the share of the throttle that passed, at the busiest broker
run without one    the rate that the busiest broker reached
any run            how long the shortest step took: the time beside copying
load model         what a broker has carried for clients: it can do at least that
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from restow.errors import RestowError
from restow.execute.journal.journal import read_journal
from restow.execute.journal.runs import runs_of
from restow.execute.throttle.throttles import FOLLOWER_RATE
from restow.plan.files.text import step_of
from restow.plan.flow.constants import Calibration
from restow.runtime.disk import SystemDisk
from restow.sizes import count, human_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from restow.execute.journal.journal import JournalEntry
    from restow.model import BrokerId, Step, TopicPartition
    from restow.model.load import LoadModel

_LEAST_BYTES, _LEAST_S = 20_000_000, 3.0
"""A broker that received less, or for a shorter time, says nothing about rates."""
_DOUBT = 0.1
"""Even known values vary by this share from run to run."""
_LATEST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What one run says."""

    broker_rate: float | None = None
    throttle_share: float | None = None
    shortest_s: float | None = None


def calibrate(root: str, cluster_id: str, load: LoadModel | None = None) -> Calibration:
    """Return the constants of a cluster, from the journals below a folder as far as they say something.

    Where they do not say what a broker can do, it is at least what the load model has seen one carry.
    """
    disk = SystemDisk()
    runs = runs_of(disk, root, cluster_id)
    lessons = []
    for name in runs.names()[-_LATEST:]:
        try:
            lessons.append(lesson_of(tuple(read_journal(disk, runs.path(name)))))
        except (RestowError, OSError, KeyError, TypeError, ValueError):
            continue
    return at_least(learned(lessons), load)


def at_least(known: Calibration, load: LoadModel | None) -> Calibration:
    """Raise guesses of what a broker can do to what one was seen to carry."""
    resources = {} if load is None else load.resources
    carried = [each.reached for each in resources.values() if each.reached is not None]
    rates = [each.broker_rate for each in (known.slow, known.usual, known.fast)]
    if "broker_rate" in known.sources or not carried or max(carried) <= rates[0]:
        return known
    source = f"samples of the pipeline, in which a broker carried {human_rate(max(carried))}"
    return known.know("broker_rate", [max(each, *carried) for each in rates], source)


def learned(lessons: Iterable[Lesson]) -> Calibration:
    """Return the calibration that these runs support."""
    lessons = tuple(lessons)
    calibration = Calibration()
    for name in ("broker_rate", "throttle_share"):
        values = [value for each in lessons if (value := getattr(each, name)) is not None]
        if values:
            doubt = _DOUBT if name == "broker_rate" else _DOUBT / 3
            spread = (min(values) * (1 - doubt), median(values), max(values) * (1 + doubt))
            calibration = calibration.know(name, spread, _source(values))
    shortest = [each.shortest_s for each in lessons if each.shortest_s is not None]
    if shortest:
        for name in ("begin_s", "settle_s"):
            spread = (max(shortest) / 2 * 1.5, median(shortest) / 2, min(shortest) / 2 * 0.5)
            calibration = calibration.know(name, spread, _source(shortest))
    return calibration


def _source(values: Sequence[float]) -> str:
    return count(len(values), "earlier run")


def lesson_of(entries: Sequence[JournalEntry]) -> Lesson:
    """Return what a journal says about its cluster."""
    begun: dict[TopicPartition, float] = {}
    busy: dict[BrokerId, list[tuple[float, float]]] = defaultdict(list)
    received: Counter[BrokerId] = Counter()
    rates: set[int] = set()
    took: list[float] = []
    for entry in entries:
        at_s = entry.at_ms / 1000
        if entry.kind == "throttle":
            rates |= _rates(entry)
        for step in _steps(entry, "submit"):
            begun[step.partition] = at_s
        for step in _steps(entry, "finished"):
            since_s = begun.pop(step.partition, None)
            if since_s is None or not step.adding:
                continue
            took.append(at_s - since_s)
            for broker in step.adding:
                received[broker] += step.size_bytes
                busy[broker].append((since_s, at_s))
    reached = [
        received[broker] / seconds
        for broker, spans in busy.items()
        if (seconds := _union_s(spans)) >= _LEAST_S and received[broker] >= _LEAST_BYTES
    ]
    shortest = min(took) if len(took) >= 5 else None
    if not reached:
        return Lesson(shortest_s=shortest)
    if not rates:
        return Lesson(broker_rate=max(reached), shortest_s=shortest)
    asked = median(sorted(rates))
    share = max(reached) / asked
    return Lesson(throttle_share=share if 0.5 < share < 1.5 else None, shortest_s=shortest)


def _steps(entry: JournalEntry, kind: str) -> list[Step]:
    found = entry.facts["steps"] if entry.kind == kind else ()
    return [step_of(each) for each in found] if isinstance(found, (list, tuple)) else []


def _rates(entry: JournalEntry) -> set[int]:
    """Return the rates that an entry sets for followers."""
    changes = entry.facts["changes"]
    if not isinstance(changes, (list, tuple)):
        return set()
    return {
        int(each["value"])
        for each in changes
        if each["setting"][2] == FOLLOWER_RATE and each["value"] is not None
    }


def _union_s(spans: Iterable[tuple[float, float]]) -> float:
    """Return the seconds that any of these spans covers."""
    total = until_s = 0.0
    for begin_s, end_s in sorted(spans):
        total += max(0.0, end_s - max(begin_s, until_s))
        until_s = max(until_s, end_s)
    return total
