"""Decide how fast a run may go, and whether it may: requests, hours, guards, automatic throttle."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from restow.errors import InvalidInput
from restow.execute.progress.stuck import Cause
from restow.execute.run.control import BadControl
from restow.execute.throttle.auto import Signs, decide, first
from restow.execute.throttle.hours import HourlyThrottle, Rate
from restow.execute.throttle.regulator import ThrottleRegulator
from restow.execute.throttle.throttles import ThrottleRates
from restow.sizes import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.execute.progress.observation import Observation
    from restow.execute.progress.progress import ProgressReport
    from restow.execute.progress.status import Tell
    from restow.execute.run.control import Control, ControlRequest
    from restow.execute.run.options import RunOptions
    from restow.execute.throttle.throttling import Throttling
    from restow.model import BrokerId, Step
    from restow.plan.schedule.admission import Admission
    from restow.runtime.clock import Clock

ASKED_TO_PAUSE = "an operator paused the run; `restow control --go-on` lets it go on"
_IN_SPITE = "`restow control --go-on` goes on in spite of it"

# The end of a step is noticed late by at most this share of its duration.
_LATE = 0.05
# Check again soon while steps are waiting; otherwise only the display needs the next check.
_SOONEST_S, _SOON_S = 0.01, 0.05


class Pace:
    """The pace of one run. `paused` says why nothing may begin, `stop` how to end; both may be None."""

    def __init__(
        self,
        clock: Clock,
        control: Control,
        options: RunOptions,
        throttling: Throttling,
        admission: Admission,
        tell: Tell,
    ) -> None:
        self._clock, self._control, self._options = clock, control, options
        self._throttling, self._admission, self._tell = throttling, admission, tell
        self.auto = options.auto
        self.stop: str | None = None
        self.steered: dict[str, None] = {}
        """What an operator has changed, in that order: throttle, concurrency, paused."""
        self.held = ""
        """Why a guard has paused the run; empty if none has."""
        self._asked_to_pause = False
        self._gone_on: int | None = None
        self._alarm: str | None = None
        self._accepts: Observation | None = None
        """The partitions that are offline or under-replicated here are no alarm, nor are its dead brokers."""
        self._accepts_latency = False
        self._told: str | None = None
        self._baseline: Observation | None = None
        self._last: Observation | None = None
        self._lag_grows = False
        self._regulator = ThrottleRegulator()
        self.hourly: HourlyThrottle | None = options.hourly
        self._of_this_hour: Rate | None = None
        self._changed_s = clock.monotonic_s()

    def something_changed(self) -> None:
        """Note that a step has begun or ended."""
        self._changed_s = self._clock.monotonic_s()

    def until_next_look_s(self, took_s: float, *, some_wait: bool) -> float:
        """Return the pause before the next check: short after a change, longer when nothing happens.

        At most half of the time is spent on requests, because brokers that answer slowly are busy.
        """
        quiet_s = self._clock.monotonic_s() - self._changed_s
        soonest_s = max(_SOONEST_S if some_wait else _SOON_S, took_s)
        return min(max(quiet_s * _LATE, soonest_s), self._options.look_every_s)

    @property
    def paused(self) -> str | None:
        if self._asked_to_pause:
            return ASKED_TO_PAUSE
        hours = self._options.hours
        if hours is not None:
            minute = int(self._minute())
            if not hours.contain(minute):
                now = f"{minute // 60:02}:{minute % 60:02}"
                return f"--hours lets moves begin only within {hours}, and it is {now}"
        return self._complaint

    @property
    def _complaint(self) -> str | None:
        """Return what a guard complains of, and what to do about it."""
        return None if self._alarm is None else f"{self._alarm}; {_IN_SPITE}"

    def obey(self) -> None:
        """Read the control file if it has changed."""
        try:
            request = self._control.news()
            if request is not None:
                self.ask(request)
        except (BadControl, InvalidInput) as error:
            self._tell("control not understood", why=str(error))
        self._follow_the_hour()
        if self.paused != self._told:
            self._told = self.paused
            if self._alarm is not None and self._told == self._complaint:
                self.held = self._alarm
            self._tell("paused" if self._told else "goes on", **({"why": self._told} if self._told else {}))

    def ask(self, request: ControlRequest) -> None:
        """Apply a request from the control file."""
        if request.paused is not None:
            if request.paused:
                self.steered["paused"] = None
            self._asked_to_pause = request.paused
        if request.gone_on != self._gone_on:
            self._gone_on = request.gone_on
            self._put_up_with_it()
        if request.stop is not None:
            self.stop = request.stop
        limits = self._admission.limits
        wanted = replace(
            limits,
            moves_in=request.moves_in or limits.moves_in,
            moves_out=request.moves_out or limits.moves_out,
        )
        if wanted != limits:
            self._admission.limits = wanted
            self.steered["concurrency"] = None
            self._tell("concurrency", moves_in=wanted.moves_in, moves_out=wanted.moves_out)
        if request.throttle is not None:
            self._request_throttle(HourlyThrottle.parse(request.throttle))

    def _request_throttle(self, requested: HourlyThrottle) -> None:
        """Apply a throttle, and report it if it is new: earlier requests come again with every new one."""
        if requested.by_hour:
            changed, self.hourly = requested != self.hourly, requested
        else:
            rate = requested.usual
            same = (
                rate.auto if self.auto else not rate.auto and rate.bytes_per_s == self._throttling.wanted.rate
            )
            changed, self.hourly = self.hourly is not None or not same, None
            self._set(rate)
        if changed:
            self._of_this_hour = None
            self.steered["throttle"] = None
            self._tell("throttle requested", throttle=str(requested))

    def _follow_the_hour(self) -> None:
        """Set the rate for this hour when a new part of the day has begun."""
        if self.hourly is None:
            return
        minute = int(self._minute())
        rate = self.hourly.at(minute)
        if rate != self._of_this_hour:
            self._of_this_hour = rate
            self._set(rate)
            self._tell("throttle by hour", throttle=rate.text, why=self.hourly.why(minute))

    def _set(self, rate: Rate) -> None:
        self.auto = rate.auto
        if not rate.auto:
            self._want(rate.bytes_per_s)

    def _want(self, rate: int | None) -> None:
        """Set the rate; copies between log dirs follow, unless they have a rate of their own."""
        dir_rate = self._throttling.wanted.dir_rate if self._options.own_dir_rate else rate
        self._throttling.wanted = ThrottleRates(rate=rate, dir_rate=dir_rate)

    def _minute(self) -> float:
        """Return the minutes since midnight, local time."""
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000).astimezone()
        return now.hour * 60 + now.minute + now.second / 60

    @property
    def throttled(self) -> bool:
        """Return whether copies between brokers are throttled."""
        return self.auto or self._throttling.wanted.rate is not None

    @property
    def in_force(self) -> RunOptions:
        """Return the run's options with the throttle as it is now."""
        wanted = self._throttling.wanted
        return replace(self._options, throttle=wanted, auto=self.auto, hourly=self.hourly)

    @property
    def behind_s(self) -> float:
        """Return how far the run is behind its throttle; negative if it is ahead."""
        return self._regulator.behind_s

    def start(self, observation: Observation) -> None:
        """Take the first of the two observations that an automatic throttle starts from."""
        self._last = observation

    def see(self, observation: Observation, steps: Sequence[Step]) -> None:
        """Check the guards against an observation, and adjust an automatic throttle."""
        if self._baseline is None:
            self._baseline = self._accepts = observation
        if self.auto and self._last is not None:
            self._choose_rate(self._last, observation, steps)
        self._last = observation
        self._alarm = self._judge(observation)

    def learn(self, report: ProgressReport) -> None:
        """Note whether the throttle holds back a replica for good, and correct the rate."""
        self._lag_grows = any(each.cause is Cause.THROTTLE for each in report.still)
        rate = None if self.auto else self._throttling.wanted.rate
        if self._last is None or not self._regulator.see(self._last.at_s, rate, report.copying):
            return
        self._throttling.factor = self._regulator.factor
        if rate is not None:
            behind_s = self._regulator.behind_s
            off = f"{behind_s:.1f} s behind" if behind_s >= 0 else f"{-behind_s:.1f} s ahead of"
            why = f"{off} what {rate:,} B/s would have copied"
            self._tell("throttle corrected", rate=round(rate * self._regulator.factor), why=why)

    def _choose_rate(self, before: Observation, now: Observation, steps: Sequence[Step]) -> None:
        signs = signs_of(before, now, steps, lag_grows=self._lag_grows)
        rate = self._throttling.wanted.rate
        usual = before.latency_s if self._baseline is None else self._baseline.latency_s
        decision = first(signs) if rate is None else decide(rate, signs, usual)
        if decision.rate != rate:
            self._want(decision.rate)
            self._tell("throttle decided", rate=decision.rate, why=decision.reason)

    def _put_up_with_it(self) -> None:
        """Let guards accept what they complain of now: an operator has seen it, and goes on."""
        if self._alarm is None or self._last is None:
            return
        self._accepts, self._accepts_latency = self._last, True
        self._alarm = self._judge(self._last)

    def _judge(self, now: Observation) -> str | None:
        guards = self._options.guards
        accepted = self._accepts or now
        if guards.offline is not None:
            offline = now.offline - accepted.offline
            if len(offline) > guards.offline:
                return (
                    f"{count(len(offline), 'partition')} went offline during the run, such as {min(offline)}"
                )
        if guards.under_replicated is not None:
            lacking = now.lacking_more_than(accepted)
            if len(lacking) > guards.under_replicated:
                few = count(len(lacking), "partition")
                return f"{few} became under-replicated during the run, such as {min(lacking)}"
        slow = guards.latency_s is not None and now.latency_s > guards.latency_s
        self._accepts_latency = self._accepts_latency and slow
        if guards.latency_s is not None and slow and not self._accepts_latency:
            took = f"{now.latency_s * 1000:.0f} ms"
            return f"a broker took {took} to answer, and the run allows {guards.latency_s * 1000:.0f} ms"
        return None


def signs_of(before: Observation, now: Observation, steps: Sequence[Step], *, lag_grows: bool) -> Signs:
    """Return the load, and the signs of harm, between two observations."""
    took_s = max(now.at_s - before.at_s, 1e-6)
    written: Counter[BrokerId] = Counter()
    for name, partition in now.partitions.items():
        if partition.leader is not None:
            written[partition.leader] += max(0, now.size_of(name) - before.size_of(name))
    copied: Counter[BrokerId] = Counter()
    for step in steps:
        for broker in step.adding:
            new = now.copies.get(step.partition, {}).get(broker)
            old = before.copies.get(step.partition, {}).get(broker)
            if new is not None:
                copied[broker] += max(0, new.size_bytes - (0 if old is None else old.size_bytes))
    return Signs(
        incoming=max(written.values(), default=0) / took_s,
        copied=max(copied.values(), default=0) / took_s,
        latency_s=now.latency_s,
        shrunk=len(now.under_replicated - before.under_replicated),
        lag_grows=lag_grows,
    )
