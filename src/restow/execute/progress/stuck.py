"""Find out why a replica is stalled, and whether the whole step is."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, NamedTuple

from restow._frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.execute.progress.observation import Observation
    from restow.execute.progress.progress import Copying, Job
    from restow.execute.throttle.throttles import ThrottleRates
    from restow.model import BrokerId, Step, TopicPartition

_NEARLY_FULL = 0.995


class Cause(Enum):
    """Why a replica is stalled."""

    DEAD_TARGET = "dead target"
    LEADER_GONE = "leader gone"
    FULL_DIR = "full dir"
    THROTTLE = "throttle below the incoming rate"
    QUOTA = "quota"
    NO_PROGRESS = "no progress"


class Stall(IntEnum):
    """How badly a replica is stalled, from mild to bad."""

    SLOW = 1
    """Bytes come, but too slowly ever to end, or into a log dir that is nearly full."""
    STILL = 2
    """No byte has come for a while. It may go on at any moment."""
    BLOCKED = 3
    """No byte can come until its broker, its leader or its log dir is back."""


@frozen
class StuckReplica:
    """A replica that is stalled, or that falls behind faster than it copies."""

    partition: TopicPartition
    broker: BrokerId
    cause: Cause
    evidence: str
    advice: str
    stall: Stall = Stall.STILL

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

    def add(self, at_s: float, copied: int | None, size: int) -> None:
        """Add the sizes of one look; `copied` is None if the broker has not told it."""
        before = self.seen[-1][1] if self.seen else 0
        copied = before if copied is None else copied
        if self.grew_s is None or copied > before:
            self.grew_s = at_s
        self.seen.append((at_s, copied, size))
        self.most = max(self.most, copied)

    def wait(self) -> None:
        """Let the time without a byte begin now: until now none could come."""
        self.grew_s = self.seen[-1][0]

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


class StepStall(NamedTuple):
    """The stalled replicas of a step under way."""

    replicas: tuple[StuckReplica, ...]
    stall: Stall | None
    """None if another replica of the step is copied as it should be; else the mildest of its stalls."""


class Stalls:
    """The stalls of the steps of a run, through one observation after the other."""

    def __init__(self, stall_s: float) -> None:
        self._stall_s = stall_s
        self._history: dict[Job, History] = {}
        self._copied_since_s: dict[Step, float] = {}
        """Since when all replicas of a step are in sync, while it has not ended."""

    def see(
        self,
        step: Step,
        copying: Sequence[Copying],
        observation: Observation,
        throttle: ThrottleRates,
        foreign: Mapping[BrokerId, int],
    ) -> StepStall | None:
        """Return what is stalled of a step under way; None if nothing is. `copying` are its copies."""
        found = [self._of_replica(each, observation, throttle, foreign) for each in copying]
        stuck = tuple(each for each in found if each is not None)
        if all(each.in_sync for each in copying):
            stuck = self._all_copied(step, observation)
            pending = len(stuck)
        else:
            self._copied_since_s.pop(step, None)
            pending = sum(not each.in_sync for each in copying)
        if not stuck:
            return None
        return StepStall(stuck, min(each.stall for each in stuck) if len(stuck) == pending else None)

    def forget(self, step: Step, jobs: Iterable[Job]) -> None:
        """Forget a step that has ended, with its copies."""
        self._copied_since_s.pop(step, None)
        for job in jobs:
            self._history.pop(job, None)

    def _of_replica(
        self,
        replica: Copying,
        observation: Observation,
        throttle: ThrottleRates,
        foreign: Mapping[BrokerId, int],
    ) -> StuckReplica | None:
        history = self._history.setdefault(replica.job, History())
        copied = replica.copied_bytes if replica.answered else None
        history.add(observation.at_s, copied, replica.size_bytes)
        within = replica.log_dir is not None
        found = why_stuck(
            replica,
            history,
            observation,
            stall_s=self._stall_s,
            throttle=throttle.dir_rate if within else throttle.rate,
            foreign={} if within else foreign,
        )
        if found is not None and found.stall is Stall.BLOCKED:
            history.wait()
        return found

    def _all_copied(self, step: Step, observation: Observation) -> tuple[StuckReplica, ...]:
        """Return the replicas that were there before and that hold up a step with nothing left to copy.

        A controller ends a move when all replicas that are to stay are in sync, too.
        """
        since_s = observation.at_s - self._copied_since_s.setdefault(step, observation.at_s)
        now = observation.partitions.get(step.partition)
        lagging = [] if now is None else [broker for broker in step.after if broker not in now.isr]
        for broker in lagging:
            if broker not in observation.alive:
                return (_dead_target(step.partition, broker),)
        return tuple(_out_of_sync(step.partition, b, since_s) for b in lagging if since_s >= self._stall_s)


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

    is_still = history.still_s() >= stall_s
    slow_or_still = Stall.STILL if is_still else Stall.SLOW

    def still(cause: Cause, evidence: str, advice: str, stall: Stall = slow_or_still) -> StuckReplica:
        return StuckReplica(
            partition=replica.partition,
            broker=replica.broker,
            cause=cause,
            evidence=evidence,
            advice=advice,
            stall=stall,
        )

    if replica.in_sync:
        return None
    if replica.broker not in observation.alive:
        return _dead_target(replica.partition, replica.broker)
    if replica.leader is None or replica.leader not in observation.alive:
        return still(
            Cause.LEADER_GONE,
            "the partition has no leader to copy from",
            "bring one of its in-sync replicas back",
            Stall.BLOCKED,
        )
    if full := _full_dir(replica, observation, was_there=history.most > 0, is_still=is_still):
        evidence, failed = full
        advice = "make room there, or cancel and choose another log dir"
        return still(Cause.FULL_DIR, evidence, advice, Stall.BLOCKED if failed else slow_or_still)
    if not replica.answered:
        return _silent(replica, history, observation) if is_still else None
    rates = history.rates(stall_s)
    limit = min((foreign[b] for b in (replica.broker, replica.leader) if b in foreign), default=None)
    slow = is_still or (rates is not None and 0 < rates[0] <= rates[1])
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
    if is_still:
        return still(
            Cause.NO_PROGRESS,
            f"no byte in {history.still_s():.0f} s, {replica.behind_bytes:,} bytes behind",
            f"look at the log of broker {replica.broker}, and of its leader {replica.leader}",
        )
    return None


def _dead_target(partition: TopicPartition, broker: BrokerId) -> StuckReplica:
    """Return that a partition waits for a broker that is not alive."""
    return StuckReplica(
        partition=partition,
        broker=broker,
        cause=Cause.DEAD_TARGET,
        evidence=f"broker {broker} is not there",
        advice=f"bring broker {broker} back, or cancel and plan without it",
        stall=Stall.BLOCKED,
    )


def _out_of_sync(partition: TopicPartition, broker: BrokerId, since_s: float) -> StuckReplica:
    """Return that a move whose copies are all in sync waits for a replica that was there before."""
    return StuckReplica(
        partition=partition,
        broker=broker,
        cause=Cause.NO_PROGRESS,
        evidence=f"all is copied, and the replica on broker {broker} is not in sync for {since_s:.0f} s",
        advice=f"look at the log of broker {broker}",
    )


def _silent(replica: Copying, history: History, observation: Observation) -> StuckReplica | None:
    """Return that a broker does not answer; None if it answers, but may not tell the sizes of replicas."""
    if replica.broker not in observation.silent:
        return None
    return StuckReplica(
        partition=replica.partition,
        broker=replica.broker,
        cause=Cause.NO_PROGRESS,
        evidence=f"broker {replica.broker} does not answer, no byte was seen in {history.still_s():.0f} s",
        advice=f"look at the log of broker {replica.broker}",
    )


def _full_dir(
    replica: Copying, observation: Observation, *, was_there: bool, is_still: bool
) -> tuple[str, bool] | None:
    """Return the replica's log dir if it is full, or all log dirs if the replica is in none yet; and whether
    it has certainly failed, so that nothing is copied until its broker starts again.

    A broker does not list the replicas of a failed log dir: a replica that has vanished, or was never listed,
    is assumed to be in it.
    """
    known = observation.copies if replica.log_dir is None else observation.futures
    copy = known.get(replica.partition, {}).get(replica.broker)
    dirs = observation.dirs.get(replica.broker, ())
    if copy is None and (was_there or is_still) and (failed := [each.path for each in dirs if each.failed]):
        return f"broker {replica.broker}: {failed[0]} has failed", was_there
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
    if not bad or len(bad) < len(here):
        return None
    return f"broker {replica.broker}: {'; '.join(bad)}", all(each.failed for each in here)
