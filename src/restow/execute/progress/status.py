"""The status of a run: passed to a listener, and kept in a file beside the journal.

`restow watch` reads that file, so it shows what the run itself knows.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Protocol

from restow._frozen import frozen
from restow.execute.predict.prediction import CopiedCurve, PredictedNow, predicted_now_of
from restow.execute.predict.rest import TimeLeft
from restow.execute.progress.outcome import Summary
from restow.execute.progress.progress import BrokerPart, Copying, DirPart, ProgressReport
from restow.execute.progress.stuck import Cause, Stall, StuckReplica
from restow.execute.progress.waited import WaitedTime, why_nothing_copies
from restow.model import TopicPartition
from restow.plan.drift import REMADE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from restow.execute.journal.ledger import RunLedger
    from restow.execute.predict.rest import RestOfRun
    from restow.execute.progress.observation import Observation
    from restow.execute.progress.progress import RunProgress
    from restow.execute.run.foresight import Foreseen
    from restow.execute.run.in_progress import ReassignmentsInProgress
    from restow.execute.throttle.pace import Pace
    from restow.execute.throttle.throttling import Throttling
    from restow.model import Partition
    from restow.plan.schedule.schedule import Schedule
    from restow.runtime.clock import Clock
    from restow.runtime.disk import Disk


class Tell(Protocol):
    """Report an event."""

    def __call__(self, kind: str, **facts: object) -> None: ...


@frozen
class RunEvent:
    """An event during a run, for a log."""

    at_ms: int
    kind: str
    facts: Mapping[str, object]

    def document(self) -> dict[str, object]:
        return {"at_ms": self.at_ms, "event": self.kind, **self.facts}


@frozen
class RunStatus:
    """Everything that a live view shows."""

    run: str
    report: ProgressReport
    steps_done: int
    steps_left: int
    under_way: int
    throttle: int | None
    auto: bool
    paused: str | None
    """Why nothing new begins; None if steps may begin."""
    waits: str | None
    """Why the first waiting step cannot begin, if nothing is under way."""
    under_replicated: int
    offline: int
    latency_s: float
    silent: tuple[int, ...] = ()
    """Brokers in the metadata that did not answer the last look."""
    predicted: PredictedNow | None = None
    """The prediction that was made when the run began, and how far it is ahead of that."""
    dir_throttle: int | None = None
    by_hour: str | None = None
    """The throttle as given, if it changes by the hour."""
    ended: str | None = None
    """The ending, once the run has ended."""
    others: RunStatus | None = None
    """Moves under way that are not in the run's plan."""

    def document(self) -> dict[str, object]:
        """Return the status as JSON; `status_of` reads it back."""
        report = self.report
        return {
            "run": self.run,
            "done_bytes": report.done_bytes,
            "to_do_bytes": report.to_do_bytes,
            "rate": round(report.rate),
            "eta_s": None if report.eta_s is None else round(report.eta_s, 1),
            "predicted": None if self.predicted is None else self.predicted.document(),
            "steps_done": self.steps_done,
            "steps_left": self.steps_left,
            "under_way": self.under_way,
            "throttle": self.throttle,
            "dir_throttle": self.dir_throttle,
            "auto": self.auto,
            "by_hour": self.by_hour,
            "paused": self.paused,
            "waits": self.waits,
            "ended": self.ended,
            "others": None if self.others is None else self.others.document(),
            "under_replicated": self.under_replicated,
            "offline": self.offline,
            "latency_ms": round(self.latency_s * 1000, 1),
            "silent": list(self.silent),
            "brokers": {str(fields.pop("broker")): fields for fields in map(asdict, report.brokers)},
            "dirs": [asdict(each) for each in report.dirs],
            "replicas": [
                {
                    "partition": str(each.partition),
                    "broker": each.broker,
                    "leader": each.leader,
                    "log_dir": each.log_dir,
                    "copied_bytes": each.copied_bytes if each.answered else None,
                    "size_bytes": each.size_bytes,
                    "behind_bytes": each.behind_bytes if each.answered else None,
                    "in_sync": each.in_sync,
                }
                for each in report.copying
            ],
            "still": [
                {
                    **asdict(each),
                    "partition": str(each.partition),
                    "cause": each.cause.value,
                    "stall": each.stall.name.lower(),
                }
                for each in report.still
            ],
        }


