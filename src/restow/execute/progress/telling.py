"""What a run tells of itself: where it stands, and in the end what it has done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.execute.progress.outcome import Summary
from restow.execute.progress.standing import RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from restow.execute.journal.ledger import RunLedger
    from restow.execute.progress.progress import ProgressReport, RunProgress
    from restow.execute.progress.sight import Sight
    from restow.execute.throttle.pace import Pace
    from restow.execute.throttle.throttling import Throttling
    from restow.model import Step, TopicPartition
    from restow.plan.schedule.schedule import Schedule
    from restow.runtime.clock import Clock


class Telling:
    """Of one run, from its begin to its end. `steps_done` is for the run to count."""

    def __init__(
        self,
        run: str,
        clock: Clock,
        progress: RunProgress,
        schedule: Schedule,
        throttling: Throttling,
        pace: Pace,
        listener: Callable[[RunStatus], None],
    ) -> None:
        self._run, self._clock, self._progress, self._schedule = run, clock, progress, schedule
        self._throttling, self._pace, self._listener = throttling, pace, listener
        self._began_s = clock.monotonic_s()
        self._begun = frozenset(step.partition for step in schedule.waiting)
        self._last: ProgressReport | None = None
        self.steps_done = 0

    def report(
        self, sight: Sight, under_way: Collection[Step], paused: str | None, ended: str | None
    ) -> None:
        """Say where things stand, and let the throttle learn from it."""
        wanted = self._throttling.wanted
        self._last = self._progress.report(
            sight,
            under_way,
            throttle=wanted,
            foreign_rates=self._throttling.foreign_rates,
            stretch=self._pace.stretch,
        )
        if ended is None:
            self._pace.learn(self._last)
        self._listener(
            RunStatus(
                run=self._run,
                report=self._last,
                steps_done=self.steps_done,
                steps_left=self._schedule.left,
                under_way=len(under_way),
                throttle=wanted.rate,
                dir_throttle=wanted.dir_rate,
                auto=self._pace.auto,
                by_hour=None if self._pace.hourly is None else str(self._pace.hourly),
                paused=paused,
                waits=self._schedule.why_stuck(),
                ended=ended,
                under_replicated=len(sight.under_replicated),
                offline=len(sight.offline),
                latency_s=sight.latency_s,
            )
        )

    def summary(self, ledger: RunLedger) -> Summary:
        """Say what was done since this run, or its resumption, began."""
        left = self._left(self._begun)
        not_moved = left | ((ledger.dropped.keys() | ledger.found) & self._begun)
        copied = self._progress.copied
        busiest = copied.busiest()
        return Summary(
            run=self._run,
            partitions_moved=len(self._begun) - len(not_moved),
            partitions_left=len(left | ledger.dropped.keys()),
            copied_bytes=copied.copied_bytes,
            left_bytes=0 if self._last is None else self._last.to_do_bytes - self._last.done_bytes,
            seconds=self._clock.monotonic_s() - self._began_s,
            predicted_s=self._progress.predicted_s,
            busiest="" if busiest is None else str(busiest[0]),
            busiest_bytes=0 if busiest is None else busiest[1],
        )

    def _left(self, names: Iterable[TopicPartition]) -> set[TopicPartition]:
        return {name for name in names if self._schedule.rest_of(name)}
