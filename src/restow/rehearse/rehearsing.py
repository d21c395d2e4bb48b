"""Rehearse a plan: how long it takes and what it costs, before anything is touched."""

from __future__ import annotations

import os
from copy import copy
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from restow.errors import InvalidInput
from restow.execute.journal.runs import state_folder
from restow.execute.predict.by_events import run_events, schedule_of
from restow.execute.predict.learn import calibrate
from restow.execute.predict.moments import moment_ms, seconds_until
from restow.execute.predict.predicting import (
    curve_of,
    guessed_constants,
    least_s,
    scaled_range,
    with_burst,
)
from restow.execute.predict.prediction import TimeRange
from restow.execute.progress.outcome import Ending
from restow.execute.run.options import run_options
from restow.plan.drift import REBASE, check_same_cluster, differences
from restow.plan.explain.view import traffic_of
from restow.plan.files.text import digest_of
from restow.plan.flow.constants import Calibration
from restow.plan.flow.loads import client_loads
from restow.plan.judge.waves import check_sound
from restow.rehearse.answer import CannotRehearse, FaultRehearsal, Rehearsal
from restow.rehearse.by_executor import run_executor
from restow.rehearse.faults import parse_faults
from restow.rehearse.impact import client_impact
from restow.rehearse.noticing import read_from_disk, topics_told
from restow.rehearse.starts import AskedStart, best_starts
from restow.rehearse.telling import (
    RehearsedRun,
    brokers_told,
    cost_notes,
    isr_margin,
    limiting_told,
    log_dirs_told,
    problems_told,
)
from restow.runtime.clock import SystemClock
from restow.runtime.loop import rare_garbage_collection
from restow.sizes import parse_size, some

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Unpack

    from restow.execute.predict.by_events import EventRun
    from restow.execute.run.options import RunFlags, RunOptions
    from restow.model import Plan, Snapshot
    from restow.model.load import LoadModel
    from restow.plan.flow.constants import Constants
    from restow.plan.flow.loads import ClientLoads
    from restow.plan.schedule.schedule import Schedule
    from restow.rehearse.answer import StartOption
    from restow.rehearse.by_executor import ExecutedRun
    from restow.rehearse.faults import BrokerFault

_MOST_MOVES, _MOST_PARTITIONS = 300, 5_000
"""Up to here the executor itself is run; it looks at all partitions again and again."""
_EXACT_MOVES, _FEWEST_GRAINS, _MOST_GRAINS = 3_000, 600, 6_000
"""Larger plans are rehearsed in grains of time: what ends within one of them is dealt with together."""
_LEAST_RATE, _SEARCHES = 1_000, 24
_TRIES, _SAFELY = 5, 0.002


