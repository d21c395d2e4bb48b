"""Predict when the rest of a run is done: its schedule as it is now, in the flow model.

What is left of every copy, waiting or under way, comes from the last observation. The throttle in force and
those of later hours limit brokers, and what the run has measured replaces the constants of the model.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from restow.execute.predict.by_events import run_schedule
from restow.model import LiveBroker, Snapshot
from restow.plan.flow.copies import CopyKey
from restow.plan.flow.loads import ClientLoads, PartitionLoad
from restow.plan.flow.movement import Movement
from restow.plan.schedule.traffic import Way

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.execute.progress.observation import Observation
    from restow.execute.progress.progress import Copying
    from restow.execute.progress.speeds import Speeds
    from restow.execute.run.options import RunOptions
    from restow.execute.throttle.throttles import ThrottleRates
    from restow.model import BrokerId, Step, TopicPartition
    from restow.plan.flow.constants import Calibration, Constants
    from restow.plan.flow.copies import Itinerary, Start
    from restow.plan.schedule.schedule import Schedule
    from restow.plan.schedule.traffic import Channel, Traffic

_EVERY_S, _STEPS_PER_S = 2.0, 1000.0
"""The rest is predicted again this often, or a second for every thousand steps left, if that is longer. In
between, the last prediction counts down."""
_ENDS, _ENDS_S = 7, 15.0
"""The reported end is the mean of the last predictions, at most so many, and none older than this. Copies
arrive in bursts, so a single prediction depends on whether it was made before or after one."""
_EXACT_STEPS, _GRAINS = 1000, 300
"""With more steps, copies that end within the same short interval are handled together."""
_GROWTH_S = 10.0
_HELD, _HELD_WITHIN = 0.85, 0.7
"""Whoever gets less than this share of a throttle is held back by something else. Between log dirs, throttles
are not corrected, and let through less."""
_SLOW = 0.6
"""A broker that receives less than this share of what the model says is slow by itself."""
_CORRECTS = 0.25
"""The most by which a run's own correction may make it faster or slower than its throttle."""


class RestOfRun(NamedTuple):
    """What is left at one moment, and what was measured so far."""

    observation: Observation
    under_way: Iterable[Step]
    copying: tuple[Copying, ...]
    waiting: tuple[Copying, ...]
    left: Traffic
    speeds: Speeds


