"""What is refused before the first change, and leaves nothing behind."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.execute.progress.outcome import Ending
from restow.execute.repair.undo import CannotUndo
from restow.execute.run.control import ControlRequest
from restow.execute.run.options import RunOptions
from restow.execute.run.start import NotNow, resume
from restow.model import Move, Plan, TopicPartition
from restow.model.permissions import Permissions
from restow.plan.files.approval import NotApproved
from restow.plan.files.text import digest_of
from tests.unit.execute.stage import AWAY, THROTTLED, control_of, make_stage, plan_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.unit.execute.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return make_stage(tmp_path)


MAY_NOT_MOVE = Permissions(cluster=frozenset({"DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"}))


def plan(after: tuple[int, ...] = (3, 2), size_bytes: int = 1) -> Plan:
    move = Move(partition=TopicPartition("t", 0), before=(1, 2), after=after, size_bytes=size_bytes)
    return Plan(cluster_id="fake", created_ms=0, moves=(move,))


def refused(stage: Stage, asked: Plan, says: str) -> None:
    with pytest.raises(NotNow, match=says):
        stage.execute(asked)
    assert stage.admin.calls == []
    assert stage.admin.set_ == {}
    assert stage.events == []


def test_execute_refuses_a_topic_recreated_since_the_plan_and_names_rebase(stage: Stage) -> None:
    made = replace(plan(), topic_ids={"t": "id of t"})
    stage.admin.topic_ids["t"] = "another"
    refused(stage, made, r"t-0 is of a topic that was deleted and made anew.* `restow plan rebase PLAN")


def test_journal_keeps_the_topic_ids_of_the_plan(stage: Stage) -> None:
    made = replace(plan(), topic_ids={"t": "id of t"})
    stage.execute(made)
    (run,) = asyncio.run(stage.world.runs()).all()
    assert run.ledger.topic_ids == {"t": "id of t"}
    assert run.ledger.plan == made


def test_execute_names_a_missing_permission(stage: Stage) -> None:
    stage.admin.allowed = MAY_NOT_MOVE
    refused(stage, plan(), r"permissions: 1 missing ACL: ALTER on the cluster")


def test_execute_refuses_a_target_that_is_down(stage: Stage) -> None:
    stage.admin.brokers.discard(3)
    refused(stage, plan(), "brokers alive: 1 broker: 3")


def test_execute_refuses_a_plan_without_room(stage: Stage) -> None:
    refused(stage, plan(size_bytes=10**15), "free space: 1 broker: broker 3")


def test_execute_begins_when_permissions_are_unknown(stage: Stage) -> None:
    assert stage.admin.allowed.cluster is None
    assert stage.execute(plan()).is_good


def left(stage: Stage, targets: Sequence[tuple[int, ...]] = AWAY) -> None:
    """Leave a run to itself, with all of its partitions under way."""
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    assert stage.execute(plan_for(stage, targets), THROTTLED).ending is Ending.LEFT
    stage.events.clear()
    stage.admin.calls.clear()


def test_resume_names_a_permission_that_was_withdrawn(stage: Stage) -> None:
    left(stage)
    stage.admin.allowed = MAY_NOT_MOVE
    with pytest.raises(NotNow, match=r"cannot go on, and nothing was changed: permissions: .*ALTER on the"):
        stage.resume(THROTTLED)
    assert stage.admin.calls == []
    stage.admin.allowed = Permissions()
    assert stage.resume(THROTTLED).is_good


def test_resume_continues_without_a_target_that_is_down(stage: Stage) -> None:
    left(stage)
    stage.admin.brokers.discard(6)
    stage.after(100, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    assert stage.resume(RunOptions(throttle=THROTTLED.throttle)).ending is Ending.LEFT
    (warned,) = [each.facts["why"] for each in stage.events if each.kind == "warned"]
    assert "brokers alive: 1 broker: 6" in str(warned)
    assert stage.replicas()[:2] == [(1, 3), (1, 4)]


def test_resume_of_a_completed_run_needs_no_permission(stage: Stage) -> None:
    """Only the throttles are left to restore."""
    left(stage, [(1, 3)])
    asyncio.run(stage.clock.sleep(100))
    stage.admin.allowed = MAY_NOT_MOVE
    assert stage.resume(THROTTLED).is_good
    assert stage.admin.set_ == {}


def test_undo_is_refused_without_permissions_or_a_leader(stage: Stage) -> None:
    assert stage.execute(plan()).is_good
    stage.admin.calls.clear()
    stage.admin.allowed = MAY_NOT_MOVE
    with pytest.raises(NotNow, match="nothing was begun: permissions"):
        stage.undo()
    stage.admin.allowed = Permissions()
    stage.admin.leaders[TopicPartition("t", 0)] = None
    with pytest.raises(CannotUndo, match="t-0 has no leader to copy from"):
        stage.undo()
    assert stage.admin.calls == []


def test_resume_refuses_a_run_with_another_digest(stage: Stage) -> None:
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    wanted = plan_for(stage, AWAY)
    assert stage.execute(wanted, THROTTLED).ending is Ending.LEFT
    calls = len(stage.admin.calls)
    with pytest.raises(NotApproved, match="it is not the plan that was approved"):
        asyncio.run(resume(stage.world, THROTTLED, stage.watcher, digest="0" * 12))
    assert len(stage.admin.calls) == calls
    digest = digest_of(wanted)
    assert asyncio.run(resume(stage.world, THROTTLED, stage.watcher, digest=digest)).ending is Ending.DONE
