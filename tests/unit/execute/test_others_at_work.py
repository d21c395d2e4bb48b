"""A run never overrides another tool's change to a waiting partition."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.client import BrokerError, BrokerLogDirs, ReplicaOnDisk, TopicPartitionReplica
from restow.execute.progress.outcome import Ending
from restow.execute.run.control import ControlRequest
from restow.execute.run.other_tools import dir_taken
from restow.execute.run.start import NotNow
from restow.model import Limits, ReplicaAssignment, TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.unit.execute.fake_admin import MB
from tests.unit.execute.stage import AWAY, THROTTLED, Stage, control_of, plan_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ONE_BY_ONE = Limits(moves_in=1, moves_out=1)
FIRST, SECOND, THIRD = (TopicPartition("t", number) for number in range(3))


def has(stage: Stage, name: TopicPartition, replicas: tuple[int, ...]) -> Callable[[], None]:
    """Return a function that moves the partition as another tool."""

    def act() -> None:
        stage.admin.assignments[name] = ReplicaAssignment(replicas)
        stage.admin.copies[name] = dict.fromkeys(replicas, stage.admin.sizes[name])
        stage.admin.leaders[name] = replicas[0]

    return act


def asked_for(stage: Stage, name: TopicPartition) -> list[object]:
    """Return the requests of the run for this partition."""
    requests = (request for kind, request in stage.admin.calls if kind == "reassign")
    return [request[name] for request in requests if name in request]  # type: ignore[index]


@pytest.mark.parametrize("replicas", [(1, 6), (1, 2, 6), (1,), (2, 1)])
def test_run_drops_a_waiting_partition_when_others_change_its_replicas(
    stage: Stage, replicas: tuple[int, ...]
) -> None:
    stage.after(2, has(stage, SECOND, replicas))
    outcome = stage.execute(plan_for(stage, AWAY, limits=ONE_BY_ONE), THROTTLED)
    assert outcome.ending is Ending.IN_PART
    why = f"somebody else has changed it: it has the replicas {list(replicas)}, and not [1, 2]"
    assert outcome.dropped == {SECOND: why}
    assert outcome.summary is not None
    size = stage.admin.sizes[SECOND]
    assert (outcome.summary.partitions_left, outcome.summary.left_bytes) == (1, size)
    assert "`restow resume` would leave these out again" in outcome.next
    assert "`restow plan rebase PLAN -o NEW`" in outcome.next
    assert asked_for(stage, SECOND) == []
    assert stage.replicas() == [AWAY[0], replicas, *AWAY[2:]]
    assert stage.admin.set_ == {}


def test_run_drops_a_waiting_partition_when_others_are_moving_it(stage: Stage) -> None:
    stage.admin.sizes[SECOND] = 10_000 * MB

    def move() -> None:
        stage.admin.assignments[SECOND] = ReplicaAssignment((1, 2)).reassign_to((1, 6))

    stage.after(2, move)
    outcome = stage.execute(plan_for(stage, AWAY, limits=ONE_BY_ONE), THROTTLED)
    assert outcome.dropped == {SECOND: "somebody else is moving it to [1, 6]"}
    assert "`restow plan rebase PLAN -o NEW`" in outcome.next
    assert asked_for(stage, SECOND) == []
    assert stage.admin.assignments[SECOND].target == (1, 6)


def test_run_drops_a_partition_that_another_tool_moves_to_the_same_target(stage: Stage) -> None:
    """Otherwise a cancel would take back another tool's move."""
    stage.admin.sizes[SECOND] = 10_000 * MB

    def move() -> None:
        stage.admin.assignments[SECOND] = ReplicaAssignment((1, 2)).reassign_to(AWAY[1])

    stage.after(2, move)
    outcome = stage.execute(plan_for(stage, AWAY, limits=ONE_BY_ONE), THROTTLED)
    assert outcome.dropped == {SECOND: f"somebody else is moving it to {list(AWAY[1])}"}
    assert stage.resume(THROTTLED).dropped == outcome.dropped
    assert asked_for(stage, SECOND) == []


