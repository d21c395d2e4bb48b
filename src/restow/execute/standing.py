"""Where a run stands, for whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.execute.progress import Report


class Tell(Protocol):
    """Say that something happened."""

    def __call__(self, kind: str, **facts: object) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened during a run, for a log."""

    at_ms: int
    kind: str
    facts: Mapping[str, object]

    def document(self) -> dict[str, object]:
        return {"at_ms": self.at_ms, "event": self.kind, **self.facts}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Everything a live view shows."""

    run: str
    report: Report
    steps_done: int
    steps_left: int
    under_way: int
    throttle: int | None
    auto: bool
    paused: str | None
    """Why nothing new begins."""
    waits: str | None
    """What hinders the first that waits, if nothing is under way."""
    under_replicated: int
    offline: int
    latency_s: float

    def document(self) -> dict[str, object]:
        """What a line of JSON says of it."""
        report = self.report
        return {
            "run": self.run,
            "done_bytes": report.done_bytes,
            "to_do_bytes": report.to_do_bytes,
            "rate": round(report.rate),
            "eta_s": None
            if report.eta is None
            else [round(report.eta.soonest_s, 1), round(report.eta.latest_s, 1)],
            "steps_done": self.steps_done,
            "steps_left": self.steps_left,
            "under_way": self.under_way,
            "throttle": self.throttle,
            "paused": self.paused,
            "waits": self.waits,
            "under_replicated": self.under_replicated,
            "offline": self.offline,
            "latency_ms": round(self.latency_s * 1000, 1),
            "brokers": {
                str(each.broker): {
                    "done_bytes": each.done_bytes,
                    "to_do_bytes": each.to_do_bytes,
                    "replicas": each.replicas,
                }
                for each in report.brokers
            },
            "replicas": [
                {
                    "partition": str(each.partition),
                    "broker": each.broker,
                    "copied_bytes": each.copied_bytes,
                    "size_bytes": each.size_bytes,
                    "behind_bytes": each.behind_bytes,
                    "in_sync": each.in_sync,
                }
                for each in report.copying
            ],
            "still": [
                {
                    "partition": str(each.partition),
                    "broker": each.broker,
                    "cause": each.cause.value,
                    "evidence": each.evidence,
                    "advice": each.advice,
                }
                for each in report.still
            ],
        }
