"""Progress of a run: bytes copied, rate, estimated end, and why a replica is stalled.

Pure: it takes the jobs and one observation of the cluster after the other. Sizes are those of the latest
observation. A replica has to copy what its leader holds now; a replica that changes its log dir has to copy
what its own broker holds. A replica that has arrived counts with its size at that time.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from restow._frozen import frozen
from restow.execute.predict.rest import RestOfRun
from restow.execute.progress.speeds import Speeds, of_all
from restow.execute.progress.stuck import Stall, Stalls
from restow.execute.throttle.throttles import ThrottleRates
from restow.model import ANY_DIR
from restow.plan.schedule.traffic import Channel, Traffic, Way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from restow.execute.progress.observation import Observation
    from restow.execute.progress.stuck import StepStall, StuckReplica
    from restow.model import BrokerId, Snapshot, Step, TopicPartition


class Job(NamedTuple):
    """One replica to copy: to a broker, or to another log dir of its broker."""

    partition: TopicPartition
    broker: BrokerId
    log_dir: str | None = None
    """The target log dir, if the replica stays on its broker."""


@frozen
class Copying:
    """A replica that is being copied, to a broker or within one."""

    partition: TopicPartition
    broker: BrokerId
    leader: BrokerId | None
    """The sending broker; for a copy between log dirs, the broker itself."""
    size_bytes: int
    copied_bytes: int
    """0 if it is not known, because the broker has not answered."""
    in_sync: bool
    log_dir: str | None = None
    """The target log dir, if the replica stays on its broker."""
    answered: bool = True
    """Whether the broker has told how much it has copied."""

    @property
    def job(self) -> Job:
        return Job(self.partition, self.broker, self.log_dir)

    @property
    def behind_bytes(self) -> int:
        """Return the bytes missing from the leader's log. Only future replicas have a lag in messages."""
        return max(0, self.size_bytes - self.copied_bytes)


@frozen
class BrokerPart:
    """What one broker has received and sent so far, and its totals."""

    broker: BrokerId
    done_bytes: int
    to_do_bytes: int
    replicas: int
    """Replicas that are being copied to it now."""
    sent_bytes: int = 0
    to_send_bytes: int = 0
    received_rate: int = 0
    """Recent bytes per second, in the same span as the rate of the whole run."""
    sent_rate: int = 0


@frozen
class DirPart:
    """What one log dir has received from other log dirs of its broker, and its total."""

    broker: BrokerId
    path: str
    done_bytes: int
    to_do_bytes: int
    replicas: int


@frozen
class ProgressReport:
    """The progress at one moment."""

    done_bytes: int
    to_do_bytes: int
    rate: float
    """Recent bytes per second of all replicas together."""
    eta_s: float | None
    """Seconds left by the flow model; None if no rate is known, or it would never end."""
    brokers: tuple[BrokerPart, ...]
    copying: tuple[Copying, ...]
    still: tuple[StuckReplica, ...]
    dirs: tuple[DirPart, ...] = ()


class _Arrived(NamedTuple):
    """A replica that has arrived. The first observation after that corrects its size."""

    job: Job
    sender: BrokerId | None
    size_bytes: int
    at_s: float


