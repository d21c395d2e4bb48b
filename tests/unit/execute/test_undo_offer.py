"""Undo is offered where it would work, and restores the replicas in their order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from restow.execute.progress.outcome import Ending
from restow.execute.repair.undo import CannotUndo
from restow.execute.run.control import ControlRequest
from restow.execute.run.options import RunOptions
from restow.execute.run.start import NotNow, undo, way_back
from restow.model import ReplicaAssignment, TopicPartition
from restow.model.permissions import Permissions
from tests.unit.execute.stage import AWAY, THROTTLED, Stage, control_of, plan_for

if TYPE_CHECKING:
    from restow.execute.progress.outcome import RunOutcome

FIRST = TopicPartition("t", 0)


def may_be_undone(stage: Stage, outcome: RunOutcome) -> None:
    """Check that the offer at the end agrees with what undo then does."""
    if outcome.no_undo is None:
        assert "restow undo" in outcome.next
        assert "refused" not in outcome.next
        assert stage.undo().is_good
    else:
        assert f"`restow undo` would be refused now: {outcome.no_undo}" in outcome.next
        with pytest.raises((CannotUndo, NotNow)) as refused:
            stage.undo()
        assert str(refused.value) == outcome.no_undo


def test_undo_is_offered_where_it_would_work(stage: Stage) -> None:
    outcome = stage.execute(plan_for(stage, AWAY))
    assert outcome.no_undo is None
    may_be_undone(stage, outcome)


def test_undo_is_not_offered_when_an_original_broker_has_died(stage: Stage) -> None:
    """All data has left the broker before it dies, so the run completes."""
    last = {"arrived": 0}

    def dies(each: object) -> None:
        last["arrived"] += 1
        if last["arrived"] == 1:
            stage.admin.brokers.discard(2)

    stage.hooks.append(lambda each: dies(each) if each.kind == "arrived" else None)
    outcome = stage.execute(plan_for(stage, [(1, 3)]))
    assert outcome.ending is Ending.DONE
    assert outcome.no_undo is not None
    assert outcome.no_undo == "t-0 was on broker 2, which is not there. There is nothing else to bring back"
    may_be_undone(stage, outcome)
    with pytest.raises(CannotUndo, match="nothing else to bring back"):
        asyncio.run(undo(stage.world, RunOptions(), stage.watcher, as_far_as_possible=True))


def test_undo_is_not_offered_when_others_have_moved_partitions_since(stage: Stage) -> None:
    def moved_on() -> None:
        stage.admin.assignments[FIRST] = ReplicaAssignment((1, 6))
        stage.admin.copies[FIRST] = dict.fromkeys((1, 6), stage.admin.sizes[FIRST])

    stage.hooks.append(
        lambda each: moved_on() if each.kind == "arrived" and each.facts["partition"] == "t-0" else None
    )
    outcome = stage.execute(plan_for(stage, AWAY))
    assert outcome.no_undo is not None
    assert "t-0 was moved on to [1, 6] by somebody else" in outcome.no_undo
    assert "With --as-far-as-possible the others are brought back" in outcome.no_undo
    may_be_undone(stage, outcome)


def test_undo_is_not_offered_without_the_permissions_it_needs(stage: Stage) -> None:
    def withdrawn() -> None:
        stage.admin.allowed = Permissions(cluster=frozenset({"DESCRIBE"}), topics={})

    stage.hooks.append(lambda each: withdrawn() if each.kind == "arrived" else None)
    outcome = stage.execute(plan_for(stage, [(1, 3)]))
    assert outcome.no_undo is not None
    assert "permissions" in outcome.no_undo
    may_be_undone(stage, outcome)


def test_undo_is_not_offered_when_nothing_has_changed(stage: Stage) -> None:
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="cancel")))
    outcome = stage.execute(plan_for(stage, AWAY), THROTTLED)
    assert outcome.ending is Ending.CANCELLED
    assert outcome.no_undo == "this run has changed nothing"


def test_undo_can_be_previewed_while_moves_of_the_run_are_under_way(stage: Stage) -> None:
    """They are our own: undo cancels them first."""
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    assert stage.execute(plan_for(stage, AWAY), THROTTLED).ending is Ending.LEFT
    run = asyncio.run(stage.world.runs()).last_to_move()
    plan, _ = asyncio.run(way_back(stage.world, run))
    assert plan.moves == ()
    stage.undo()
    assert stage.replicas() == [(1, 2), (1, 2), (2, 1), (2, 3)]


@pytest.mark.parametrize("target", [(2, 1), (3, 1), (3, 4), (2, 1, 3), (2,)])
def test_undo_restores_the_order_of_replicas(stage: Stage, target: tuple[int, ...]) -> None:
    """The first replica leads, so the order matters as much as the brokers."""
    aims = [target, (2, 1), (1, 2)]
    assert stage.execute(plan_for(stage, aims)).is_good
    assert stage.replicas()[:3] == aims
    assert stage.undo().is_good
    assert stage.replicas()[:3] == [(1, 2), (1, 2), (2, 1)]
    assert stage.admin.leaders[FIRST] == 1


def test_undo_of_an_undo_restores_the_order_of_the_run(stage: Stage) -> None:
    assert stage.execute(plan_for(stage, [(2, 1), (4, 1)])).is_good
    assert stage.undo().is_good
    assert stage.undo().is_good
    assert stage.replicas()[:2] == [(2, 1), (4, 1)]