@rare_garbage_collection()
def rehearse(
    plan: Plan,
    snapshot: Snapshot,
    load: LoadModel | None = None,
    *,
    throttle: str | None = None,
    start: str | None = None,
    deadline: str | None = None,
    what_if: Sequence[str] = (),
    exact: bool = False,
    page_cache: str | None = None,
    journal: str | PathLike[str] | None = None,
    calibration: Calibration | None = None,
    **flags: Unpack[RunFlags],
) -> Rehearsal:
    """Say what a plan will do: how long it takes, what limits it, what brokers, disks and clients notice.

        told = restow.rehearse(plan, snapshot, throttle="50MB/s", start="22:00")
        print(told.seconds.p50, told.problems)

    `throttle` is as for `execute`; without it, a `deadline` ("06:00", "4h") finds the lowest one that is done
    in time. With the `start` "auto" it is the hour of the next week in which copying costs clients least.
    `what_if` are faults like "broker 3 dies at 30%". With `exact`, a small plan is carried out message by
    message on a simulated cluster, without a load. `page_cache` is what a broker's memory holds of its logs,
    like "16GB". Constants are learned from the journals of earlier runs in `journal`, or given as a
    `calibration`. The other arguments are those of `execute`.
    """
    check_fits(plan, snapshot)
    now_ms = SystemClock().now_ms()
    faults = parse_faults(what_if, snapshot)
    if exact and (load is not None or faults or throttle is None):
        raise InvalidInput("--exact needs a --throttle, and shows neither loads nor faults")
    loads = client_loads(load, snapshot, plan)
    known = calibration or calibrate(str(journal or state_folder(os.environ)), snapshot.cluster_id, load)
    if page_cache is not None:
        known = known.with_page_cache(parse_size(page_cache, "--page-cache"))
    if throttle is None and deadline is None:
        raise InvalidInput("say a throttle (50MB/s, auto or none), or a deadline to find one for")

    def stage_at(start_ms: int) -> RehearsalStage:
        return RehearsalStage(plan, snapshot, loads, known, start_ms)

    def has_s(start_ms: int) -> float | None:
        return None if deadline is None else seconds_until(deadline, start_ms)

    starts: list[StartOption] = []
    if start == "auto":
        starts = best_starts(stage_at, now_ms, AskedStart(throttle, has_s, flags))
        start_ms = starts[0].start_ms
    else:
        start_ms = now_ms if start is None else moment_ms(start, now_ms, "--start")
    stage, deadline_s = stage_at(start_ms), has_s(start_ms)
    if deadline_s is not None and deadline_s <= 0:
        raise InvalidInput(f"--deadline: {deadline!r} is before the start")
    if throttle is not None:
        told = stage.rehearse(throttle, flags, deadline_s, faults, exact=exact)
    else:
        told = stage.rehearse_in_time(deadline_s or 0.0, flags, faults)
    return replace(told, starts=tuple(starts))


def check_fits(plan: Plan, snapshot: Snapshot) -> None:
    """Refuse a broken plan, one of another cluster, and one that the cluster has drifted from."""
    check_sound(plan)
    check_same_cluster(plan, snapshot)
    if drifted := differences(plan, snapshot):
        raise CannotRehearse(
            f"the cluster is not what the plan was made for: {some(drifted)}. To go on, {REBASE}"
        )


