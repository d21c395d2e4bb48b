"""Watch all moves on a cluster, whichever tool began them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.errors import RestowError
from restow.execute.predict.rest import TimeLeft, brokers_of
from restow.execute.progress.observation import look
from restow.execute.progress.progress import RunProgress
from restow.execute.progress.status import RunStatus, read_status
from restow.execute.run.lock import holder_of
from restow.execute.run.options import RunOptions
from restow.model import ANY_DIR, Limits, ReplicaAssignment, Step
from restow.plan.flow.constants import Calibration
from restow.plan.schedule.admission import Admission
from restow.plan.schedule.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection

    from restow.execute.journal.runs import Runs
    from restow.execute.predict.rest import RestOfRun
    from restow.execute.progress.observation import Observation
    from restow.execute.run.start import RunContext
    from restow.model import TopicPartition

_STALL_S = 30.0
_NO_LIMITS = Limits(moves_in=1_000_000, moves_out=1_000_000, fill=1_000_000)


async def watch(world: RunContext, every_s: float) -> AsyncGenerator[RunStatus, None]:
    """Yield the status again and again until the caller stops.

    If a run is active on this machine, its own status is shown, because only it knows what is waiting and
    what is done. For all other moves, the total is what was under way at the first look or has begun since.
    """
    runs = await world.runs()
    followed: str | None = None
    strangers = Strangers()
    while True:
        observation = await look(world.admin, world.clock, strangers.known)
        holder = holder_of(world.disk, runs.folder)
        if holder is not None:
            followed = holder.run
        told = None if followed is None else read_status(world.disk, runs.path(followed))
        if told is None:
            yield strangers.see(observation)
        else:
            others = strangers.see(observation, _planned(runs, followed or ""))
            yield replace(told, others=others if others.under_way else None)
        if holder is None:
            followed = None
        await world.clock.sleep(every_s)


class Strangers:
    """Moves that no run on this machine has begun."""

    def __init__(self) -> None:
        self._progress = RunProgress(_STALL_S)
        self.known: dict[TopicPartition, Step] = {}
        """The moves that were in progress at the last look."""
        self._done = 0
        self._time_left = TimeLeft(Calibration())

    def see(self, observation: Observation, ours: Collection[TopicPartition] = ()) -> RunStatus:
        """Return the progress of these moves."""
        now = {name: step for name, step in steps_in_progress(observation).items() if name not in ours}
        for name, step in tuple(self.known.items()):
            if name in ours or (name in now and now[name].after != step.after):
                self._progress.forget([self.known.pop(name)])
            elif name not in now:
                self._done += 1
                self._progress.finish(self.known.pop(name), observation.at_s)
        for name, step in now.items():
            if name not in self.known:
                lies = {broker: copy.log_dir for broker, copy in observation.copies.get(name, {}).items()}
                self._progress.expect([step], lies)
                self.known[name] = step
        return RunStatus(
            run="",
            report=self._progress.report(observation, self.known.values(), time_left=self._seconds_left),
            steps_done=self._done,
            steps_left=len(self.known),
            under_way=len(self.known),
            throttle=None,
            auto=False,
            paused=None,
            waits=None,
            under_replicated=len(observation.under_replicated),
            offline=len(observation.offline),
            latency_s=observation.latency_s,
            silent=tuple(sorted(observation.silent)),
        )

    def _seconds_left(self, rest: RestOfRun) -> float | None:
        """Return when all of these moves are done; all of them are under way."""
        admission = Admission(brokers_of(rest.observation), _NO_LIMITS)
        schedule = Schedule(([step] for step in rest.under_way), admission)
        rest = rest._replace(under_way=())
        return self._time_left.seconds(rest, schedule, RunOptions(special_last=False), now_ms=0)


def _planned(runs: Runs, name: str) -> frozenset[TopicPartition]:
    """Return the partitions of a run's plan."""
    try:
        return frozenset(move.partition for move in runs.get(name).ledger.plan.moves)
    except RestowError:
        return frozenset()


def steps_in_progress(observation: Observation) -> dict[TopicPartition, Step]:
    """Return the reassignments in progress, and the replicas that are changing their log dir."""
    found = {}
    for name, move in observation.moves.items():
        moving = ReplicaAssignment(move.replicas, move.adding, move.removing)
        found[name] = Step(
            partition=name, before=moving.origin, after=moving.target, size_bytes=observation.size_of(name)
        )
    for name, futures in observation.futures.items():
        known = observation.partitions.get(name)
        if known is not None and name not in found:
            dirs = tuple(futures[b].log_dir if b in futures else ANY_DIR for b in known.replicas)
            found[name] = Step(
                partition=name,
                before=known.replicas,
                after=known.replicas,
                size_bytes=observation.size_of(name),
                log_dirs=dirs,
            )
    return found