class RunProgress:
    """Tracks all replicas to copy through one observation after the other."""

    def __init__(self, stall_s: float) -> None:
        self._stalls = Stalls(stall_s)
        self._jobs: dict[Step, tuple[Job, ...]] = {}
        self._last: dict[Job, Copying] = {}
        self._observation: Observation | None = None
        self._done = Traffic()
        self._found: dict[Job, int] = {}
        """Bytes already copied of replicas that were under way before this run,"""
        self._found_done = Traffic()
        """Bytes of those among them that have arrived."""
        self.copied = Traffic()
        """Bytes copied since this run began, as of the last report."""
        self._dirs_done: Counter[tuple[BrokerId, str]] = Counter()
        self._fresh: list[_Arrived] = []
        self._speeds = Speeds()
        self._begun: dict[Step, float] = {}

    @property
    def arrived_bytes(self) -> int:
        """Return the bytes copied since this run began of replicas that have arrived by now."""
        return Traffic(self._done.by_channel - self._found_done.by_channel).copied_bytes

    def expect(self, chain: Sequence[Step], lies: Mapping[BrokerId, str]) -> None:
        """Add the steps of one partition; `lies` maps brokers to the log dirs of its replicas."""
        there = dict(lies)
        for step in chain:
            targets = dict(zip(step.after, step.log_dirs, strict=False))
            within = [
                Job(step.partition, broker, path)
                for broker, path in targets.items()
                if path != ANY_DIR and broker in step.before and there.get(broker) != path
            ]
            there.update({broker: path for broker, path in targets.items() if path != ANY_DIR})
            self._jobs[step] = (*(Job(step.partition, broker) for broker in step.adding), *within)

    def found_in_progress(self, step: Step, snapshot: Snapshot) -> None:
        """Note that a step began earlier, so that bytes copied before do not count for this run."""
        known = snapshot.partition(step.partition)
        copies = () if known is None else known.copies
        for job in self._jobs.get(step, ()):
            future = job.log_dir is not None
            here = (each for each in copies if each.broker == job.broker and each.future is future)
            self._found[job] = sum(each.size_bytes for each in here)

    def begin(self, steps: Iterable[Step], at_s: float) -> None:
        """Note when steps were requested."""
        self._begun.update(dict.fromkeys(steps, at_s))

    def forget(self, steps: Iterable[Step]) -> None:
        """Remove steps that will not be carried out."""
        for step in steps:
            self._let_go(step)

    def finish(self, step: Step, at_s: float) -> None:
        """Count a step as completed."""
        begun_s = self._begun.pop(step, None)
        if begun_s is not None:
            self._speeds.step_took(at_s - begun_s, step.size_bytes)
        for job in self._jobs.get(step, ()):
            last = self._last.get(job)
            if last is None and self._observation is not None:
                last = _copying(job, step, self._observation)
            size, sender = (step.size_bytes, None) if last is None else (last.size_bytes, last.leader)
            arrived = _Arrived(job, sender, size, at_s)
            self._count(arrived, size)
            _add(self._found_done, job, sender, self._found.get(job, 0))
            self._fresh.append(arrived)
        self._let_go(step)

    def report(
        self,
        observation: Observation,
        in_progress: Iterable[Step],
        *,
        throttle: ThrottleRates | None = None,
        foreign_rates: Mapping[BrokerId, int] | None = None,
        time_left: Callable[[RestOfRun], float | None] = lambda _: None,
        paused: bool = False,
    ) -> ProgressReport:
        """Return the progress.

        A paused run with waiting steps has no `time_left`, nor has one that waits for a broker to come back:
        when will it go on?
        """
        in_progress = tuple(in_progress)
        self._observation = observation
        self._settle(observation)
        copying, waiting = self._look(observation, in_progress)
        now, left, found = Traffic(), Traffic(), Traffic()
        for each in copying:
            copied = min(each.copied_bytes, each.size_bytes)
            _add(now, each.job, each.leader, copied)
            _add(left, each.job, each.leader, each.size_bytes - copied)
            _add(found, each.job, each.leader, self._found.get(each.job, 0))
        for each in waiting:
            _add(left, each.job, each.leader, each.size_bytes)
        done = Traffic(self._done.by_channel + now.by_channel)
        self.copied = Traffic(done.by_channel - found.by_channel - self._found_done.by_channel)
        if paused and not copying:
            self._speeds.forget()
        self._speeds.see(observation.at_s, done, _busy(copying))
        rates = self._speeds.recent()
        rest = RestOfRun(observation, in_progress, copying, waiting, left, self._speeds)
        stalls = self.stalls(observation, in_progress, throttle, foreign_rates)
        blocked = any(each.stall is Stall.BLOCKED for each in stalls.values())
        unknown = paused or blocked or any(_waits_for_a_broker(each, observation) for each in waiting)
        return ProgressReport(
            done_bytes=done.copied_bytes,
            to_do_bytes=done.copied_bytes + left.copied_bytes,
            rate=of_all(rates),
            eta_s=None if unknown else time_left(rest),
            brokers=_broker_parts(done, left, copying, rates),
            copying=copying,
            still=tuple(replica for each in stalls.values() for replica in each.replicas),
            dirs=self._dir_parts(copying, waiting),
        )

    def stalls(
        self,
        observation: Observation,
        in_progress: Iterable[Step],
        throttle: ThrottleRates | None = None,
        foreign_rates: Mapping[BrokerId, int] | None = None,
    ) -> dict[Step, StepStall]:
        """Return the steps under way that have a stalled replica."""
        throttle, foreign = throttle or ThrottleRates(), foreign_rates or {}
        found = {}
        for step in in_progress:
            copying = [_copying(job, step, observation) for job in self._jobs.get(step, ())]
            if (stall := self._stalls.see(step, copying, observation, throttle, foreign)) is not None:
                found[step] = stall
        return found

    def _look(
        self, observation: Observation, in_progress: Iterable[Step]
    ) -> tuple[tuple[Copying, ...], tuple[Copying, ...]]:
        """Return the replicas that are being copied, and those that are waiting."""
        steps = dict.fromkeys(in_progress)
        copying = [_copying(job, step, observation) for step in steps for job in self._jobs.get(step, ())]
        waiting = [
            _copying(job, step, observation, waits=True)
            for step, jobs in self._jobs.items()
            if step not in steps
            for job in jobs
        ]
        self._last.update({each.job: each for each in copying})
        return tuple(copying), tuple(waiting)

    def _settle(self, observation: Observation) -> None:
        """Correct the sizes of replicas that have arrived since the last observation."""
        later = []
        for each in self._fresh:
            if each.at_s >= observation.at_s:
                later.append(each)
                continue
            copy = observation.copies.get(each.job.partition, {}).get(each.job.broker)
            if copy is not None:
                self._count(each, copy.size_bytes - each.size_bytes)
        self._fresh = later

    def _count(self, arrived: _Arrived, size_bytes: int) -> None:
        job = arrived.job
        _add(self._done, job, arrived.sender, size_bytes)
        if job.log_dir is not None:
            self._dirs_done[job.broker, job.log_dir] += size_bytes

    def _dir_parts(self, copying: Iterable[Copying], waiting: Iterable[Copying]) -> tuple[DirPart, ...]:
        done, to_do = Counter(self._dirs_done), Counter(self._dirs_done)
        for each in (*copying, *waiting):
            if each.log_dir is not None:
                to_do[each.broker, each.log_dir] += each.size_bytes
                done[each.broker, each.log_dir] += min(each.copied_bytes, each.size_bytes)
        replicas = Counter((each.broker, each.log_dir) for each in copying)
        return tuple(
            DirPart(
                broker=place[0],
                path=place[1],
                done_bytes=done[place],
                to_do_bytes=to_do[place],
                replicas=replicas[place],
            )
            for place in sorted(to_do)
        )

    def _let_go(self, step: Step) -> None:
        jobs = self._jobs.pop(step, ())
        self._stalls.forget(step, jobs)
        for job in jobs:
            self._last.pop(job, None)


