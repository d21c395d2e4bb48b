"""Predict a run before it begins: its time as a range, the bytes over time, and what speaks against it.

up to 1,000 moves    the schedule in the flow model, with slow, usual and fast constants
up to 5,000 moves    the same with usual constants; the range in proportion to the busiest broker's
more                 what the busiest broker takes at least: a run must not wait for its prediction
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from restow.execute.predict.by_events import run_events
from restow.execute.predict.prediction import BY_BUSIEST, BY_SCHEDULE, Objection, Prediction, TimeRange
from restow.execute.throttle.regulator import MOST_CORRECTION
from restow.plan.explain.view import traffic_of
from restow.plan.flow.constants import FETCH_BYTES, RESPONSE_BYTES
from restow.plan.schedule.traffic import Way
from restow.sizes import count, human_bytes, some

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from restow.execute.predict.by_events import EventRun
    from restow.execute.run.options import RunOptions
    from restow.model import Plan, Snapshot, TopicPartition
    from restow.plan.flow.constants import Calibration, Constants
    from restow.plan.flow.loads import ClientLoads
    from restow.plan.flow.movement import Movement
    from restow.plan.schedule.traffic import Traffic

_RANGE_MOVES, _MOST_MOVES = 1_000, 5_000
_POINTS = 120

Curve: TypeAlias = "tuple[tuple[float, float], ...]"


class Predicted(NamedTuple):
    """A prediction, and what speaks against the run by it."""

    prediction: Prediction
    objections: tuple[Objection, ...]


def predict(
    plan: Plan,
    snapshot: Snapshot,
    options: RunOptions,
    known: Calibration,
    loads: ClientLoads,
    *,
    start_ms: int,
    deadline_s: float | None = None,
    rest: Plan | None = None,
) -> Predicted:
    """Predict a run, in about a second for a plan of any size.

    `rest` is what is left of a plan that was begun.
    """
    left = plan if rest is None else rest
    traffic = traffic_of(left)
    endless: Sequence[TopicPartition]
    stuck: str | None = None
    full: tuple[str, ...] = ()
    if len(left.moves) > _MOST_MOVES:
        by = BY_BUSIEST
        fast, usual, slow = (
            least_s(traffic, options, each) for each in (known.fast, known.usual, known.slow)
        )
        curve: Curve = ((0.0, 0.0), (usual, float(traffic.copied_bytes)))
        endless = _outrun(left, loads, (options.throttle.rate or inf) * known.usual.throttle_share)
    else:
        by = BY_SCHEDULE

        def run(constants: Constants) -> EventRun:
            return run_events(plan, snapshot, options, constants, loads, start_ms=start_ms)

        events = run(known.usual)
        usual = events.run.seconds
        if len(left.moves) <= _RANGE_MOVES:
            fast, slow = run(known.fast).run.seconds, run(known.slow).run.seconds
        else:
            fast, slow = scaled_range(traffic, options, known, usual)
        curve, endless, stuck = curve_of(events.movement), events.run.endless, events.run.stuck
        full = tuple(overfull(snapshot, events.movement, plan.limits.fill))
    fast = with_burst(fast, left, traffic, options, known, start_ms)
    seconds = TimeRange(p10=min(fast, usual), p50=usual, p90=max(slow, usual))
    if endless:
        seconds = TimeRange(p10=inf, p50=inf, p90=inf)
    prediction = Prediction(
        start_ms=start_ms,
        seconds=seconds,
        by=by,
        guessed=guessed_constants(known),
        curve=curve,
        resumed=left is not plan,
    )
    objections = objections_to(seconds, deadline_s, endless=endless, stuck=stuck, full=full)
    return Predicted(prediction, tuple(objections))


def guessed_constants(known: Calibration) -> tuple[str, ...]:
    """Return the constants that runs can measure, and none has measured here."""
    return tuple(name for name in ("broker_rate", "begin_s", "settle_s") if name not in known.sources)


def least_s(traffic: Traffic, options: RunOptions, constants: Constants) -> float:
    """Return how long the busiest broker takes at least, or all of them, if they share a rate."""
    rate = min((options.throttle.rate or inf) * constants.throttle_share, constants.broker_rate)
    together_s = sum(traffic.of(Way.RECEIVED).values()) / constants.total_rate
    return max(traffic.seconds_at(dict.fromkeys(Way, rate)) or 0.0, together_s)


def scaled_range(
    traffic: Traffic, options: RunOptions, known: Calibration, usual_s: float
) -> tuple[float, float]:
    """Return the time with fast and with slow constants, in proportion to that of the busiest broker."""
    least = least_s(traffic, options, known.usual)
    if usual_s == inf or not least:
        return usual_s, usual_s
    fast, slow = (usual_s * least_s(traffic, options, each) / least for each in (known.fast, known.slow))
    return fast, slow


def with_burst(
    fast_s: float, plan: Plan, traffic: Traffic, options: RunOptions, known: Calibration, start_ms: int
) -> float:
    """Return the time of a fast run if the throttle lets bursts pass. `traffic` is that of the plan.

    The run makes up for the first one by a lower rate, as far as it has the time. Nobody waits for the last
    fetch: a follower asks while it is below its rate, and gets up to 1 MiB for each replica at once.
    """
    if options.throttle.rate is None or options.auto:
        return fast_s
    copies = Counter(broker for move in plan.moves for broker in move.adding)
    at_once = min(max(copies.values(), default=0) * FETCH_BYTES, RESPONSE_BYTES)
    last_s = at_once / options.throttle.rate
    ahead_s = min(fast_s, (fast_s - known.burst_s(start_ms)) / (1 - MOST_CORRECTION)) - last_s
    unthrottled = replace(options, throttle=replace(options.throttle, rate=None))
    besides_s = known.fast.throttling_s + known.fast.begin_s + known.fast.settle_s
    return min(fast_s, max(ahead_s, least_s(traffic, unthrottled, known.fast) + besides_s))


def curve_of(movement: Movement) -> Curve:
    """Return the bytes copied over time, in a hundred points or so."""
    links, total, last_s = movement.links, 0.0, 0.0
    into = [links.of(way, broker) for way in (Way.RECEIVED, Way.WITHIN) for broker in links.brokers]
    points = [(0.0, 0.0)]
    for at_s, rates in movement.history.points():
        total += float(rates[into].sum()) * (at_s - last_s)
        last_s = at_s
        points.append((at_s, total))
    step = -(-len(points) // _POINTS)
    return (*points[:-1:step], points[-1])


def _outrun(plan: Plan, loads: ClientLoads, rate: float) -> tuple[TopicPartition, ...]:
    """Return the partitions to which producers write more than a broker may copy."""
    moving = (move.partition for move in plan.moves if move.adding)
    return tuple(sorted(name for name in moving if loads.of(name).leader_in >= rate))


def overfull(snapshot: Snapshot, movement: Movement, fill: float) -> Iterator[str]:
    """Say which log dirs would hold more than the plan allows, at most and when."""
    totals = {(b.id, each.path): each.total_bytes for b in snapshot.brokers for each in b.log_dirs}
    for at, (broker, path) in enumerate(movement.links.log_dirs):
        total = totals.get((broker, path))
        if total is not None and movement.peak[at] > max(int(total * fill), movement.before[at]):
            yield (
                f"{path} of broker {broker} would hold {human_bytes(movement.peak[at])} after "
                f"{movement.peak_s[at]:,.0f} s, and the plan allows {human_bytes(total * fill)}"
            )


def objections_to(
    seconds: TimeRange,
    deadline_s: float | None,
    *,
    endless: Sequence[TopicPartition] = (),
    stuck: str | None = None,
    full: Sequence[str] = (),
) -> Iterator[Objection]:
    """Say what speaks against carrying the plan out so."""
    if endless:
        yield Objection(
            why=f"it would never end: producers write more than the throttle lets through to "
            f"{count(len(endless), 'partition')} ({some(endless)}). Raise the throttle"
        )
    elif stuck is not None:
        yield Objection(why=f"it would get stuck: {stuck}")
    for each in full if seconds.p50 < inf else ():  # what runs forever fills every disk
        yield Objection(why=each, final=True)
    if deadline_s is not None and seconds.p90 > deadline_s:
        late = "never ends" if seconds.p90 == inf else f"takes up to {seconds.p90:,.0f} s"
        yield Objection(why=f"it may miss its deadline: it {late}, and has {deadline_s:,.0f} s")
