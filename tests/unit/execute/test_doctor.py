"""The doctor's findings, on values; a fix changes only what is ours."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.client import ConfigResource
from restow.execute.progress.outcome import Ending
from restow.execute.repair.doctor import FindingKind, diagnose, examine, fix, repaired
from restow.execute.run.control import ControlRequest
from restow.execute.run.start import NotNow
from restow.execute.throttle.throttles import FOLLOWER_RATE, LEADER_REPLICAS
from restow.model import (
    Copy,
    Limits,
    LiveBroker,
    Partition,
    ReplicaAssignment,
    Snapshot,
    Topic,
    TopicPartition,
)
from restow.wire.error_codes import ErrorCode
from tests.unit.execute.stage import AWAY, THROTTLED, Stage, control_of, plan_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.execute.progress.status import RunEvent


def snapshot(
    partition: Partition, *, racks: str = "abc", configs: Mapping[str, str] | None = None
) -> Snapshot:
    return Snapshot(
        cluster_id="c",
        taken_ms=0,
        controller=0,
        brokers=tuple(
            LiveBroker(id=number, host="h", port=1, rack=rack) for number, rack in enumerate(racks)
        ),
        topics=(Topic(name="t", partitions=(partition,), configs=configs or {}),),
    )


def partition(**changes: object) -> Partition:
    usual: dict[str, object] = {"number": 0, "replicas": (0, 1), "isr": (0, 1), "leader": 0}
    return Partition(**{**usual, **changes})  # type: ignore[arg-type]


def test_doctor_finds_nothing_on_a_healthy_cluster() -> None:
    assert examine(snapshot(partition()), ()) == ()


def test_doctor_does_not_want_the_first_replica_to_lead_while_a_partition_moves() -> None:
    """The run that moves it elects it in the end; if the move is taken back, another one is first."""
    moving = partition(replicas=(2, 0, 1), isr=(2, 0, 1), leader=0, adding=(2,), removing=(1,))
    assert [each.kind for each in examine(snapshot(moving), ())] == [FindingKind.LEFTOVER]


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (FindingKind.UNDER_REPLICATED, {"isr": (0,)}),
        (FindingKind.OFFLINE, {"leader": None, "isr": ()}),
        (FindingKind.LEADER, {"leader": 1}),
        (FindingKind.MOVE, {"replicas": (0, 1, 2), "adding": (2,)}),
        (FindingKind.LEFTOVER, {"replicas": (0, 1, 2), "isr": (0, 1, 2), "adding": (2,)}),
        (FindingKind.STRAY, {"copies": (Copy(broker=2, log_dir="/d", size_bytes=5),)}),
        (FindingKind.FUTURE, {"copies": (Copy(broker=1, log_dir="/e", size_bytes=5, future=True),)}),
    ],
    ids=lambda value: value.name if isinstance(value, FindingKind) else "",
)
def test_doctor_finds_each_kind(kind: FindingKind, changes: dict[str, object]) -> None:
    assert [each.kind for each in examine(snapshot(partition(**changes)), ())] == [kind]


def test_doctor_finds_a_listed_broker_that_does_not_answer() -> None:
    """It has just died, and its session has not expired: nothing else is wrong yet."""
    silent = replace(snapshot(partition()), unanswered=(1,))
    (found,) = examine(silent, ())
    assert (found.kind, found.what, found.can_be_fixed) == (FindingKind.SILENT, "broker 1", False)
    assert examine(replace(silent, denied=("DESCRIBE on the cluster",)), ()) == ()


def test_doctor_finds_replicas_that_share_a_rack_needlessly() -> None:
    assert [each.kind for each in examine(snapshot(partition(), racks="aab"), ())] == [FindingKind.RACKS]
    assert examine(snapshot(partition(), racks="aaa"), ()) == ()


def test_doctor_reports_a_foreign_throttle_and_does_not_fix_it() -> None:
    (found,) = examine(snapshot(partition(), configs={LEADER_REPLICAS: "0:0"}), ())
    assert found.kind is FindingKind.THROTTLE
    assert not found.can_be_fixed
    moving = partition(replicas=(0, 1, 2), adding=(2,))
    kinds = [each.kind for each in examine(snapshot(moving, configs={LEADER_REPLICAS: "0:0"}), ())]
    assert kinds == [FindingKind.MOVE]


def test_fix_rolls_back_our_run_and_nothing_of_others(stage: Stage) -> None:
    theirs = {
        ConfigResource("broker", "6"): {FOLLOWER_RATE: "5"},
        ConfigResource("topic", "t"): {LEADER_REPLICAS: "9:9"},
    }
    stage.admin.set_.update({of: dict(values) for of, values in theirs.items()})
    other = TopicPartition("other", 0)
    stage.admin.add("other", [(1, 2)], size=10**12)
    stage.admin.assignments[other] = ReplicaAssignment((1, 2)).reassign_to((1, 3))
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    stage.execute(plan_for(stage, AWAY), THROTTLED)
    found = asyncio.run(diagnose(stage.world))
    assert {each.kind for each in found} >= {FindingKind.OPEN_RUN, FindingKind.MOVE}
    left = asyncio.run(fix(stage.world, stage.watcher))
    assert stage.admin.set_ == theirs
    assert stage.admin.assignments[other].is_moving
    assert FindingKind.OPEN_RUN not in {each.kind for each in left}
    assert not any(each.can_be_fixed for each in left)
    assert stage.replicas() == [(1, 2), (1, 2), (2, 1), (2, 3)]


def test_doctor_says_what_is_left_of_a_run_that_ended_with_a_throttle(stage: Stage) -> None:
    def hinder(each: RunEvent) -> None:
        if each.kind == "arrived":
            stage.admin.refuse_configs[ConfigResource("broker", "3")] = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    stage.hooks.append(hinder)
    outcome = stage.execute(plan_for(stage, [(1, 3)]), THROTTLED)
    assert (outcome.ending, outcome.throttles_left) == (Ending.DONE, (f"{FOLLOWER_RATE} of broker 3",))
    (found,) = asyncio.run(diagnose(stage.world))
    assert (found.kind, found.can_be_fixed) == (FindingKind.THROTTLES_LEFT, True)
    told = f"it ended: done, and could not bring back 1 throttle setting: {FOLLOWER_RATE} of broker 3"
    assert found.evidence == told
    stage.admin.refuse_configs.clear()
    stage.events.clear()
    assert asyncio.run(fix(stage.world, stage.watcher)) == ()
    assert repaired(stage.events) == (f"brought back {FOLLOWER_RATE} of broker 3 (removed)",)


def test_throttle_of_a_dead_broker_does_not_keep_others_from_leaving_it(stage: Stage) -> None:
    """Its setting cannot be changed while it is down. Doctor brings it back when the broker is up again."""

    def die(each: RunEvent) -> None:
        if each.kind == "arrived":
            stage.admin.refuse_configs[ConfigResource("broker", "3")] = ErrorCode.BROKER_NOT_AVAILABLE
            stage.admin.brokers.discard(3)

    stage.hooks.append(die)
    outcome = stage.execute(plan_for(stage, [(1, 3)]), THROTTLED)
    assert outcome.throttles_left == (f"{FOLLOWER_RATE} of broker 3",)
    stage.hooks.clear()
    stage.admin.brokers.add(3)
    with pytest.raises(NotNow, match="has not been brought to its end"):
        stage.execute(plan_for(stage, [(1, 4)]), THROTTLED)
    stage.admin.brokers.discard(3)
    assert stage.execute(plan_for(stage, [(1, 4)]), THROTTLED).is_good
    assert FindingKind.THROTTLES_LEFT in {each.kind for each in asyncio.run(diagnose(stage.world))}
    stage.admin.brokers.add(3)
    stage.admin.refuse_configs.clear()
    assert asyncio.run(fix(stage.world, stage.watcher)) == ()
    assert stage.admin.set_ == {}


def test_undo_takes_a_run_back_that_has_left_a_throttle_on_a_dead_broker(stage: Stage) -> None:
    plan = plan_for(stage, [(1, 3), (1, 4)], limits=Limits(moves_in=1, moves_out=1))

    def die(each: RunEvent) -> None:
        if each.kind == "arrived" and each.facts["partition"] == "t-1":
            stage.admin.refuse_configs[ConfigResource("broker", "4")] = ErrorCode.BROKER_NOT_AVAILABLE
            stage.admin.brokers.discard(4)

    stage.hooks.append(die)
    assert stage.execute(plan, THROTTLED).throttles_left == (f"{FOLLOWER_RATE} of broker 4",)
    assert stage.undo(THROTTLED).is_good
    assert stage.replicas()[:2] == [(1, 2), (1, 2)]


def test_doctor_names_a_live_run_of_somebody_else_and_does_not_offer_to_cancel() -> None:
    moving = snapshot(partition(replicas=(0, 1, 2), adding=(2,)))
    (found,) = examine(moving, (), other="alice, with run 7")
    assert (found.kind, found.what) == (FindingKind.OTHER_RUN, "alice, with run 7")
    assert found.evidence == "it is alive; no journal of ours knows 1 move under way: t-0"
    assert "cancel" not in found.remedy
    (found,) = examine(snapshot(partition(), configs={LEADER_REPLICAS: "0:0"}), (), other="alice")
    assert "delete-config" not in found.remedy


def test_fix_elects_preferred_leaders(stage: Stage) -> None:
    stage.admin.leaders[TopicPartition("t", 0)] = 2
    assert [each.kind for each in asyncio.run(diagnose(stage.world))] == [FindingKind.LEADER]
    assert asyncio.run(fix(stage.world, stage.watcher)) == ()
    assert stage.admin.leaders[TopicPartition("t", 0)] == 1
    assert repaired(stage.events) == ("elected broker 1 for t-0",)