class RehearsalStage:
    """One plan on one cluster, to be rehearsed in several ways."""

    def __init__(
        self, plan: Plan, snapshot: Snapshot, loads: ClientLoads, known: Calibration, start_ms: int
    ) -> None:
        self._plan, self.snapshot, self.loads = plan, snapshot, loads
        self.known, self._start_ms = known, start_ms
        self._traffic = traffic_of(plan)
        self._schedule: Schedule | None = None

    def starting(self, start_ms: int, constants: Constants) -> RehearsalStage:
        """Return the same plan at another start, with these constants; both share what stays the same."""
        if self._schedule is None:
            self._schedule = schedule_of(self._plan, self.snapshot)
        other = copy(self)
        other.known = Calibration(slow=constants, usual=constants, fast=constants)
        other._start_ms = start_ms  # noqa: SLF001
        return other

    def rehearse_in_time(
        self, deadline_s: float, flags: RunFlags, faults: Sequence[BrokerFault]
    ) -> Rehearsal:
        """Rehearse with the lowest throttle that is done in time.

        The executor takes a little longer than the model that finds the throttle: it gets that much less.
        """
        aim_s = deadline_s
        for _ in range(_TRIES):
            told = self.rehearse(self.lowest_throttle(aim_s, flags), flags, deadline_s, faults)
            if not deadline_s < told.seconds.p90 < inf:
                break
            aim_s *= deadline_s / told.seconds.p90 - _SAFELY
        return told

    def rehearse(
        self,
        throttle: str,
        flags: RunFlags,
        deadline_s: float | None,
        faults: Sequence[BrokerFault],
        *,
        exact: bool = False,
    ) -> Rehearsal:
        """Rehearse with one throttle: the range from the model, the rest from the executor if it is quick."""
        options = run_options(throttle=throttle, **flags)
        by_model = self.events(options, self.known.usual)
        usual = by_model.run.seconds
        slow, fast = self._range(options, usual)
        fast = with_burst(fast, self._plan, self._traffic, options, self.known, self._start_ms)
        executed = None
        if self._is_small and usual < inf and self._plan.moves:
            executed = self._executed(options, usual)
        told = RehearsedRun.of(by_model, executed)
        if exact:
            told = self._by_messages(options, told)
        middle = told.seconds
        ratio = 1.0 if usual in (0.0, inf) else middle / usual
        seconds = TimeRange(p10=min(fast * ratio, middle), p50=middle, p90=max(slow * ratio, middle))
        plan, snapshot, movement = self._plan, self.snapshot, told.movement
        log_dirs = log_dirs_told(snapshot, movement, plan.limits.fill)
        return Rehearsal(
            title=plan.title,
            cluster_id=plan.cluster_id,
            digest=digest_of(plan),
            start_ms=self._start_ms,
            throttle=throttle,
            moves=len(plan.moves),
            bytes_to_copy=plan.bytes_to_copy,
            seconds=seconds,
            by="messages" if exact else "events" if executed is None else "executor",
            limiting=limiting_told(movement, middle),
            brokers=brokers_told(movement, known=self.loads.known),
            log_dirs=log_dirs,
            isr_margin=isr_margin(plan, snapshot),
            read_from_disk_bytes=read_from_disk(
                plan, snapshot, self.loads, self.known.usual.page_cache_bytes
            ),
            under_replicated=told.under_replicated,
            leader_changes=told.leader_changes,
            topics=topics_told(told.leader_changes, self.loads),
            steps=tuple(told.steps),
            known=self.known.sources,
            guessed=guessed_constants(self.known),
            problems=tuple(problems_told(told, snapshot, plan.limits.fill, seconds, deadline_s)),
            notes=tuple(cost_notes(plan, snapshot, self.known, self.loads)),
            deadline_s=deadline_s,
            pauses=told.pauses,
            what_if=(self._with_faults(options, faults, told),) if faults else (),
            impact=client_impact(movement, snapshot) if self.loads.known else None,
        )

    def lowest_throttle(self, deadline_s: float, flags: RunFlags) -> str:
        """Return the lowest rate with which nine runs in ten are done in time; refuse if there is none."""
        slow = self.known.slow

        def takes(text: str) -> float:
            return self.events(run_options(throttle=text, **flags), slow).run.seconds

        least_s = takes("none")
        if least_s > deadline_s:
            raise CannotRehearse(
                f"no throttle is done in {deadline_s:,.0f} s: the earliest deadline that 9 runs of 10 meet "
                f"is {least_s:,.0f} s after the start, without any throttle. Give it more time, or move less"
            )
        low, high = _LEAST_RATE, int(slow.broker_rate)
        for _ in range(_SEARCHES):
            middle = int((low * high) ** 0.5)
            if takes(f"{middle}B/s") <= deadline_s:
                high = middle
            else:
                low = middle
            if high <= low * 1.005:
                break
        return _readable(high)

    def _range(self, options: RunOptions, usual_s: float) -> tuple[float, float]:
        """Return the time with slow and with fast constants; of a large plan, by its busiest broker."""
        if len(self._plan.moves) <= _EXACT_MOVES:
            both = (self.known.slow, self.known.fast)
            slow, fast = (self.events(options, each).run.seconds for each in both)
            return slow, fast
        fast, slow = scaled_range(self._traffic, options, self.known, usual_s)
        return slow, fast

    def events(
        self,
        options: RunOptions,
        constants: Constants,
        *,
        exact_moves: int = _EXACT_MOVES,
        fewest_grains: int = _FEWEST_GRAINS,
    ) -> EventRun:
        """Rehearse from event to event; in grains above `exact_moves`."""
        grain_s = 0.0
        if len(self._plan.moves) > exact_moves:
            grain_s = least_s(self._traffic, options, constants) / self._grains(fewest_grains)
        return run_events(
            self._plan,
            self.snapshot,
            options,
            constants,
            self.loads,
            start_ms=self._start_ms,
            grain_s=grain_s,
            schedule=None if self._schedule is None else self._schedule.fork(),
        )

    def _grains(self, fewest: int) -> float:
        """Return how many grains the time is divided into: about twenty for each step, within reason."""
        limits, moves = self._plan.limits, self._plan.moves
        receivers = {broker for move in moves for broker in move.adding}
        senders = {move.before[0] for move in moves if move.before}
        at_once = max(1, min(len(receivers) * limits.moves_in, len(senders) * limits.moves_out))
        return min(max(20 * len(moves) / at_once, fewest), _MOST_GRAINS)

    @property
    def _is_small(self) -> bool:
        return len(self._plan.moves) <= _MOST_MOVES and len(self.snapshot.partitions) <= _MOST_PARTITIONS

    def _executed(
        self, options: RunOptions, expected_s: float, faults: Sequence[BrokerFault] = ()
    ) -> ExecutedRun:
        return run_executor(
            self._plan,
            self.snapshot,
            options,
            self.known.usual,
            self.loads,
            start_ms=self._start_ms,
            expected_s=expected_s,
            faults=faults,
        )

    def executed_with(
        self, options: RunOptions, faults: Sequence[BrokerFault], told: RehearsedRun
    ) -> ExecutedRun:
        """Run the executor with faults, at the moments that this run without them has."""
        self.check_faults()
        return self._executed(options, told.seconds, [each.timed(told.moment_of) for each in faults])

    def check_faults(self) -> None:
        """Refuse faults in a plan that is too large to run the executor on."""
        if not self._is_small:
            raise InvalidInput(
                f"--what-if needs a plan of up to {_MOST_MOVES} moves on up to {_MOST_PARTITIONS:,} "
                f"partitions, because the executor itself is run; this one has {len(self._plan.moves):,} "
                f"moves on {len(self.snapshot.partitions):,} partitions"
            )

    def _by_messages(self, options: RunOptions, told: RehearsedRun) -> RehearsedRun:
        """Take the steps and their times from a run on the simulated cluster; rates and disks stay."""
        from restow.rehearse.by_messages import run_messages  # it needs the brokers, which take a while

        run = run_messages(self._plan, self.snapshot, options, told.seconds)
        if run.outcome.ending is not Ending.DONE:
            why = run.outcome.reason or run.outcome.ending.value
            return replace(told, seconds=inf, steps=run.steps, stuck=f"at message level: {why}")
        return replace(told, seconds=run.seconds, steps=run.steps)

    def _with_faults(
        self, options: RunOptions, faults: Sequence[BrokerFault], told: RehearsedRun
    ) -> FaultRehearsal:
        """Run the executor again, with faults at the moments that the run without them has."""
        run = self.executed_with(options, faults, told)
        ending = "it would wait forever" if run.outcome is None else run.outcome.ending.value
        reason = "" if run.outcome is None or not run.outcome.reason else f": {run.outcome.reason}"
        return FaultRehearsal(
            faults="; ".join(map(str, faults)),
            seconds=inf if run.outcome is None else run.seconds,
            ending=ending + reason,
            pauses=tuple(why for _, why in run.pauses),
            unfinished=sum(each.ended_s == inf for each in run.steps),
            under_replicated=run.most_under_replicated,
            isr_margin=run.cluster.least_margin,
            leaders_moved=len(run.cluster.leader_changes),
            progress=curve_of(run.movement),
        )


def _readable(rate: int) -> str:
    """Return a rate with three digits, rounded up, like `1840kB/s`."""
    digits = 10 ** max(0, len(str(rate)) - 3)
    rounded = -(-rate // digits) * digits
    return f"{rounded // 1000}kB/s" if rounded >= 10_000 else f"{rounded}B/s"