def test_run_counts_a_partition_as_done_when_others_moved_it_to_its_target(stage: Stage) -> None:
    stage.after(2, has(stage, SECOND, AWAY[1]))
    outcome = stage.execute(plan_for(stage, AWAY, limits=ONE_BY_ONE), THROTTLED)
    assert outcome.is_good, outcome
    assert asked_for(stage, SECOND) == []
    assert stage.replicas() == AWAY
    assert [each.facts["partition"] for each in stage.events if each.kind == "found done"] == ["t-1"]
    assert stage.undo().is_good
    assert stage.replicas() == [(1, 2), AWAY[1], (2, 1), (2, 3)], "undo leaves to others what they did"


def test_run_ends_when_a_step_can_never_begin_because_others_moved_its_partition(stage: Stage) -> None:
    """None of the step's brokers has a replica any more, so it would wait for them to be in sync."""
    stage.after(2, has(stage, SECOND, (5, 6)))
    outcome = stage.execute(plan_for(stage, AWAY, limits=ONE_BY_ONE), THROTTLED)
    assert outcome.ending is Ending.IN_PART
    assert set(outcome.dropped) == {SECOND}


def test_run_checks_a_partition_right_before_each_request(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change while throttles are being set is noticed, although the last look was before it."""
    alter_configs = stage.admin.incremental_alter_configs

    async def slowly(changes: Mapping[object, object]) -> object:
        has(stage, FIRST, (1, 6))()
        return await alter_configs(changes)  # type: ignore[arg-type]

    monkeypatch.setattr(stage.admin, "incremental_alter_configs", slowly)
    outcome = stage.execute(plan_for(stage, [(1, 3)]), THROTTLED)
    assert set(outcome.dropped) == {FIRST}
    assert asked_for(stage, FIRST) == []
    assert stage.admin.set_ == {}


def test_controller_refuses_when_the_factor_changes_between_the_check_and_the_request(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    reassign = stage.admin.alter_partition_reassignments

    async def late(targets: Mapping[TopicPartition, Sequence[int] | None], **more: bool) -> object:
        if FIRST in targets:
            has(stage, FIRST, (1, 2, 6))()
        return await reassign(targets, **more)

    monkeypatch.setattr(stage.admin, "alter_partition_reassignments", late)
    outcome = stage.execute(plan_for(stage, [(1, 3), (1, 2, 4)]), THROTTLED)
    assert set(outcome.dropped) == {FIRST}
    assert "INVALID_REPLICATION_FACTOR" in outcome.dropped[FIRST]
    assert stage.replicas()[:2] == [(1, 2, 6), (1, 2, 4)], "where the plan changes the factor, it may"


def test_run_works_with_brokers_that_cannot_check_the_factor(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def old(broker: int) -> Mapping[int, tuple[int, int]]:
        return {**dict.fromkeys(range(90), (0, 9)), 45: (0, 0 if broker == 4 else 1)}

    reassign = stage.admin.alter_partition_reassignments

    async def asked(targets: Mapping[TopicPartition, Sequence[int] | None], **more: bool) -> object:
        assert more.get("allow_replication_factor_change", True), "broker 4 does not know the flag"
        return await reassign(targets, **more)

    monkeypatch.setattr(stage.admin, "api_versions", old)
    monkeypatch.setattr(stage.admin, "alter_partition_reassignments", asked)
    assert stage.execute(plan_for(stage, [(1, 3)])).is_good


def test_cancel_leaves_moves_that_others_have_redirected(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The redirection comes between the run's last look and its cancel."""
    moves = stage.admin.list_partition_reassignments
    to_redirect: list[TopicPartition] = []

    async def told(partitions: Sequence[TopicPartition] | None = None) -> object:
        if partitions is not None and to_redirect:
            name = to_redirect.pop()
            stage.admin.assignments[name] = stage.admin.assignments[name].reassign_to((1, 6))
        return await moves(partitions)

    def cancel() -> None:
        to_redirect.append(FIRST)
        control_of(stage).request(ControlRequest(stop="cancel"))

    monkeypatch.setattr(stage.admin, "list_partition_reassignments", told)
    stage.after(2, cancel)
    outcome = stage.execute(plan_for(stage, AWAY), THROTTLED)
    assert outcome.ending is Ending.CANCELLED
    assert outcome.dropped == {FIRST: "somebody else is moving it to [1, 6]"}
    assert stage.admin.assignments[FIRST].target == (1, 6)
    assert None not in asked_for(stage, FIRST)
    assert asked_for(stage, THIRD)[-1:] == [None]


def test_resume_and_undo_leave_changes_by_others_alone(stage: Stage) -> None:
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="cancel")))
    stage.execute(plan_for(stage, AWAY, limits=ONE_BY_ONE), THROTTLED)
    stage.hooks.append(lambda each: has(stage, SECOND, (4, 6))() if each.kind == "begun" else None)
    outcome = stage.resume(THROTTLED)
    assert set(outcome.dropped) == {SECOND}
    assert stage.undo(THROTTLED).is_good, (
        "the run has not touched it, so undo has nothing to bring back there"
    )
    assert stage.replicas() == [(1, 2), (4, 6), (2, 1), (2, 3)]


