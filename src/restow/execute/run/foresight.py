"""Predict a run before its first change, with what earlier runs on the cluster have measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from restow.errors import InvalidInput
from restow.execute.predict.learn import calibrate
from restow.execute.predict.moments import seconds_until
from restow.execute.predict.predicting import predict
from restow.execute.run.steps import rest_of
from restow.plan.flow.constants import Calibration
from restow.plan.flow.loads import client_loads

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.execute.predict.prediction import Objection, Prediction
    from restow.execute.run.options import RunOptions
    from restow.execute.run.start import RunContext
    from restow.model import Plan, Snapshot


class Foreseen(NamedTuple):
    """What is known of a run before it begins."""

    known: Calibration = Calibration()
    prediction: Prediction | None = None
    """None for a run that has nothing to do, or whose brokers are not all there."""
    objections: tuple[Objection, ...] = ()

    @property
    def document(self) -> dict[str, object] | None:
        """Return the prediction for the journal."""
        return None if self.prediction is None else self.prediction.document()


def foresee(
    world: RunContext, plan: Plan, snapshot: Snapshot, options: RunOptions, *, resumed: bool = False
) -> Foreseen:
    """Predict what is left of a plan; all of it, unless it was begun."""
    if not options.predicts:
        return Foreseen()
    start_ms = world.clock.now_ms()
    known = calibrate(world.root, snapshot.cluster_id, options.load, world.disk)
    deadline_s = None if options.deadline is None else seconds_until(options.deadline, start_ms)
    if deadline_s is not None and deadline_s <= 0:
        raise InvalidInput(f"--deadline: {options.deadline!r} is over already")
    loads = client_loads(options.load, snapshot, plan)
    left = rest_of(plan, snapshot) if resumed else plan
    receiving = {broker for move in left.moves for broker in move.adding}
    if not left.moves or not receiving <= snapshot.broker.keys():
        return Foreseen(known)
    predicted = predict(
        plan, snapshot, options, known, loads, start_ms=start_ms, deadline_s=deadline_s, rest=left
    )
    return Foreseen(known, predicted.prediction, predicted.objections)


def forbidding(foreseen: Foreseen, options: RunOptions) -> list[str]:
    """Return the objections for which the run must not begin."""
    return [each.why for each in foreseen.objections if each.final or not options.anyway]


def advice(objections: Iterable[Objection]) -> str:
    """Say how to go on in spite of objections."""
    if any(each.final for each in objections):
        return "make room, or plan with another --fill"
    return "change that, or go on all the same with --anyway"
