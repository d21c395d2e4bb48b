"""The answer of a rehearsal: how long, what limits it, what it does to brokers, disks and clients."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from restow._frozen import frozen
from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.execute.predict.by_events import LeaderChange
    from restow.execute.predict.prediction import TimeRange
    from restow.model import BrokerId
    from restow.plan.flow.forecast import StepTimes


class CannotRehearse(RestowError):
    """The plan does not fit the cluster, or cannot be done in time."""


@frozen
class Limiting:
    """Something that holds copies back, and for which share of the time."""

    what: str
    share: float


@frozen
class TopicRehearsal:
    """A topic whose leaders move: its producers and consumers connect to other brokers."""

    topic: str
    leaders_moved: int
    written: float | None
    read: float | None
    """Bytes per second through the leaders that move, on average; None without a load model."""


@frozen
class HourRehearsal:
    """What copying adds to a broker in one hour, on average, and what its clients do. Bytes per second."""

    begins_ms: int
    copied_in: float
    copied_out: float
    clients_in: float | None
    clients_out: float | None
    """With replicas in sync; None without a load model."""


@frozen
class BrokerRehearsal:
    """What one broker copies, in bytes, and its highest rates in bytes per second, beside its clients'."""

    broker: BrokerId
    received_bytes: int
    sent_bytes: int
    within_bytes: int
    most_in: float
    most_out: float
    clients_in: float | None
    clients_out: float | None
    """None without a load model."""
    rates: tuple[tuple[float, float, float], ...] = ()
    """Seconds since the start, and the rates in and out until then."""
    hours: tuple[HourRehearsal, ...] = ()


@frozen
class LogDirRehearsal:
    """The bytes in one log dir: before, at most, and when the last step has ended."""

    broker: BrokerId
    path: str
    before_bytes: int
    peak_bytes: int
    peak_s: float
    after_bytes: int
    limit_bytes: int | None
    """How much the plan lets it hold; None if its size is not known."""
    used: tuple[tuple[float, float], ...] = ()


@frozen
class FaultRehearsal:
    """What the run would do if something went wrong."""

    faults: str
    seconds: float
    ending: str
    pauses: tuple[str, ...]
    unfinished: int
    """Steps that would not end."""
    under_replicated: int
    """The most partitions that would be under-replicated at one time."""
    isr_margin: int | None
    """The least number of in-sync replicas beyond `min.insync.replicas`; negative where writes would fail."""
    leaders_moved: int
    progress: tuple[tuple[float, float], ...] = ()
    """Seconds since the start, and the bytes copied until then."""


@frozen
class StartOption:
    """A time to start, with its throttle: how long it takes then, and what it costs clients."""

    start_ms: int
    throttle: str
    seconds: float
    impact: float


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What a plan will do, as far as the model knows."""

    title: str
    cluster_id: str
    digest: str
    start_ms: int
    throttle: str
    moves: int
    bytes_to_copy: int
    seconds: TimeRange
    by: str
    """"executor" if the executor itself ran in virtual time, "events" if its schedule did, "messages" if the
    executor ran on a simulated cluster."""
    limiting: tuple[Limiting, ...]
    brokers: tuple[BrokerRehearsal, ...]
    log_dirs: tuple[LogDirRehearsal, ...]
    isr_margin: int | None
    """The least number of in-sync replicas beyond `min.insync.replicas` of a partition that moves."""
    read_from_disk_bytes: int
    """Bytes that leaders read from disk rather than from the page cache; all, if the cache is not known."""
    under_replicated: int
    """Partitions with fewer replicas in sync than replicas, at most, when no fault happens."""
    leader_changes: tuple[LeaderChange, ...]
    topics: tuple[TopicRehearsal, ...]
    """The topics whose leaders move."""
    steps: tuple[StepTimes, ...]
    known: Mapping[str, str]
    """Constants that were learned, and from what."""
    guessed: tuple[str, ...]
    problems: tuple[str, ...] = ()
    """Why this plan should not be carried out so: a full disk, a missed deadline, a step that never ends."""
    notes: tuple[str, ...] = ()
    deadline_s: float | None = None
    pauses: tuple[str, ...] = ()
    what_if: tuple[FaultRehearsal, ...] = field(default=())
    impact: float | None = None
    """What it costs clients, in bytes that wait (`restow.rehearse.impact`); None without a load model."""
    starts: tuple[StartOption, ...] = ()
    """The starts that "auto" has compared, the cheapest first."""

    @property
    def holds(self) -> bool:
        """Return whether nothing speaks against carrying the plan out so."""
        return not self.problems

    @property
    def progress(self) -> tuple[tuple[float, float], ...]:
        """Return the bytes received by all brokers over time."""
        total, done, last_s = 0.0, [(0.0, 0.0)], 0.0
        times = [at for at, _, _ in self.brokers[0].rates] if self.brokers else []
        for number, at_s in enumerate(times):
            total += sum(each.rates[number][1] for each in self.brokers) * (at_s - last_s)
            last_s = at_s
            done.append((at_s, total))
        return tuple(done)

    def document(self) -> dict[str, Any]:
        """Return the answer as JSON; a time that never comes is null."""
        return {
            **{
                name: getattr(self, name)
                for name in (
                    "title",
                    "cluster_id",
                    "digest",
                    "start_ms",
                    "throttle",
                    "moves",
                    "bytes_to_copy",
                    "by",
                    "isr_margin",
                    "read_from_disk_bytes",
                    "under_replicated",
                    "deadline_s",
                    "impact",
                    "holds",
                )
            },
            "seconds": self.seconds.document(),
            "problems": list(self.problems),
            "notes": list(self.notes),
            "pauses": list(self.pauses),
            "limiting": [asdict(each) for each in self.limiting],
            "known": dict(self.known),
            "guessed": list(self.guessed),
            "brokers": [asdict(each) for each in self.brokers],
            "log_dirs": [asdict(each) for each in self.log_dirs],
            "topics": [asdict(each) for each in self.topics],
            "leader_changes": [
                {"at_s": each.at_s, "partition": str(each.partition), "from": each.before, "to": each.after}
                for each in self.leader_changes
            ],
            "steps": [
                {
                    "partition": str(each.step.partition),
                    "before": list(each.step.before),
                    "after": list(each.step.after),
                    "begun_s": each.begun_s,
                    "ended_s": _time(each.ended_s),
                }
                for each in self.steps
            ],
            "starts": [asdict(each) for each in self.starts],
            "what_if": [{**asdict(each), "seconds": _time(each.seconds)} for each in self.what_if],
        }


def _time(seconds: float) -> float | None:
    return None if seconds == inf else round(seconds, 3)
