"""A run marks itself on the cluster, and gives way to another run with the mark."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from restow.client import BrokerError, ConfigResource, GroupLockHolder
from restow.execute.progress.outcome import Ending
from restow.execute.repair.doctor import diagnose, fix
from restow.execute.run.examine import examine
from restow.execute.run.lock import GROUP, ClusterLocked, who_is
from restow.execute.run.start import cancel, resume
from restow.model import Check, CheckOutcome, Limits, Promise, ReplicaAssignment, TopicPartition
from restow.verify import blocking
from restow.wire.error_codes import ErrorCode
from tests.unit.execute.stage import AWAY, THROTTLED, Stage, plan_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ALICE = {"user": "alice", "host": "ops-2", "pid": 42, "run": "20261116-070000", "since_ms": 1_794_812_400_000}
SAYS_ALICE = "alice, with run 20261116-070000, process 42 on ops-2, since 2026-11-16 07:00:00 UTC"


def member(said: object = ALICE) -> GroupLockHolder:
    metadata = said if isinstance(said, bytes) else json.dumps(said).encode()
    return GroupLockHolder(member_id="m", instance_id="i", host="/10.0.0.7", said=metadata)


@dataclass
class FakeGroupLock:
    """A seat that another member holds, or takes, or that cannot be had."""

    there: GroupLockHolder | None = None
    first: GroupLockHolder | BrokerError | None = None
    lost_to: GroupLockHolder | None = None
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)
    held: bool = False

    def __call__(self, group: str, instance_id: str, said: bytes) -> FakeGroupLock:
        self.asked.append((group, instance_id, said))
        return self

    async def holder(self) -> GroupLockHolder | None:
        return self.there

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        self.held = True
        try:
            yield
        finally:
            self.held = False

    async def taken(self) -> GroupLockHolder | None:
        if isinstance(self.first, BrokerError):
            raise self.first
        return self.first


def seated(stage: Stage, group_lock: FakeGroupLock) -> Stage:
    stage.world = replace(stage.world, group_locks=group_lock)
    return stage


@pytest.mark.parametrize("group_lock", [FakeGroupLock(there=member()), FakeGroupLock(first=member())])
def test_run_is_refused_with_the_name_of_the_active_run(stage: Stage, group_lock: FakeGroupLock) -> None:
    """Either the other run was there before, or both joined at the same moment."""
    done = plan_for(stage, [(1, 3)])
    assert stage.execute(done).is_good
    calls = len(stage.admin.calls)
    seated(stage, group_lock)
    for attempt in (lambda: stage.execute(plan_for(stage, AWAY)), stage.undo):
        with pytest.raises(ClusterLocked, match=f"somebody else carries out a run .*: {SAYS_ALICE}"):
            attempt()
    name = name_of(stage)
    for work in (
        resume(stage.world, THROTTLED, stage.watcher, name),
        cancel(stage.world, stage.watcher, name),
        fix(stage.world, stage.watcher),
    ):
        with pytest.raises(ClusterLocked, match=SAYS_ALICE):
            asyncio.run(work)
    assert len(stage.admin.calls) == calls
    assert len(asyncio.run(stage.world.runs()).names()) == 1
    assert not group_lock.held


def name_of(stage: Stage) -> str:
    return asyncio.run(stage.world.runs()).names()[0]


def test_check_names_the_run_on_another_machine(stage: Stage) -> None:
    seated(stage, FakeGroupLock(there=member()))
    verdict = asyncio.run(examine(stage.world, plan_for(stage, AWAY)))
    assert f"somebody else carries out a run: {SAYS_ALICE}" in [each.evidence for each in verdict.checks]


def test_doctor_names_the_run_on_another_machine(stage: Stage) -> None:
    stage.admin.assignments[TopicPartition("t", 0)] = ReplicaAssignment((1, 2)).reassign_to((1, 3))
    seated(stage, FakeGroupLock(there=member()))
    (found,) = asyncio.run(diagnose(stage.world))
    assert found.what == SAYS_ALICE


def test_run_warns_and_continues_if_it_may_not_mark_itself(stage: Stage) -> None:
    seated(stage, FakeGroupLock(first=BrokerError(ErrorCode.GROUP_AUTHORIZATION_FAILED)))
    assert stage.execute(plan_for(stage, AWAY), THROTTLED).is_good
    (warned,) = (each for each in stage.events if each.kind == "warned")
    assert "needs READ on the group __restow_run. Nothing keeps" in str(warned.facts["why"])


def test_mark_names_the_run_and_is_gone_after_it(stage: Stage) -> None:
    group_lock = FakeGroupLock()
    seated(stage, group_lock)
    held = []
    stage.hooks.append(lambda _: held.append(group_lock.held))
    assert stage.execute(plan_for(stage, [(1, 3)])).is_good
    (group, instance, said), *_ = group_lock.asked
    assert group == GROUP
    assert json.loads(said)["run"] == name_of(stage)
    assert all(held)
    assert not group_lock.held
    stage.undo()
    assert {asked[1] for asked in group_lock.asked} == {instance}, (
        "the same folder is the same to the cluster"
    )


def test_other_folder_is_another_member(stage: Stage, tmp_path: Path) -> None:
    group_lock = FakeGroupLock()
    seated(stage, group_lock)
    stage.execute(plan_for(stage, [(1, 3)]))
    stage.world = replace(stage.world, root=str(tmp_path / "another"))
    stage.execute(plan_for(stage, [(1, 2)]))
    assert len({asked[1] for asked in group_lock.asked}) == 2


def test_run_that_lost_its_mark_begins_nothing_more_and_ends_in_order(stage: Stage) -> None:
    group_lock = FakeGroupLock()
    seated(stage, group_lock)
    stage.after(3, lambda: setattr(group_lock, "lost_to", member()))
    outcome = stage.execute(plan_for(stage, AWAY, limits=Limits(moves_in=1, moves_out=1)), THROTTLED)
    assert outcome.ending is Ending.FAILED
    assert outcome.reason == f"somebody else carries out a run on this cluster now: {SAYS_ALICE}"
    begun = [each for each in stage.events if each.kind == "begun"]
    assert 0 < len(begun) < 4
    assert len([each for each in stage.events if each.kind == "arrived"]) == len(begun)
    assert stage.statuses[-1].paused == f"the cluster was lost to {SAYS_ALICE}"
    assert stage.admin.set_ == {}
    group_lock.lost_to = None
    assert stage.resume().is_good
    assert stage.replicas() == AWAY


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"null",
        {"user": "a"},
        {**ALICE, "pid": "x"},
        {**ALICE, "since_ms": 1e300},
        {**ALICE, "since_ms": 10**30},
        {**ALICE, "user": None},
    ],
)
def test_member_with_invalid_data_is_named_by_its_address(said: object) -> None:
    assert (
        who_is(member(said))
        == "a member of the group __restow_run from /10.0.0.7 that does not say who it is"
    )


def test_text_of_a_member_is_safe_for_a_terminal() -> None:
    told = who_is(member({**ALICE, "user": "\x1b[2J" + "x" * 10_000}))
    assert "\x1b" not in told
    assert len(told) < 300


def offsets_topic_check(stage: Stage, replication_factor: int, *drained: int) -> Check:
    """Return what `execute --check` says of the offsets topic, for a plan that drains these brokers."""
    settings = {"num.partitions": 2, "replication.factor": replication_factor, "segment.bytes": 100}
    for broker in stage.admin.brokers:
        stage.admin.set_[ConfigResource("broker", str(broker))] = {
            f"offsets.topic.{name}": str(value) for name, value in settings.items()
        }
    promises = (Promise(kind="drained", brokers=drained),) if drained else ()
    plan = replace(plan_for(stage, [(1, 3)]), promises=promises)
    verdict = asyncio.run(examine(seated(stage, FakeGroupLock()).world, plan))
    assert not blocking(verdict)
    return next(each for each in verdict.checks if each.name == "offsets topic")


def test_check_says_that_the_mark_creates_the_offsets_topic_on_a_drained_broker(stage: Stage) -> None:
    check = offsets_topic_check(stage, 6, 2)
    assert check.outcome is CheckOutcome.UNKNOWN
    assert "the mark of the run, group __restow_run, makes Kafka create __consumer_offsets" in check.evidence
    assert "also on broker 2: its partitions get 6 replicas each, and the cluster has 5 other brokers" in (
        check.evidence
    )
    assert "broker 2 will hold partitions of that topic" in check.advice


def test_check_says_that_the_run_creates_the_offsets_topic_on_other_brokers(stage: Stage) -> None:
    check = offsets_topic_check(stage, 3, 2)
    assert check.outcome is CheckOutcome.HOLDS
    assert check.evidence == "the run creates __consumer_offsets, and not on broker 2"


@pytest.mark.parametrize("exists", [True, False])
def test_check_of_the_offsets_topic_holds_if_the_mark_creates_nothing(stage: Stage, exists: bool) -> None:
    """The topic exists already, or the plan empties no broker."""
    if exists:
        stage.admin.add("__consumer_offsets", [(1, 2)])
    check = offsets_topic_check(stage, 6, *([2] if exists else []))
    assert check.outcome is CheckOutcome.HOLDS
