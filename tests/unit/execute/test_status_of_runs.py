"""What a run tells its user: health as a move ends, time left while paused, exit code of a cancel."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from restow.cli import app
from restow.cli.runs import cancel, flags
from restow.execute.progress.watch import watch
from restow.execute.run import start
from restow.execute.run.control import ControlRequest
from restow.execute.run.options import run_options
from restow.model import Limits, ReplicaAssignment, TopicPartition
from tests.unit.execute.fake_admin import MB, FakeAdmin
from tests.unit.execute.stage import AWAY, THROTTLED, Stage, control_of, plan_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from restow.execute.progress.status import RunStatus
    from restow.model import Topic


def end_moves_after_metadata_was_read(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let the moves of the next observations end between its metadata and its list of reassignments."""
    describe, ended = stage.admin.describe_topics, []

    async def then_end_moves(names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        found = await describe(names)
        moving = sum(each.is_moving for each in stage.admin.assignments.values())
        if names is None and moving:
            ended.append(moving)
            FakeAdmin.tick(stage.admin, 1000)
        return found

    monkeypatch.setattr(stage.admin, "describe_topics", then_end_moves)
    return ended


def test_status_counts_no_partition_as_under_replicated_when_its_move_has_just_ended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = end_moves_after_metadata_was_read(stage, monkeypatch)
    assert stage.execute(plan_for(stage, AWAY), THROTTLED).is_good
    assert ended, "some move ended during an observation"
    assert {each.under_replicated for each in stage.statuses} == {0}
    assert "paused" not in stage.kinds()


def test_watch_counts_no_partition_as_under_replicated_when_its_move_has_just_ended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def statuses() -> list[RunStatus]:
        await stage.admin.alter_partition_reassignments({TopicPartition("t", 0): (1, 3)})
        async with aclosing(watch(stage.world, 1)) as seen:
            first = await anext(seen)
            end_moves_after_metadata_was_read(stage, monkeypatch)
            return [first, await anext(seen)]

    first, second = asyncio.run(statuses())
    assert (first.under_way, second.under_way) == (1, 0)
    assert (first.under_replicated, second.under_replicated) == (0, 0)


def test_time_left_is_unknown_while_a_run_is_paused_and_known_again_when_it_goes_on(stage: Stage) -> None:
    stage.after(30, lambda: control_of(stage).request(ControlRequest(paused=True)))
    stage.after(330, lambda: control_of(stage).request(ControlRequest(paused=False)))
    one_by_one = Limits(moves_in=1, moves_out=1)
    targets = [(4, 2), (1, 4), (2, 4), (2, 4)]
    stage.admin.rate = 5 * MB
    assert stage.execute(plan_for(stage, targets, limits=one_by_one)).is_good
    paused = [each for each in stage.statuses if each.paused]
    assert paused
    assert {each.report.eta_s for each in paused} == {None}
    assert paused[-1].report.rate == 0
    assert {each.document()["eta_s"] for each in paused} == {None}
    later = stage.statuses[stage.statuses.index(paused[-1]) + 1 :]
    left_bytes = paused[-1].report.to_do_bytes - paused[-1].report.done_bytes
    known = [each.report.eta_s for each in later if each.report.eta_s is not None]
    assert known
    assert known[0] < 2 * left_bytes / stage.admin.rate, "the pause counts as no time of copying"


def test_time_left_is_unknown_while_nothing_can_move(stage: Stage) -> None:
    stage.after(3, lambda: stage.admin.brokers.discard(4))
    stage.after(120, lambda: stage.admin.brokers.add(4))
    assert stage.execute(plan_for(stage, [(4, 2), (1, 2), (2, 1), (2, 3)])).is_good
    stalled = [each for each in stage.statuses if each.report.still]
    assert stalled[-1].report.eta_s is None
    assert stage.statuses[-1].report.eta_s is not None, "it is known again when the broker is back"


def test_time_left_is_unknown_while_a_replica_out_of_sync_holds_the_last_step(stage: Stage) -> None:
    name = TopicPartition("t", 0)
    stage.admin.lagging.add((name, 1))
    stage.admin.leaders[name] = 2
    stage.after(120, lambda: stage.admin.lagging.discard((name, 1)))
    assert stage.execute(plan_for(stage, [(1, 4)])).is_good
    waiting = [each for each in stage.statuses if each.waits]
    assert waiting[-1].report.eta_s is None


def test_time_left_is_known_while_a_run_is_paused_in_which_nothing_waits(stage: Stage) -> None:
    stage.after(6, lambda: control_of(stage).request(ControlRequest(paused=True)))
    stage.after(8, lambda: control_of(stage).request(ControlRequest(paused=False)))
    stage.admin.rate = 5 * MB
    options = run_options(throttle="5MB/s")
    assert stage.execute(plan_for(stage, [(4, 2), (1, 4), (2, 4), (2, 4)]), options).is_good
    paused = [each for each in stage.statuses if each.paused]
    assert paused
    assert None not in {each.report.eta_s for each in paused}


def test_run_that_has_ended_has_no_time_left(stage: Stage) -> None:
    stage.admin.rate = 5 * MB
    assert stage.execute(plan_for(stage, [(4, 2), (1, 4)]), run_options(throttle="5MB/s")).is_good
    assert stage.statuses[-1].ended is not None
    assert stage.statuses[-1].report.eta_s == 0


def test_pause_says_who_paused_the_run_and_how_it_goes_on(stage: Stage) -> None:
    plan = plan_for(stage, AWAY, limits=Limits(moves_in=1, moves_out=1))
    stage.after(1, lambda: control_of(stage).request(ControlRequest(paused=True)))
    stage.after(60, lambda: control_of(stage).request(ControlRequest(paused=False)))
    assert stage.execute(plan).is_good
    (why,) = [each.facts["why"] for each in stage.events if each.kind == "paused"]
    assert why == "an operator paused the run; `restow control --go-on` lets it go on"


def test_cancel_command_exits_with_0_when_it_has_cancelled_a_run_without_a_process(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    stage.execute(plan_for(stage, AWAY), THROTTLED)
    monkeypatch.setattr(start, "run_context", lambda *_: stage.world)
    monkeypatch.setattr(flags, "on_cluster", lambda _, work: asyncio.run(work(stage.admin)))
    result = CliRunner().invoke(app, ["cancel", "--yes", "-b", "nowhere:1"])
    assert result.exit_code == 0, result.output
    ended = json.loads(result.stdout.splitlines()[-1])
    assert ended["outcome"] == "cancelled"
    assert stage.replicas() == [(1, 2), (1, 2), (2, 1), (2, 3)]


def test_cancel_command_counts_the_moves_that_the_cluster_still_has(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moves go on without the run. Its journal does not know which have arrived since."""
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    stage.execute(plan_for(stage, AWAY), THROTTLED)
    monkeypatch.setattr(start, "run_context", lambda *_: stage.world)
    monkeypatch.setattr(cancel, "on_cluster", lambda _, work: asyncio.run(work(stage.admin)))
    assert previewed() == ["t-0", "t-1", "t-2"]
    stage.admin.assignments[TopicPartition("t", 0)] = ReplicaAssignment(AWAY[0])
    assert previewed() == ["t-1", "t-2"]


def previewed() -> list[str]:
    """Return the moves that `restow cancel` would take back."""
    result = CliRunner().invoke(app, ["cancel", "-b", "nowhere:1", "--json"])
    found: list[str] = json.loads(result.stdout)["under_way"]
    return found


def test_bytes_on_a_broker_that_has_died_are_unknown(stage: Stage) -> None:
    name = TopicPartition("t", 0)
    stage.after(3, lambda: stage.admin.brokers.discard(3))
    stage.after(20, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    stage.execute(plan_for(stage, [(1, 3)]), THROTTLED)
    told = [each for status in stage.statuses for each in status.report.copying if each.partition == name]
    assert told[0].answered
    assert not told[-1].answered
