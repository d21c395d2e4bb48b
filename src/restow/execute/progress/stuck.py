"""Find out why a replica is stalled."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.execute.progress.observation import Observation
    from restow.execute.progress.progress import Copying
    from restow.model import BrokerId, TopicPartition

_NEARLY_FULL = 0.995


class Cause(Enum):
    """Why a replica is stalled."""

    DEAD_TARGET = "dead target"
    LEADER_GONE = "leader gone"
    FULL_DIR = "full dir"
    THROTTLE = "throttle below the incoming rate"
    QUOTA = "quota"
    NO_PROGRESS = "no progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckReplica:
    """A replica that is stalled, or that falls behind faster than it copies."""

    partition: TopicPartition
    broker: BrokerId
    cause: Cause
    evidence: str
    advice: str

    def __str__(self) -> str:
        return f"{self.partition} to {self.broker}: {self.cause.value}: {self.evidence}"


@dataclass(slots=True)
class History:
    """The recent sizes of a replica and of its original."""

    seen: deque[tuple[float, int, int]] = field(default_factory=deque)
    grew_s: float | None = None
    """When it was last seen to grow."""
    most: int = 0
    """Its largest size so far."""

    def add(self, at_s: float, copied: int, size: int) -> None:
        if self.grew_s is None or (self.seen and copied > self.seen[-1][1]):
            self.grew_s = at_s
        self.seen.append((at_s, copied, size))
        self.most = max(self.most, copied)

    def still_s(self) -> float:
        return 0.0 if self.grew_s is None else self.seen[-1][0] - self.grew_s

    def rates(self, span_s: float) -> tuple[float, float] | None:
        """Return how fast the copy and the original grew; None if the history is shorter than the span."""
        last_s, copied, size = self.seen[-1]
        while len(self.seen) > 2 and last_s - self.seen[1][0] >= span_s:
            self.seen.popleft()
        first_s, copied_first, size_first = self.seen[0]
        took = last_s - first_s
        if took < span_s:
            return None
        return (copied - copied_first) / took, (size - size_first) / took


def why_stuck(
    replica: Copying,
    history: History,
    observation: Observation,
    *,
    stall_s: float,
    throttle: int | None,
    foreign: Mapping[BrokerId, int],
) -> StuckReplica | None:
    """Return the first cause that explains a stall; None without one. `foreign` are rates of other tools."""

    def still(cause: Cause, evidence: str, advice: str) -> StuckReplica:
        return StuckReplica(
            partition=replica.partition, broker=replica.broker, cause=cause, evidence=evidence, advice=advice
        )

    if replica.in_sync:
        return None
    if replica.broker not in observation.alive:
        return still(
            Cause.DEAD_TARGET,
            f"broker {replica.broker} is not there",
            f"bring broker {replica.broker} back, or cancel and plan without it",
        )
    if replica.leader is None or replica.leader not in observation.alive:
        return still(
            Cause.LEADER_GONE,
            "the partition has no leader to copy from",
            "bring one of its in-sync replicas back",
        )
    if full := _full_dir(replica, observation, vanished=history.most > 0 or history.still_s() >= stall_s):
        return still(Cause.FULL_DIR, full, "make room there, or cancel and choose another log dir")
    rates = history.rates(stall_s)
    limit = min((foreign[b] for b in (replica.broker, replica.leader) if b in foreign), default=None)
    slow = history.still_s() >= stall_s or (rates is not None and 0 < rates[0] <= rates[1])
    if slow and limit is not None:
        return still(
            Cause.QUOTA,
            f"somebody else limits replication to {limit:,} B/s there",
            "ask whose throttle that is; `restow doctor` shows it",
        )
    if rates is not None and throttle is not None and rates[1] > 0 and rates[0] <= rates[1]:
        return still(
            Cause.THROTTLE,
            f"{rates[1]:,.0f} B/s are written to it and {rates[0]:,.0f} B/s are copied, "
            f"with a throttle of {throttle:,} B/s",
            "raise the throttle: `restow control --throttle …`, or auto",
        )
    if history.still_s() >= stall_s:
        return still(
            Cause.NO_PROGRESS,
            f"no byte in {history.still_s():.0f} s, {replica.behind_bytes:,} bytes behind",
            f"look at the log of broker {replica.broker}, and of its leader {replica.leader}",
        )
    return None


def _full_dir(replica: Copying, observation: Observation, *, vanished: bool) -> str | None:
    """Return the replica's log dir if it is full, or all log dirs if the replica is in none yet.

    A broker does not list the replicas of a failed log dir: a replica that has vanished, or was never listed,
    is assumed to be in it.
    """
    known = observation.copies if replica.log_dir is None else observation.futures
    copy = known.get(replica.partition, {}).get(replica.broker)
    dirs = observation.dirs.get(replica.broker, ())
    if copy is None and vanished and (failed := [each.path for each in dirs if each.failed]):
        return f"broker {replica.broker}: {failed[0]} has failed"
    wanted = replica.log_dir if copy is None else copy.log_dir
    here = [each for each in dirs if wanted is None or each.path == wanted]
    bad = []
    for each in here:
        if each.failed:
            bad.append(f"{each.path} has failed")
        elif each.usable_bytes is not None and each.total_bytes:
            used = 1 - each.usable_bytes / each.total_bytes
            if used >= _NEARLY_FULL:
                bad.append(f"{each.path} is {used:.1%} full")
    return f"broker {replica.broker}: {'; '.join(bad)}" if bad and len(bad) == len(here) else None
