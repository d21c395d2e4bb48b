"""Rehearse from event to event, for plans of any size: the executor's own schedule, without its requests.

The steps, their order, the limits, the turn of special topics, the hours and the automatic throttle come from
the executor's modules. Only the looks at the cluster, which find what the model knows anyway, are left out.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from restow.execute.run.give_up import WaitReasons
from restow.execute.run.other_tools import OtherTools
from restow.execute.run.steps import chains_of
from restow.execute.throttle.auto import Signs, decide, first
from restow.execute.throttle.hours import DAY
from restow.plan.flow.forecast import carry_out, leader_of
from restow.plan.flow.movement import Movement
from restow.plan.flow.sharing import sharing
from restow.plan.schedule.admission import Admission
from restow.plan.schedule.schedule import Schedule
from restow.plan.schedule.traffic import Way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from restow.execute.run.options import RunOptions
    from restow.execute.throttle.hours import Rate
    from restow.model import BrokerId, Plan, Snapshot, Step, TopicPartition
    from restow.plan.flow.constants import Constants
    from restow.plan.flow.copies import CopyKey, Itinerary
    from restow.plan.flow.forecast import ForecastRun
    from restow.plan.flow.loads import ClientLoads

_SLOWEST_S = 0.005
"""The latency that an automatic throttle sees: nobody suffers in a rehearsal."""


_LONGEST_S = 366 * 24 * 3600.0
_DECISIONS = 2000
"""An automatic throttle has found its rate after so many decisions."""


_MANY = 1_000
"""From so many moves on, loading compiled code takes less time than it saves."""


class LeaderChange(NamedTuple):
    """A partition whose leader has changed: its clients connect to another broker."""

    at_s: float
    partition: TopicPartition
    before: BrokerId | None
    after: BrokerId | None


class EventRun(NamedTuple):
    """A rehearsed schedule, the movement it caused, and the leaders that changed."""

    movement: Movement
    run: ForecastRun
    leader_changes: list[LeaderChange]


class _ModelClock:
    """The model's time, for the executor's modules that ask for it."""

    def __init__(self, movement: Movement, start_ms: int) -> None:
        self._movement, self._start_ms = movement, start_ms

    def now_ms(self) -> int:
        return self._start_ms + int(self._movement.now_s * 1000)

    def monotonic_s(self) -> float:
        return self._movement.now_s

    def minute(self) -> int:
        """Return the minutes since midnight, local time."""
        now = datetime.fromtimestamp(self.now_ms() / 1000).astimezone()
        return now.hour * 60 + now.minute

    def seconds_to(self, minutes: Iterable[int]) -> float:
        """Return the seconds until the next of these minutes of the day."""
        now = datetime.fromtimestamp(self.now_ms() / 1000).astimezone()
        at = now.hour * 60 + now.minute + now.second / 60
        return min((each - at) % DAY or DAY for each in minutes) * 60

    async def sleep(self, seconds: float) -> NoReturn:
        raise NotImplementedError("here time passes from event to event: nothing sleeps")

    def call_later(self, seconds: float, callback: Callable[[], object]) -> NoReturn:
        raise NotImplementedError("here time passes from event to event: nothing is called later")


def schedule_of(plan: Plan, snapshot: Snapshot) -> Schedule:
    """Return the schedule of a plan from where it is now; its forks can be carried out in several ways."""
    chains = chains_of(plan, snapshot)
    schedule = Schedule(chains.steps, Admission(snapshot, plan.limits))
    for step in chains.in_progress:
        schedule.adopt(step)
    return schedule


def run_events(
    plan: Plan,
    snapshot: Snapshot,
    options: RunOptions,
    constants: Constants,
    loads: ClientLoads,
    *,
    start_ms: int,
    grain_s: float = 0.0,
    schedule: Schedule | None = None,
) -> EventRun:
    """Carry out a plan in the model, from where it is now.

    `schedule` is its `schedule_of`, if the caller has one to use up.
    """
    share = sharing(often=len(plan.moves) >= _MANY)
    movement = _GoingOn(snapshot, constants, loads.starting(start_ms), grain_s=grain_s, share=share)
    schedule = schedule_of(plan, snapshot) if schedule is None else schedule
    leaders = _Leaders(snapshot, elect=options.elect)
    run = run_schedule(
        schedule,
        movement,
        options,
        partial(leader_of, snapshot),
        start_ms=start_ms,
        under_way=schedule.under_way,
        arrived=lambda step: leaders.arrived(step, movement.now_s),
    )
    return EventRun(movement, run, leaders.changes)


def run_schedule(
    schedule: Schedule,
    movement: Movement,
    options: RunOptions,
    sender: Callable[[Step], BrokerId | None],
    *,
    start_ms: int,
    under_way: Iterable[Step] = (),
    arrived: Callable[[Step], object] = lambda _: None,
) -> ForecastRun:
    """Carry out a schedule in the model; `under_way` are steps that it has admitted already.

    `arrived` is called with the last step of each partition, when it ends.
    """
    clock = _ModelClock(movement, start_ms)
    holding = WaitReasons(clock, OtherTools({}), special_last=options.special_last)
    holding.expect(schedule.partitions)
    admission = schedule.admission
    admission.held = lambda step: holding.reason(step, None, busy=not admission.idle)
    _follow_throttle(movement, clock, options)
    may_begin = _hours(movement, clock, options)

    def finished(step: Step) -> None:
        if step.partition not in schedule.partitions:
            holding.settle(step.partition)
            arrived(step)

    run = carry_out(
        schedule,
        movement,
        sender,
        under_way=under_way,
        may_begin=may_begin,
        finished=finished,
        until_s=_LONGEST_S,
    )
    if options.sets_throttles and run.steps:
        run.seconds += movement.constants.throttling_s
    return run


class _GoingOn(Movement):
    """A movement whose copies under way have less to bring: what the snapshot has seen of them is there."""

    def to_copy(self, key: CopyKey, way: Itinerary, /) -> float:
        """Return the bytes that a copy has to bring when it begins."""
        whole = super().to_copy(key, way)
        return max(0.0, whole - self._there(key)) if way.holding.moving else whole

    def _there(self, key: CopyKey) -> int:
        found = self._snapshot.partition(key.partition)
        if found is None or not (key.within or key.broker in found.adding):
            return 0
        return sum(
            each.size_bytes
            for each in found.copies
            if each.broker == key.broker and each.future is key.within
        )


class _Leaders:
    """The leader of each partition after its move."""

    def __init__(self, snapshot: Snapshot, *, elect: bool) -> None:
        self._snapshot, self._elect = snapshot, elect
        self.changes: list[LeaderChange] = []

    def arrived(self, step: Step, at_s: float) -> None:
        found = self._snapshot.partition(step.partition)
        before = None if found is None else found.leader
        if step.after and before != step.after[0] and (self._elect or before not in step.after):
            self.changes.append(LeaderChange(at_s, step.partition, before, step.after[0]))


def _hours(movement: Movement, clock: _ModelClock, options: RunOptions) -> Callable[[], bool]:
    """Return whether moves may begin now; wake the movement when that changes."""
    hours = options.hours
    if hours is None:
        return lambda: True

    def edge() -> None:
        movement.wake()
        movement.at(movement.now_s + clock.seconds_to((hours.begin, hours.end)), edge)

    edge()
    return lambda: hours.contain(clock.minute())


def _follow_throttle(movement: Movement, clock: _ModelClock, options: RunOptions) -> None:
    """Set the throttle now, and again whenever the hour or the automatic pace changes it."""
    hourly = options.hourly

    def set_rate(rate: int | None) -> None:
        own = options.throttle.dir_rate if options.own_dir_rate else rate
        movement.links.throttle_all(rate, own)
        movement.links_changed()

    def follow(rate: Rate | None) -> None:
        if options.auto if rate is None else rate.auto:
            _adapt(movement, options, set_rate)
        else:
            set_rate(options.throttle.rate if rate is None else rate.bytes_per_s)

    if hourly is None:
        follow(None)
        return

    def edge() -> None:
        follow(hourly.at(clock.minute()))
        edges = [each % DAY for hours, _ in hourly.by_hour for each in (hours.begin, hours.end)]
        movement.at(movement.now_s + clock.seconds_to(edges), edge)

    edge()


def _adapt(movement: Movement, options: RunOptions, set_rate: Callable[[int | None], None]) -> None:
    """Let the executor's automatic throttle decide, until it is above what brokers can do."""
    links = movement.links
    incoming = max((links.client_rate(Way.RECEIVED, broker) for broker in links.brokers), default=0.0)
    begins = first(Signs(incoming=incoming, copied=0.0, latency_s=_SLOWEST_S))
    rate = options.throttle.rate or begins.rate
    set_rate(rate)

    def again(number: int = 0) -> None:
        nonlocal rate
        into = [movement.flows.link_rates[links.of(Way.RECEIVED, broker)] for broker in links.brokers]
        signs = Signs(incoming=incoming, copied=max(into, default=0.0), latency_s=_SLOWEST_S)
        rate = decide(rate, signs, _SLOWEST_S).rate
        set_rate(rate)
        if rate < links.most_rate and number < _DECISIONS:
            movement.at(movement.now_s + options.survey_every_s, lambda: again(number + 1))

    movement.at(movement.now_s + options.survey_every_s, again)
