"""Carry out a schedule in the flow model, from event to event.

The schedule and its admission are the executor's own: what may begin, and in which order, is decided by the
same code in a forecast and in a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from restow.plan.flow.copies import Start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from restow.model import BrokerId, Snapshot, Step, TopicPartition
    from restow.plan.flow.movement import Movement
    from restow.plan.schedule.schedule import Schedule


class StepTimes(NamedTuple):
    """A step, when it began and when it ended; infinity if it never ends."""

    step: Step
    begun_s: float
    ended_s: float


@dataclass(slots=True, kw_only=True)
class ForecastRun:
    """What became of a schedule."""

    seconds: float = 0.0
    """Infinity if it never ends."""
    steps: list[StepTimes] = field(default_factory=list)
    """In the order in which they began."""
    endless: tuple[TopicPartition, ...] = ()
    """Partitions whose copies get less than producers write."""
    stuck: str | None = None
    """Why nothing may begin, if nothing is under way and steps are left."""


def leader_of(snapshot: Snapshot, step: Step) -> BrokerId | None:
    """Return the broker that sends a step's copies: the leader, or the first replica if it is unknown."""
    found = snapshot.partition(step.partition)
    leader = None if found is None else found.leader
    return step.before[0] if leader is None and step.before else leader


def carry_out(
    schedule: Schedule,
    movement: Movement,
    sender: Callable[[Step], BrokerId | None],
    *,
    under_way: Iterable[Step] = (),
    may_begin: Callable[[], bool] = lambda: True,
    finished: Callable[[Step], object] = lambda _: None,
    until_s: float = inf,
) -> ForecastRun:
    """Carry out the schedule until its end, or until nothing can go on.

    `sender` is the broker that sends a step's copies, and `under_way` are steps that are admitted already.
    `finished` is called with each step that ends, before others begin. While `may_begin` says no, nothing
    begins; whoever decides that wakes the movement when the answer changes.
    """
    run = ForecastRun()
    began: dict[TopicPartition, tuple[int, float]] = {}

    def begin(begun: Iterable[Step], *, at_once: bool) -> None:
        starts = []
        for step in begun:
            began[step.partition] = len(run.steps), movement.now_s
            run.steps.append(StepTimes(step, movement.now_s, inf))
            starts.append(Start(step, sender(step), schedule.admission.arrivals(step)))
        movement.begin(starts, at_once=at_once)

    begin(under_way, at_once=True)
    while schedule.left:
        begin(schedule.admit() if may_begin() else (), at_once=False)
        if movement.next_s == inf:
            run.endless = tuple(movement.endless())
            run.stuck = None if run.endless else schedule.why_stuck() or "nothing may begin"
            break
        for start, at_s in movement.advance(until_s):
            step = start.step
            number, begun_s = began.pop(step.partition)
            run.steps[number] = StepTimes(step, begun_s, at_s)
            schedule.finish(step)
            finished(step)
        if movement.now_s >= until_s:
            break
    if schedule.left and not run.stuck:
        run.endless = run.endless or tuple(movement.endless())
    run.seconds = inf if schedule.left else movement.now_s
    return run
