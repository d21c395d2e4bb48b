"""What may go wrong around a run, and which of resume, undo or doctor fixes it."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from restow.client import BrokerError
from restow.execute.journal.journal import FILE_NAME
from restow.execute.progress.outcome import Ending
from restow.execute.repair.doctor import FindingKind, diagnose, fix
from restow.execute.repair.undo import CannotUndo
from restow.execute.run.control import ControlRequest
from restow.execute.run.options import RunOptions
from restow.execute.run.start import NotNow, resume
from restow.execute.throttle.throttles import ThrottleRates
from restow.model import Limits, ReplicaAssignment, TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.unit.execute.fake_admin import MB
from tests.unit.execute.stage import AWAY, THROTTLED, Stage, control_of, plan_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.client import PartitionReassignment

ONE_BY_ONE = Limits(moves_in=1, moves_out=1)


def left_running(stage: Stage) -> Path:
    """Leave a run in the middle; return the folder of its journal."""
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    assert stage.execute(plan_for(stage, AWAY), THROTTLED).ending is Ending.LEFT
    return Path(next(str(each.facts["folder"]) for each in stage.events if each.kind == "run"))


def remake(stage: Stage) -> None:
    """Delete the topic, and create another of the same name."""
    stage.admin.remove("t")
    stage.admin.add("t", [(1, 2), (1, 2), (2, 1), (2, 3)])
    stage.admin.topic_ids["t"] = "another"


def test_run_leaves_a_recreated_topic_alone(stage: Stage) -> None:
    stage.after(12, lambda: remake(stage))
    outcome = stage.execute(plan_for(stage, AWAY, limits=ONE_BY_ONE), THROTTLED)
    assert outcome.ending is Ending.IN_PART
    assert set(outcome.dropped.values()) == {
        "its topic was deleted and made anew: that one is not what the plan was made for"
    }
    assert "`restow undo` would be refused now: t-2: its topic was deleted and made anew" in outcome.next
    assert stage.replicas() == [(1, 2), (1, 2), (2, 1), (2, 3)]
    assert stage.admin.set_ == {}


def test_resume_and_undo_leave_a_recreated_topic_alone(stage: Stage) -> None:
    left_running(stage)
    remake(stage)
    calls = len(stage.admin.calls)
    outcome = stage.resume(THROTTLED)
    assert outcome.ending is Ending.IN_PART
    assert len(outcome.dropped) == 3
    with pytest.raises(CannotUndo, match="t-0: its topic was deleted and made anew"):
        stage.undo()
    assert not [kind for kind, _ in stage.admin.calls[calls:] if kind == "reassign"]


def test_run_continues_when_a_topic_gets_more_partitions(stage: Stage) -> None:
    def grow() -> None:
        name = TopicPartition("t", 4)
        stage.admin.assignments[name] = ReplicaAssignment((5, 6))
        stage.admin.leaders[name], stage.admin.sizes[name] = 5, MB
        stage.admin.copies[name] = {5: MB, 6: MB}

    stage.after(3, grow)
    assert stage.execute(plan_for(stage, AWAY), THROTTLED).is_good
    assert stage.replicas() == [*AWAY, (5, 6)]


def test_run_leaves_a_partition_that_another_tool_redirects(stage: Stage) -> None:
    def elsewhere() -> None:
        name = TopicPartition("t", 0)
        stage.admin.assignments[name] = stage.admin.assignments[name].reassign_to((1, 6))

    stage.after(3, elsewhere)
    outcome = stage.execute(plan_for(stage, AWAY), THROTTLED)
    assert outcome.ending is Ending.IN_PART
    assert outcome.dropped == {TopicPartition("t", 0): "somebody else is moving it to [1, 6]"}
    assert stage.admin.set_ == {}


def test_damaged_journal_blocks_new_runs_and_the_doctor_reports_it(stage: Stage) -> None:
    journal = left_running(stage) / FILE_NAME
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0] + b"junk\n" + b"".join(lines[2:]))
    with pytest.raises(NotNow, match=r"is in the way: .*line 2: this is not .* `restow doctor`"):
        stage.execute(plan_for(stage, []))
    found = asyncio.run(diagnose(stage.world))
    assert found[0].kind is FindingKind.JOURNAL
    assert "move the folder away" in found[0].remedy
    assert {each.kind for each in found[1:]} >= {FindingKind.MOVE}, "its moves are nobody's now"
    assert not any(each.run for each in found)
    left = asyncio.run(fix(stage.world, stage.watcher))
    assert left[0].kind is FindingKind.JOURNAL
    asyncio.run(stage.clock.sleep(100))
    assert FindingKind.THROTTLE in {each.kind for each in asyncio.run(diagnose(stage.world))}, (
        "told, not removed"
    )


def test_journal_of_another_cluster_blocks_new_runs(stage: Stage) -> None:
    folder = left_running(stage)
    elsewhere = folder.parent.with_name("moved-in")
    shutil.copytree(folder, elsewhere / folder.name)
    stage.admin.cluster_id = "moved-in"
    with pytest.raises(NotNow, match=r"it is of the cluster 'fake', not of this one\. See `restow doctor`"):
        stage.execute(replace(plan_for(stage, []), cluster_id="moved-in"))
    with pytest.raises(NotNow, match="is for the cluster 'fake', and this one is 'moved-in'"):
        asyncio.run(resume(stage.world, RunOptions(), stage.watcher))
    (found, *_) = asyncio.run(fix(stage.world, stage.watcher))
    assert found.kind is FindingKind.JOURNAL
    assert found.what == str(elsewhere / folder.name)


def test_run_ends_when_it_may_no_longer_describe_and_can_be_resumed(stage: Stage) -> None:
    allowed = stage.admin.list_partition_reassignments

    async def refused(
        partitions: Iterable[TopicPartition] | None = None,
    ) -> Mapping[TopicPartition, PartitionReassignment]:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    stage.after(3, lambda: setattr(stage.admin, "list_partition_reassignments", refused))
    outcome = stage.execute(plan_for(stage, AWAY), THROTTLED)
    assert outcome.ending is Ending.FAILED
    assert "CLUSTER_AUTHORIZATION_FAILED" in outcome.reason
    assert outcome.next.startswith("`restow resume` when the cause is gone")
    assert stage.admin.set_, "what still moves stays throttled"
    stage.admin.list_partition_reassignments = allowed  # type: ignore[method-assign]
    assert stage.resume(THROTTLED).is_good
    assert stage.replicas() == AWAY
    assert stage.admin.set_ == {}


def test_run_names_throttles_that_stay_when_it_may_no_longer_alter_configs(stage: Stage) -> None:
    plan = plan_for(stage, [(1, 3)])

    def withdraw() -> None:
        for of in stage.admin.set_:
            stage.admin.refuse_configs[of] = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    stage.after(3, withdraw)
    outcome = stage.execute(plan, THROTTLED)
    assert outcome.ending is Ending.DONE
    assert not outcome.is_good
    assert "`restow doctor --fix` does it when what hinders it is gone" in outcome.next
    stage.admin.refuse_configs.clear()
    asyncio.run(fix(stage.world, stage.watcher))
    assert stage.admin.set_ == {}


def test_run_drops_the_rest_when_it_may_no_longer_alter_and_resume_moves_it(stage: Stage) -> None:
    plan = plan_for(stage, AWAY, limits=ONE_BY_ONE)

    def withdraw() -> None:
        for name in stage.admin.assignments:
            stage.admin.refuse[name] = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    stage.after(3, withdraw)
    outcome = stage.execute(plan, RunOptions(throttle=ThrottleRates(rate=5 * MB)))
    assert outcome.ending is Ending.IN_PART
    assert "CLUSTER_AUTHORIZATION_FAILED" in next(iter(outcome.dropped.values()))
    assert stage.admin.set_ == {}
    stage.admin.refuse.clear()
    assert stage.resume(THROTTLED).is_good
    assert stage.replicas() == AWAY