def places(snapshot: Snapshot, partition: TopicPartition) -> dict[BrokerId, str]:
    """Return the log dir of each replica of a partition, as far as brokers report it."""
    found = snapshot.partition(partition)
    copies = () if found is None else found.copies
    return {copy.broker: copy.log_dir for copy in copies if not copy.future}


def _copying(job: Job, step: Step, observation: Observation, *, waits: bool = False) -> Copying:
    """Return a replica's present state.

    What a broker has of a waiting replica counts only if that is no replica now: the copy goes on from there.
    """
    known = observation.partitions.get(job.partition)
    here = observation.copies.get(job.partition, {}).get(job.broker)
    in_sync = known is not None and job.broker in known.isr
    if job.log_dir is None:
        leader = step.before[0] if known is None else known.leader
        size = observation.size_of(job.partition) or step.size_bytes
        copied = 0 if here is None else here.size_bytes
        left_over = known is not None and job.broker not in known.replicas
    else:
        leader, size = job.broker, step.size_bytes if here is None else here.size_bytes
        in_sync = here is not None and here.log_dir == job.log_dir
        future = observation.futures.get(job.partition, {}).get(job.broker)
        copied = size if in_sync else 0 if future is None else future.size_bytes
        left_over = False
    return Copying(
        partition=job.partition,
        broker=job.broker,
        leader=leader,
        size_bytes=size,
        copied_bytes=copied if left_over or not waits else 0,
        in_sync=in_sync and not waits,
        log_dir=job.log_dir,
        answered=job.broker in observation.dirs,
    )


def _waits_for_a_broker(replica: Copying, observation: Observation) -> bool:
    """Return whether a replica that waits for its turn cannot be copied before a broker is back."""
    return replica.broker not in observation.alive or replica.leader not in observation.alive


def _add(traffic: Traffic, job: Job, sender: BrokerId | None, size_bytes: int) -> None:
    if job.log_dir is None:
        traffic.copy(size_bytes, to=job.broker, sender=sender)
    else:
        traffic.copy_within(size_bytes, job.broker)


def _busy(copying: Iterable[Copying]) -> dict[Channel, set[Job]]:
    """Return the replicas that are being copied through each channel."""
    found: dict[Channel, set[Job]] = {}
    for each in copying:
        if each.answered and each.behind_bytes:
            for channel in _channels(each):
                found.setdefault(channel, set()).add(each.job)
    return found


def _channels(each: Copying) -> Iterator[Channel]:
    if each.log_dir is not None:
        yield Channel(Way.WITHIN, each.broker)
        return
    yield Channel(Way.RECEIVED, each.broker)
    if each.leader is not None:
        yield Channel(Way.SENT, each.leader)


def _broker_parts(
    done: Traffic, left: Traffic, copying: Iterable[Copying], rates: Mapping[Channel, float]
) -> tuple[BrokerPart, ...]:
    replicas = Counter(each.broker for each in copying if each.log_dir is None)
    received, sent = done.of(Way.RECEIVED), done.of(Way.SENT)
    to_receive, to_send = left.of(Way.RECEIVED), left.of(Way.SENT)
    brokers = sorted({*received, *sent, *to_receive, *to_send})
    return tuple(
        BrokerPart(
            broker=broker,
            done_bytes=received.get(broker, 0),
            to_do_bytes=received.get(broker, 0) + to_receive.get(broker, 0),
            replicas=replicas[broker],
            sent_bytes=sent.get(broker, 0),
            to_send_bytes=sent.get(broker, 0) + to_send.get(broker, 0),
            received_rate=round(rates.get(Channel(Way.RECEIVED, broker), 0)),
            sent_rate=round(rates.get(Channel(Way.SENT, broker), 0)),
        )
        for broker in brokers
    )