def test_run_keeps_its_partition_despite_outdated_metadata(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A move in two steps: before the second, brokers still show the replicas before the first."""
    ask, old = stage.admin.describe_topics, asyncio.run(stage.admin.describe_topics())
    answers = []

    async def told(names: Sequence[str] | None = None) -> object:
        answers.append(None)
        return old if len(answers) % 4 == 0 else await ask(names)

    monkeypatch.setattr(stage.admin, "describe_topics", told)
    outcome = stage.execute(plan_for(stage, [(3, 4)], limits=Limits(extra_copies=1)), THROTTLED)
    assert outcome.is_good, outcome
    assert stage.replicas()[0] == (3, 4)


def on_disk(path: str, *, future: bool) -> BrokerLogDirs:
    copy = ReplicaOnDisk(partition=FIRST, log_dir=path, size_bytes=1, lag_messages=0, future=future)
    return BrokerLogDirs(replicas=(copy,))


@pytest.mark.parametrize(
    ("path", "future", "taken"),
    [
        ("/a", False, None),
        ("/b", True, None),
        ("/b", False, None),
        ("/c", True, "somebody else is moving its replica on broker 1 to /c"),
        ("/c", False, "somebody else has moved its replica on broker 1 to /c; it was in /a"),
    ],
)
def test_run_notices_log_dirs_that_others_chose(path: str, future: bool, taken: str | None) -> None:
    request, before = {TopicPartitionReplica(FIRST, 1): "/b"}, {1: "/a"}
    assert dir_taken(request, before, {1: on_disk(path, future=future)}) == taken
    assert dir_taken(request, before, {1: BrokerError(ErrorCode.BROKER_NOT_AVAILABLE)}) is None


def remake(stage: Stage) -> None:
    """Delete the topic, and create another of the same name with the same replicas."""
    stage.admin.remove("t")
    stage.admin.add("t", [(1, 2), (1, 2), (2, 1), (2, 3)])
    stage.admin.topic_ids["t"] = "another"


def test_run_is_refused_when_a_topic_was_recreated_since_the_plan(stage: Stage) -> None:
    plan = replace(plan_for(stage, AWAY), topic_ids={"t": "id of t"})
    remake(stage)
    with pytest.raises(NotNow, match="made anew"):
        stage.execute(plan)
    assert stage.admin.calls == []


def test_run_drops_a_topic_that_is_recreated_right_before_the_request(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its replicas are where the plan starts; only the id differs."""
    alter_configs = stage.admin.incremental_alter_configs

    async def slowly(changes: Mapping[object, object]) -> object:
        if stage.admin.topic_ids.get("t") is None:
            remake(stage)
        return await alter_configs(changes)  # type: ignore[arg-type]

    monkeypatch.setattr(stage.admin, "incremental_alter_configs", slowly)
    plan = replace(plan_for(stage, AWAY), topic_ids={"t": "id of t"})
    outcome = stage.execute(plan, THROTTLED)
    assert outcome.ending is Ending.IN_PART
    assert {why.split(":")[0] for why in outcome.dropped.values()} == {"its topic was deleted and made anew"}
    assert [kind for kind, _ in stage.admin.calls if kind == "reassign"] == []