class TimeLeft:
    """The time left of one run, computed anew every few seconds."""

    def __init__(self, known: Calibration) -> None:
        self._known = known
        self._first: dict[TopicPartition, tuple[float, int]] = {}
        """When each partition was seen first, and its size then."""
        self._throttle: ThrottleRates | None = None
        self._alive: frozenset[BrokerId] | None = None
        self._at_s = -inf
        self._ends: deque[tuple[float, float]] = deque(maxlen=_ENDS)
        """When the end was computed, and the end; none if it would never come."""
        self._learned: tuple[set[Way], bool] = set(), False
        """Which rates were measured when the end was computed last, and whether partitions were growing."""
        self.measured: dict[str, float] = {}
        """What the run has measured between log dirs: the highest `dir_rate`, the last `dir_share`. Journals
        show the rates between brokers by themselves."""

    def seconds(
        self,
        rest: RestOfRun,
        schedule: Schedule,
        options: RunOptions,
        *,
        now_ms: int,
        now_s: float | None = None,
        behind_s: float = 0.0,
    ) -> float | None:
        """Return the seconds left, or None if no rate is known or it would never end.

        They count from `now_s`, or from the observation. `options` has the throttle in force. `behind_s` is
        how far the run is behind it, or ahead if negative: a run with a fixed throttle makes up for that.
        """
        at_s = rest.observation.at_s
        changed = self._has_changed(rest, options)
        if changed or at_s - self._at_s >= max(_EVERY_S, schedule.left / _STEPS_PER_S):
            self._at_s = at_s
            before = self._learned
            left_s = self._compute(rest, schedule, options, now_ms, behind_s)
            if changed or left_s == inf or self._learned != before:
                self._ends.clear()
            if left_s < inf:
                self._ends.append((at_s, at_s + left_s))
        if not self._ends:
            return None
        latest_s = self._ends[-1][0]
        end_s = fmean(end_s for told_s, end_s in self._ends if latest_s - told_s <= _ENDS_S)
        return max(0.0, end_s - (at_s if now_s is None else now_s))

    def _has_changed(self, rest: RestOfRun, options: RunOptions) -> bool:
        """Return whether rates measured until now say little: another throttle, or other brokers."""
        alive = rest.observation.alive
        throttled = not options.auto and options.throttle != self._throttle
        changed = throttled or alive != self._alive
        if changed and self._alive is not None:
            rest.speeds.forget()
        self._throttle, self._alive = options.throttle, alive
        return changed

    def _compute(
        self, rest: RestOfRun, schedule: Schedule, options: RunOptions, now_ms: int, behind_s: float
    ) -> float:
        """Carry out the rest in the model."""
        if not schedule.left:
            return 0.0
        steady = rest.speeds.steady()
        constants = self._constants(rest.speeds, steady, options)
        throttle = options.throttle.by_way()
        rates = _capacities(constants, throttle)
        guessed = {Way.RECEIVED, Way.SENT, Way.WITHIN} - throttle.keys()
        guessed -= self._measured(rest.speeds, steady)
        if rest.left.seconds_at({way: rate for way, rate in rates.items() if way not in guessed}) is None:
            return inf
        grain_s = 0.0
        if schedule.left > _EXACT_STEPS:
            grain_s = (rest.left.seconds_at(rates) or 0.0) / _GRAINS
        brokers = {broker for step in schedule.steps for broker in (*step.before, *step.after)}
        growth = self._growth(rest)
        self._learned = {way for way, _ in steady}, bool(growth)
        movement = _RestMovement(rest, brokers, constants, growth, steady, grain_s)
        senders = {each.partition: each.leader for each in rest.waiting + rest.copying if not each.log_dir}
        forked = schedule.fork()
        run = run_schedule(
            forked,
            movement,
            options,
            lambda step: senders.get(step.partition, step.before[0] if step.before else None),
            start_ms=now_ms,
            under_way=[step for step in rest.under_way if forked.admission.has_admitted(step)],
        )
        if run.seconds == inf or options.auto or rates[Way.RECEIVED] == constants.broker_rate:
            return run.seconds
        return min(max(run.seconds - behind_s, run.seconds / (1 + _CORRECTS)), run.seconds / (1 - _CORRECTS))

    def _measured(self, speeds: Speeds, steady: Mapping[Channel, float]) -> set[Way]:
        """Return the ways whose rates are measured, in this run or in earlier ones."""
        found = {channel.way for channel, rate in (steady or speeds.overall()).items() if rate > 0}
        if "broker_rate" in self._known.sources or found & {Way.RECEIVED, Way.SENT}:
            found |= {Way.RECEIVED, Way.SENT}
        return found | ({Way.WITHIN} if "dir_rate" in self._known.sources else set())

    def _constants(self, speeds: Speeds, steady: Mapping[Channel, float], options: RunOptions) -> Constants:
        """Return the model's constants, with what this run has measured instead of guesses."""
        constants, throttle = self._known.usual, options.throttle
        constants = replace(constants, throttling_s=constants.throttling_s / 2)  # only to remove throttles
        rates = steady or speeds.overall()
        network = max((rate for (way, _), rate in rates.items() if way is not Way.WITHIN), default=0.0)
        within = max((rate for (way, _), rate in rates.items() if way is Way.WITHIN), default=0.0)
        if network > 0:
            share = network / throttle.rate if throttle.rate else 0.0
            total = sum(rate for (way, _), rate in rates.items() if way is Way.RECEIVED)
            if share < _HELD:
                together = total >= _HELD * constants.total_rate  # each could do more, but for the others
                name, value = ("total_rate", total) if together else ("broker_rate", network)
                constants = replace(constants, **{name: value})  # type: ignore[arg-type]
            elif options.auto:
                constants = replace(constants, throttle_share=min(share, 1.0))
        if within > 0:
            share = within / throttle.dir_rate if throttle.dir_rate else 0.0
            name, value = ("dir_rate", within) if share < _HELD_WITHIN else ("dir_share", min(share, 1.0))
            constants = replace(constants, **{name: value})  # type: ignore[arg-type]
            if steady:
                highest = max(value, self.measured.get(name, 0.0)) if name == "dir_rate" else value
                self.measured[name] = round(highest, 3)
        if not steady and rates:
            constants = replace(constants, begin_s=0.0, settle_s=0.0)  # the rates have them in them
        elif (step_s := speeds.step_s(network or within)) is not None:
            constants = replace(constants, begin_s=step_s / 2, settle_s=step_s / 2)
        return constants

    def _growth(self, rest: RestOfRun) -> dict[TopicPartition, float]:
        """Return how fast producers let partitions grow, as seen so far."""
        at_s, found = rest.observation.at_s, {}
        for each in rest.copying + rest.waiting:
            since_s, size = self._first.setdefault(each.partition, (at_s, each.size_bytes))
            if at_s - since_s >= _GROWTH_S and each.size_bytes > size:
                found[each.partition] = (each.size_bytes - size) / (at_s - since_s)
        return found