def status_of(document: Mapping[str, Any]) -> RunStatus:
    """Read the JSON of `RunStatus.document`; raise KeyError, TypeError or ValueError if it is not valid."""
    eta_s = document["eta_s"]
    report = ProgressReport(
        done_bytes=int(document["done_bytes"]),
        to_do_bytes=int(document["to_do_bytes"]),
        rate=float(document["rate"]),
        eta_s=None if eta_s is None else float(eta_s),
        brokers=tuple(
            BrokerPart(broker=int(broker), **{name: int(value) for name, value in part.items()})
            for broker, part in dict(document["brokers"]).items()
        ),
        copying=tuple(
            Copying(
                partition=TopicPartition.parse(each["partition"]),
                broker=int(each["broker"]),
                leader=each["leader"],
                size_bytes=int(each["size_bytes"]),
                copied_bytes=int(each["copied_bytes"] or 0),
                answered=each["copied_bytes"] is not None,
                in_sync=bool(each["in_sync"]),
                log_dir=each["log_dir"],
            )
            for each in document["replicas"]
        ),
        still=tuple(
            StuckReplica(
                partition=TopicPartition.parse(each["partition"]),
                broker=int(each["broker"]),
                cause=Cause(each["cause"]),
                evidence=str(each["evidence"]),
                advice=str(each["advice"]),
                stall=Stall[each.get("stall", "still").upper()],
            )
            for each in document["still"]
        ),
        dirs=tuple(
            DirPart(
                broker=int(each["broker"]),
                path=str(each["path"]),
                done_bytes=int(each["done_bytes"]),
                to_do_bytes=int(each["to_do_bytes"]),
                replicas=int(each["replicas"]),
            )
            for each in document["dirs"]
        ),
    )
    return RunStatus(
        run=str(document["run"]),
        report=report,
        steps_done=int(document["steps_done"]),
        steps_left=int(document["steps_left"]),
        under_way=int(document["under_way"]),
        throttle=_number(document["throttle"]),
        dir_throttle=_number(document["dir_throttle"]),
        auto=bool(document["auto"]),
        by_hour=_text(document["by_hour"]),
        paused=_text(document["paused"]),
        waits=_text(document["waits"]),
        ended=_text(document["ended"]),
        under_replicated=int(document["under_replicated"]),
        offline=int(document["offline"]),
        latency_s=float(document["latency_ms"]) / 1000,
        silent=tuple(map(int, document.get("silent", ()))),
        predicted=None if document.get("predicted") is None else predicted_now_of(document["predicted"]),
    )


def _number(value: Any) -> int | None:
    return None if value is None else int(value)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


@frozen
class RunListener:
    """Receives single events, and the status at intervals."""

    event: Callable[[RunEvent], object]
    status: Callable[[RunStatus], object]


STATUS_FILE = "standing.json"


def status_writer(disk: Disk, folder: str, watcher: RunListener) -> RunListener:
    """Return a listener that writes every status to the file before it passes it on."""

    def status(now: RunStatus) -> None:
        with suppress(OSError):  # a full disk ends the run when the journal is written, not here
            write_status(disk, folder, now)
        watcher.status(now)

    return RunListener(event=watcher.event, status=status)


def write_status(disk: Disk, folder: str, status: RunStatus) -> None:
    """Replace the status file. It need not survive a crash of the machine."""
    data = json.dumps(status.document()).encode()
    disk.write_atomically(f"{folder}/{STATUS_FILE}", data, durable=False)


def read_status(disk: Disk, folder: str) -> RunStatus | None:
    """Return the last status that the run wrote; None if there is none or the file is damaged."""
    path = f"{folder}/{STATUS_FILE}"
    try:
        return status_of(json.loads(disk.read_bytes(path))) if disk.exists(path) else None
    except (OSError, KeyError, TypeError, ValueError):
        return None


