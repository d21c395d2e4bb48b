"""Learn the model's constants from the journals of earlier runs on the same cluster.

any run                  how long its quickest step with next to no bytes took
run without a throttle   the rate that the busiest broker reached, and what all of them reached together
run between log dirs     what it has measured itself: the rate of a broker, or how much of its throttle passed
throttled run            how long it took to set the throttles and to remove them
load model               what a broker has carried for clients: it can do at least that

Between brokers, throttled runs say nothing about rates: they hold the rate that they were told to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import inf
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from restow._frozen import frozen
from restow.errors import RestowError
from restow.execute.journal.journal import read_journal
from restow.execute.journal.runs import runs_of
from restow.execute.throttle.throttles import REPLICATION_RATES
from restow.plan.files.text import step_of
from restow.plan.flow.constants import USUAL, Calibration
from restow.runtime.disk import SystemDisk
from restow.sizes import count, human_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from restow.execute.journal.journal import JournalEntry
    from restow.model import BrokerId, Step, TopicPartition
    from restow.model.load import LoadModel
    from restow.runtime.disk import Disk

_LEAST_BYTES, _LEAST_S = 20_000_000, 1.0
"""A broker that copied less, or for a shorter time, says nothing about rates: a run looks every 0.1 s."""
_ALONE, _TOGETHER = 1.2, 1.4
"""By how much all brokers together exceeded the busiest one if that one was busy alone, or others as well."""
_SHARED = 1.3
"""Brokers share a rate if several together get less than so many times what one gets alone."""
_ALMOST_EMPTY = 1 << 20
"""One fetch brings such a replica, so its step takes no time for copying."""
_HARDLY_COPIES = 0.05
"""With a throttle, a replica that is smaller than this share of what passes meanwhile does not, either."""
_GUESSED_STEP_S = USUAL.begin_s + USUAL.settle_s
"""What a step takes beside copying if a run does not show it; predictions add the same guess."""
_DOUBT = 0.1
"""Even known values vary by this share from run to run."""
_LATEST = 20
_MARKS = ("began", "submit", "finished", "ended")


@frozen
class Lesson:
    """What one run says."""

    broker_rate: float | None = None
    total_rate: float | None = None
    """What the busiest broker received or sent while anything was copied to it or from it, and what all
    brokers received together while anything was copied."""
    step_s: float | None = None
    """How long a step takes beside copying."""
    throttling_s: float | None = None
    """How long throttles were set before the first move, and removed after the last."""
    dir_rate: float | None = None
    dir_share: float | None = None
    """What a broker copied between its log dirs, or which share of the throttle it was."""
    throttled_until_ms: float | None = None
    """When the last throttled copy between brokers ended."""


class _Copied(NamedTuple):
    """A step between brokers, when it was submitted, and when its end was seen."""

    step: Step
    since_s: float
    at_s: float


_Side: TypeAlias = "tuple[str, BrokerId]"
"""What goes to a broker, or comes from it."""


def calibrate(
    root: str, cluster_id: str, load: LoadModel | None = None, disk: Disk | None = None
) -> Calibration:
    """Return the constants of a cluster, from the journals below a folder as far as they say something.

    Where they do not say what a broker can do, it is at least what the load model has seen one carry.
    """
    disk = disk or SystemDisk()
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
    until_ms = [each.throttled_until_ms for each in lessons if each.throttled_until_ms is not None]
    calibration = Calibration(throttled_until_ms=max(until_ms, default=None))
    for name, rates in zip(("broker_rate", "total_rate"), _rates(lessons), strict=True):
        if rates:
            calibration = calibration.know(name, _spread(rates), _source(rates))
    steps = [each.step_s for each in lessons if each.step_s is not None]
    if steps:
        for name in ("begin_s", "settle_s"):
            spread = (max(steps) / 2 * 1.5, median(steps) / 2, min(steps) / 2 * 0.5)
            calibration = calibration.know(name, spread, _source(steps))
    waits = [each.throttling_s for each in lessons if each.throttling_s is not None]
    if waits:
        calibration = calibration.know(
            "throttling_s", (max(waits), median(waits), min(waits)), _source(waits)
        )
    for name in ("dir_rate", "dir_share"):
        values = [value for each in lessons if (value := getattr(each, name)) is not None]
        if values:
            calibration = calibration.know(name, _spread(values), _source(values))
    return calibration


def _rates(lessons: Iterable[Lesson]) -> tuple[list[float], list[float]]:
    """Return what single brokers reached, and what all of them reached where they share a rate.

    They do, on one machine or behind one switch, if several that were busy together got no more than one that
    was busy alone. Then the share that each of them got is not what a broker can do.
    """
    both = [(rate, each.total_rate or rate) for each in lessons if (rate := each.broker_rate) is not None]
    alone = [rate for rate, total in both if total < _ALONE * rate]
    together = [total for rate, total in both if total >= _TOGETHER * rate]
    if alone and together and median(together) < _SHARED * median(alone):
        most = median(alone)
        return alone, [max(total, most) for total in together]
    return [rate for rate, _ in both], []


def _spread(values: Sequence[float]) -> tuple[float, float, float]:
    return min(values) * (1 - _DOUBT), median(values), max(values) * (1 + _DOUBT)


def _source(values: Sequence[float]) -> str:
    return count(len(values), "earlier run")


def lesson_of(entries: Sequence[JournalEntry]) -> Lesson:
    """Return what a journal says about its cluster."""
    begun: dict[TopicPartition, float] = {}
    copied: list[_Copied] = []
    almost_empty: list[float] = []
    measured, throttle = _measured(entries), _throttle(entries)
    for entry in entries:
        at_s = entry.at_ms / 1000
        for step in _steps(entry, "submit"):
            begun[step.partition] = at_s
        for step in _steps(entry, "finished"):
            since_s = begun.pop(step.partition, None)
            if since_s is None or not step.adding:
                continue
            took_s = at_s - since_s
            if step.size_bytes <= min(_ALMOST_EMPTY, _HARDLY_COPIES * (throttle or inf) * took_s):
                almost_empty.append(took_s)
            copied.append(_Copied(step, since_s, at_s))
    step_s = min(almost_empty, default=None)  # the others have waited for the bytes of larger ones
    if throttle is not None:
        return Lesson(
            step_s=step_s,
            throttling_s=_throttling_s(entries),
            throttled_until_ms=_copied_until_ms(entries),
            **measured,
        )
    besides_s = _GUESSED_STEP_S if step_s is None else step_s
    broker_rate, total_rate = _reached(copied, besides_s)
    return Lesson(broker_rate=broker_rate, total_rate=total_rate, step_s=step_s, **measured)


def _reached(copied: Iterable[_Copied], besides_s: float) -> tuple[float | None, float | None]:
    """Return the rate of the busiest broker, which received or sent, and that of all receivers together.

    A step that takes `besides_s` beside copying copies in the middle of its time.
    """
    sizes: Counter[_Side | None] = Counter()
    spans: dict[_Side | None, list[tuple[float, float]]] = defaultdict(list)
    for step, since_s, at_s in copied:
        copies = len(step.adding)
        sides: dict[_Side | None, int] = {None: copies, **{("to", broker): 1 for broker in step.adding}}
        sides |= {("from", broker): copies for broker in step.before[:1]}  # the preferred leader sends
        for side, many in sides.items():
            sizes[side] += many * step.size_bytes
            spans[side].append((since_s + besides_s / 2, at_s - besides_s / 2))
    reached = {
        side: sizes[side] / seconds
        for side, some in spans.items()
        if (seconds := _union_s(some)) >= _LEAST_S and sizes[side] >= _LEAST_BYTES
    }
    total = reached.pop(None, None)
    return max(reached.values(), default=None), total


def _measured(entries: Sequence[JournalEntry]) -> dict[str, float]:
    """Return what the run itself has measured, by its last end; journals of old versions have none."""
    for entry in reversed(entries):
        told = entry.facts.get("measured") if entry.kind == "ended" else None
        if isinstance(told, dict):
            return {name: float(told[name]) for name in ("dir_rate", "dir_share") if name in told}
    return {}


def _throttle(entries: Sequence[JournalEntry]) -> float | None:
    """Return the lowest rate that the run has set; infinity if only for log dirs, None without a throttle."""
    changes = [each.facts["changes"] for each in entries if each.kind == "throttle"]
    rates = [
        float(each["value"])
        for some in changes
        if isinstance(some, list)
        for each in some
        if each["setting"][2] in REPLICATION_RATES and each["value"] is not None
    ]
    return min(rates, default=inf) if changes else None


def _copied_until_ms(entries: Sequence[JournalEntry]) -> int | None:
    """Return when the last copy between brokers arrived or was cancelled."""
    if not any(step.adding for each in entries for step in _steps(each, "submit")):
        return None
    return max((each.at_ms for each in entries if each.kind in ("finished", "cancelled")), default=None)


def _throttling_s(entries: Sequence[JournalEntry]) -> float | None:
    """Return the time before the first request and after the last arrival; None if it did not run through."""
    at_s = {kind: [each.at_ms / 1000 for each in entries if each.kind == kind] for kind in _MARKS}
    began, submitted, finished, ended = at_s.values()
    if not (began and submitted and finished) or len(ended) != 1:
        return None
    return submitted[0] - began[0] + ended[0] - finished[-1]


def _steps(entry: JournalEntry, kind: str) -> list[Step]:
    found = entry.facts["steps"] if entry.kind == kind else ()
    return [step_of(each) for each in found] if isinstance(found, (list, tuple)) else []


def _union_s(spans: Iterable[tuple[float, float]]) -> float:
    """Return the seconds that any of these spans covers."""
    total = until_s = 0.0
    for begin_s, end_s in sorted(spans):
        total += max(0.0, end_s - max(begin_s, until_s))
        until_s = max(until_s, end_s)
    return total