class _RestMovement(Movement):
    """A movement whose copies have what is left of them now."""

    def __init__(
        self,
        rest: RestOfRun,
        brokers: Iterable[BrokerId],
        constants: Constants,
        growth: Mapping[TopicPartition, float],
        steady: Mapping[Channel, float],
        grain_s: float,
    ) -> None:
        loads = ClientLoads(by_partition={name: PartitionLoad(rate) for name, rate in growth.items()})
        super().__init__(brokers_of(rest.observation, brokers), constants, loads, grain_s=grain_s)
        self._steady = steady
        self._left = {
            CopyKey(each.partition, each.broker, each.log_dir is not None): each.behind_bytes
            for each in rest.copying + rest.waiting
        }

    def begin(self, starts: Iterable[Start], *, at_once: bool = False) -> None:
        """Begin steps. Once those under way go on, brokers that are slow by themselves are seen."""
        super().begin(starts, at_once=at_once)
        if at_once:
            self.at(self.now_s, self._slow_down)

    def _slow_down(self) -> None:
        """Hold brokers that receive much less than the model says to what was measured."""
        links, expected = self.links, self.flows.rates_now()
        for (way, broker), rate in self._steady.items():
            if way is not Way.SENT and 0 < rate < _SLOW * expected[links.of(way, broker)]:
                links.slow(way, broker, rate)
        self.links_changed()

    def to_copy(self, key: CopyKey, _: Itinerary, /) -> float:
        """Return what is left of a copy, and what producers will have added when it begins."""
        return self._left.get(key, 0) + self.loads.of(key.partition).leader_in * self.now_s


def brokers_of(observation: Observation, others: Iterable[BrokerId] = ()) -> Snapshot:
    """Return the brokers and log dirs alone: sizes and leaders are those of the copies."""
    dirs, ids = observation.dirs, sorted({*others, *observation.alive, *observation.dirs})
    live = tuple(LiveBroker(id=each, host="", port=0, log_dirs=dirs.get(each, ())) for each in ids)
    return Snapshot(cluster_id="", taken_ms=0, controller=None, brokers=live, topics=())


def _capacities(constants: Constants, throttle: Mapping[Way, float]) -> dict[Way, float]:
    """Return what one broker can do each way."""
    network, within = constants.broker_rate, constants.dir_rate
    free = {Way.RECEIVED: network, Way.SENT: network, Way.WITHIN: within}
    return {way: min(rate, throttle.get(way, inf) * constants.throttle_share) for way, rate in free.items()}