class RunReporter:
    """The reports of one run. The executor counts `steps_done`."""

    def __init__(
        self,
        run: str,
        clock: Clock,
        progress: RunProgress,
        schedule: Schedule,
        throttling: Throttling,
        pace: Pace,
        in_progress: ReassignmentsInProgress,
        listener: Callable[[RunStatus], object],
        foreseen: Foreseen,
    ) -> None:
        self._run, self._clock, self._progress, self._schedule = run, clock, progress, schedule
        self._throttling, self._pace, self._in_progress = throttling, pace, in_progress
        self._listener, self._time_left = listener, TimeLeft(foreseen.known)
        self._prediction, self._copied = foreseen.prediction, CopiedCurve()
        self._waited = WaitedTime()
        self._began_s = clock.monotonic_s()
        self._begun = frozenset(step.partition for step in schedule.waiting)
        self._last: ProgressReport | None = None
        self._seen: Mapping[TopicPartition, Partition] = {}
        self._took_s: float | None = None
        self.steps_done = 0

    def report(self, observation: Observation, paused: str | None, ended: str | None) -> None:
        """Report the status, and adjust the throttle to the progress."""
        wanted, self._seen = self._throttling.wanted, observation.partitions
        now_s = self._clock.monotonic_s()
        holds = paused is not None and self._schedule.left > len(self._in_progress)
        self._last = self._progress.report(
            observation,
            self._in_progress.steps,
            throttle=wanted,
            foreign_rates=self._throttling.foreign_rates,
            time_left=self._seconds_left if ended is None else self._nothing_left,
            paused=holds or self._waited.stands_still(now_s),
        )
        self._copied.add(self._seconds, self._progress.copied.copied_bytes)
        waits = self._schedule.why_stuck()
        if ended is None:
            self._pace.learn(self._last)
        why_idle = waits if paused is None else None
        self._waited.see(now_s, why_nothing_copies(self._last) or why_idle)
        self._listener(
            RunStatus(
                run=self._run,
                report=self._last,
                steps_done=self.steps_done,
                steps_left=self._schedule.left,
                under_way=len(self._in_progress),
                throttle=wanted.rate,
                dir_throttle=wanted.dir_rate,
                auto=self._pace.auto,
                by_hour=None if self._pace.hourly is None else str(self._pace.hourly),
                paused=paused,
                waits=waits,
                ended=ended,
                under_replicated=len(observation.under_replicated),
                offline=len(observation.offline),
                latency_s=observation.latency_s,
                silent=tuple(sorted(observation.silent)),
                predicted=self._predicted_now(self._last),
            )
        )

    def lessons(self) -> dict[str, object]:
        """Return how long the run took, its bytes over time, and what it has measured: for the journal.

        From here on the time stands still, so that the summary has the same as the journal.
        """
        self._took_s = round(self._seconds, 3)
        if not self._in_progress:
            self._copied.add(self._seconds, self._progress.arrived_bytes, last=True)
        copied, measured = self._copied.points, self._time_left.measured
        return {
            "seconds": self._took_s,
            "copied": copied,
            "measured": measured,
            "steered": list(self._pace.steered),
            "held": self._pace.held,
            "waited": self._waited.told,
        }

    @property
    def _seconds(self) -> float:
        if self._took_s is not None:
            return self._took_s
        return self._clock.monotonic_s() - self._began_s

    def _predicted_now(self, report: ProgressReport) -> PredictedNow | None:
        """Compare the prediction with what this run has copied of what it has to copy."""
        if self._prediction is None:
            return None
        copied, left = self._progress.copied.copied_bytes, report.to_do_bytes - report.done_bytes
        share = copied / (copied + left) if copied + left > 0 else 1.0
        return PredictedNow.of(self._prediction, self._seconds, share)

    def summary(self, ledger: RunLedger, *, done: bool) -> Summary:
        """Summarize what was done since this run began or was resumed."""
        left = self._left(self._begun)
        not_moved = left | ((ledger.dropped.keys() | ledger.found) & self._begun)
        copied = self._progress.copied
        busiest = copied.busiest()
        return Summary(
            run=self._run,
            partitions_moved=len(self._begun) - len(not_moved),
            partitions_moved_before=len(ledger.arrived - self._begun),
            partitions_left=len(left | ledger.dropped.keys()),
            copied_bytes=copied.copied_bytes,
            left_bytes=self._dropped_bytes(ledger)
            + (0 if self._last is None else self._last.to_do_bytes - self._last.done_bytes),
            seconds=self._seconds,
            prediction=self._prediction,
            done=done,
            busiest="" if busiest is None else str(busiest[0]),
            busiest_bytes=0 if busiest is None else busiest[1],
            steered=tuple(self._pace.steered),
            held=self._pace.held,
            waited=self._waited.told,
        )

    def _nothing_left(self, _: RestOfRun) -> float | None:
        return None if self._schedule.left else 0.0

    def _dropped_bytes(self, ledger: RunLedger) -> int:
        """Return what the dropped partitions would copy from where they are now."""
        return sum(
            replace(move, before=self._seen[move.partition].replicas).bytes_to_copy
            for move in ledger.plan.moves
            if move.partition in self._seen and ledger.dropped.get(move.partition, REMADE) != REMADE
        )

    def _seconds_left(self, rest: RestOfRun) -> float | None:
        pace = self._pace
        if not pace.in_force.predicts:
            return None
        return self._time_left.seconds(
            rest,
            self._schedule,
            pace.in_force,
            now_ms=self._clock.now_ms(),
            now_s=self._clock.monotonic_s(),
            behind_s=pace.behind_s,
        )

    def _left(self, names: Iterable[TopicPartition]) -> set[TopicPartition]:
        return {name for name in names if self._schedule.rest_of(name)}
