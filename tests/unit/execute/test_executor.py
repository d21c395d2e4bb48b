"""The executor against a cluster of dictionaries: order, limits, throttles, and failures."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.client import ConfigResource, Unreachable
from restow.execute.progress.outcome import Ending
from restow.execute.run.examine import examine
from restow.execute.run.lock import ClusterLocked, Holder, cluster_lock
from restow.execute.run.options import RunOptions
from restow.execute.run.start import NotNow
from restow.execute.throttle.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    ThrottleRates,
)
from restow.model import CheckOutcome, Limits, Plan, ReplicaAssignment, TopicPartition
from restow.plan.judge.waves import BrokenPlan
from restow.plan.schedule.schedule import steps_of
from restow.runtime.disk import SystemDisk
from restow.wire.error_codes import ErrorCode
from tests.unit.execute.fake_admin import MB
from tests.unit.execute.stage import AWAY, THROTTLED, Stage, plan_for

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from restow.client import BrokerError, Config
    from restow.execute.progress.status import RunEvent


def test_run_completes_and_leaves_nothing_behind(stage: Stage) -> None:
    outcome = stage.execute(plan_for(stage, AWAY), THROTTLED)
    assert outcome.ending is Ending.DONE
    assert outcome.is_good
    assert stage.replicas() == AWAY
    assert stage.admin.set_ == {}
    assert stage.admin.leaders[TopicPartition("t", 2)] == 5
    last = stage.statuses[-1].report
    assert last.done_bytes == last.to_do_bytes == 400 * MB


def test_run_throttles_exactly_the_moving_replicas_while_they_move(stage: Stage) -> None:
    stage.admin.set_[ConfigResource("topic", "t")] = {LEADER_REPLICAS: "9:9"}
    seen: list[dict[ConfigResource, dict[str, str]]] = []
    stage.hooks.append(
        lambda event: (
            seen.append({k: dict(v) for k, v in stage.admin.set_.items()}) if event.kind == "begun" else None
        )
    )
    stage.execute(plan_for(stage, [(1, 3), (1, 2), (2, 1), (2, 3)]), THROTTLED)
    assert seen == [
        {
            ConfigResource("topic", "t"): {LEADER_REPLICAS: "0:1,0:2,9:9", FOLLOWER_REPLICAS: "0:3"},
            ConfigResource("broker", "1"): {LEADER_RATE: str(5 * MB)},
            ConfigResource("broker", "2"): {LEADER_RATE: str(5 * MB)},
            ConfigResource("broker", "3"): {FOLLOWER_RATE: str(5 * MB)},
        }
    ]
    assert stage.admin.set_ == {ConfigResource("topic", "t"): {LEADER_REPLICAS: "9:9"}}


def test_run_keeps_its_limits(stage: Stage) -> None:
    stage.admin.add("many", [(1, 2)] * 12)
    stage.execute(plan_for(stage, [(1, 3)] * 12, "many", Limits(moves_in=2)))
    assert stage.admin.most_moving == 2
    assert stage.replicas("many") == [(1, 3)] * 12


def test_run_moves_three_replicas_in_steps(stage: Stage) -> None:
    outcome = stage.execute(plan_for(stage, [(4, 5)]))
    assert outcome.is_good
    sent = [what for kind, what in stage.admin.calls if kind == "reassign"]
    assert sent == [{TopicPartition("t", 0): (1, 4)}, {TopicPartition("t", 0): (4, 5)}]


def test_run_moves_special_topics_last_and_one_by_one(stage: Stage) -> None:
    stage.admin.add("__consumer_offsets", [(1, 2)] * 2, size=MB)
    special = plan_for(stage, [(1, 3)] * 2, "__consumer_offsets").moves
    plan = plan_for(stage, AWAY)
    both = Plan(cluster_id="fake", created_ms=0, moves=(*special, *plan.moves))
    assert stage.execute(both).is_good
    began = [str(each.facts["partition"]) for each in stage.events if each.kind == "begun"]
    assert began[-2:] == ["__consumer_offsets-0", "__consumer_offsets-1"]


def test_run_moves_partitions_of_special_topics_one_at_a_time(stage: Stage) -> None:
    stage.admin.add("__consumer_offsets", [(1, 2)] * 4, size=MB)
    assert stage.execute(plan_for(stage, [(1, 3)] * 4, "__consumer_offsets")).is_good
    assert stage.admin.most_moving == 1


def test_special_topics_do_not_wait_for_partitions_that_cannot_move(stage: Stage) -> None:
    stage.admin.add("__consumer_offsets", [(1, 2)] * 2, size=MB)
    special = plan_for(stage, [(1, 3)] * 2, "__consumer_offsets").moves
    plan = plan_for(stage, AWAY)
    both = Plan(cluster_id="fake", created_ms=0, moves=(*special, *plan.moves))
    stage.hooks.append(lambda _: stage.admin.brokers.discard(4))
    outcome = stage.execute(both, RunOptions(give_up_s=30))
    stage.hooks.clear()
    assert (outcome.ending, outcome.reason) == (Ending.STUCK, "t-1: broker 4 is not there")
    assert stage.replicas("__consumer_offsets") == [(1, 3)] * 2
    stage.admin.brokers.add(4)
    assert stage.resume().is_good
    assert stage.replicas() == AWAY


def test_plan_that_the_judge_finds_broken_is_refused(stage: Stage) -> None:
    plan = plan_for(stage, AWAY)
    halfway = replace(plan.moves[0], after=(1, 2, 3))
    broken = replace(plan, waves=(steps_of(halfway, 1),))
    with pytest.raises(BrokenPlan, match=r"t-0: arrives"):
        stage.execute(broken)
    checked = asyncio.run(examine(stage.world, broken))
    assert [each.name for each in checked.checks if each.outcome is CheckOutcome.FAILS] == ["plan sound"]
    assert stage.admin.calls == []


def test_run_is_refused_on_another_cluster_and_after_drift(stage: Stage) -> None:
    plan = plan_for(stage, AWAY)
    with pytest.raises(NotNow, match="is for the cluster 'other'"):
        stage.execute(Plan(cluster_id="other", created_ms=0, moves=plan.moves))
    stage.admin.assignments[TopicPartition("t", 0)] = ReplicaAssignment((2, 1))
    with pytest.raises(NotNow, match=r"t-0 has other replicas: \[2, 1\] instead of \[1, 2\]"):
        stage.execute(plan)
    assert stage.admin.calls == []


def test_second_run_is_refused_with_the_holder_of_the_lock(stage: Stage, tmp_path: Path) -> None:
    folder = f"{tmp_path}/runs/fake"
    holder = Holder(pid=7, host="desk", user="ada", run="r1")
    with (
        cluster_lock(SystemDisk(), folder, holder),
        pytest.raises(ClusterLocked, match=r"ada is at it: run r1"),
    ):
        stage.execute(plan_for(stage, AWAY))


def test_run_drops_only_a_topic_that_is_deleted_meanwhile(stage: Stage) -> None:
    stage.admin.add("gone", [(1, 2)])
    moves = (*plan_for(stage, AWAY).moves, *plan_for(stage, [(1, 3)], "gone").moves)
    stage.after(3, lambda: stage.admin.remove("gone"))
    outcome = stage.execute(Plan(cluster_id="fake", created_ms=0, moves=moves), THROTTLED)
    assert outcome.ending is Ending.IN_PART
    assert outcome.dropped == {TopicPartition("gone", 0): "its topic is gone"}
    assert stage.replicas() == AWAY
    assert stage.admin.set_ == {}


def test_run_drops_a_move_that_another_tool_cancels(stage: Stage) -> None:
    stage.after(3, lambda: stage.admin.cancel(TopicPartition("t", 0)))
    outcome = stage.execute(plan_for(stage, AWAY), THROTTLED)
    assert outcome.ending is Ending.IN_PART
    assert "somebody else has cancelled it" in outcome.dropped[TopicPartition("t", 0)]
    assert stage.replicas() == [(1, 2), *AWAY[1:]]
    assert stage.admin.set_ == {}


def test_run_retries_a_refused_step_and_then_drops_it(stage: Stage) -> None:
    stage.admin.refuse[TopicPartition("t", 0)] = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    outcome = stage.execute(plan_for(stage, AWAY), THROTTLED)
    assert outcome.ending is Ending.IN_PART
    assert stage.kinds().count("refused") == 4
    assert list(outcome.dropped) == [TopicPartition("t", 0)]
    assert stage.admin.set_ == {}


def test_dead_target_delays_only_its_own_moves_and_is_named(stage: Stage) -> None:
    stage.after(3, lambda: stage.admin.brokers.discard(3))
    stage.after(60, lambda: stage.admin.brokers.add(3))
    outcome = stage.execute(plan_for(stage, AWAY), THROTTLED)
    assert outcome.is_good
    assert any(each.cause.value == "dead target" for seen in stage.statuses for each in seen.report.still)
    assert stage.admin.set_ == {}


def test_run_ends_with_the_name_of_a_target_that_stays_away(stage: Stage) -> None:
    plan = plan_for(stage, AWAY)
    stage.hooks.append(lambda _: stage.admin.brokers.discard(4))
    outcome = stage.execute(plan, RunOptions(throttle=ThrottleRates(rate=MB), give_up_s=30))
    stage.hooks.clear()
    assert outcome.ending is Ending.STUCK
    assert outcome.reason == "t-1: broker 4 is not there"
    assert stage.admin.set_ == {}
    stage.admin.brokers.add(4)
    assert stage.resume().is_good
    assert stage.replicas() == AWAY


def test_run_elects_leaders_again_that_a_broker_has_lost_meanwhile(stage: Stage) -> None:
    """t-2 arrives first and is led by broker 5, which then fails for a while; t-0 arrives much later."""
    t2 = TopicPartition("t", 2)
    stage.admin.sizes[t2] = MB
    stage.admin.copies[t2] = {2: MB, 1: MB}
    elected: list[int] = []

    def see(event: RunEvent) -> None:
        if event.kind == "elected" and event.facts["partition"] == "t-2":
            elected.append(stage.clock.now_ms())
            stage.after(1, lambda: stage.admin.leaders.__setitem__(t2, 6))

    stage.hooks.append(see)
    assert stage.execute(plan_for(stage, AWAY), replace(THROTTLED, survey_every_s=0.1)).ending is Ending.DONE
    assert stage.admin.leaders[t2] == 5
    assert len(elected) == 2


def test_step_waits_for_a_broker_that_does_not_answer_its_throttle(stage: Stage) -> None:
    """Broker 5 is still in the metadata. The other moves go on, and broker 5 is not asked for configs."""
    stage.admin.silent = {5}
    stage.after(60, stage.admin.silent.clear)
    outcome = stage.execute(plan_for(stage, AWAY), THROTTLED)
    assert outcome.ending is Ending.DONE
    begun = {str(each.facts["partition"]): each.at_ms for each in stage.events if each.kind == "begun"}
    assert begun["t-2"] - begun["t-0"] >= 50_000
    waits = {each.waits for each in stage.statuses if each.waits}
    assert any("broker 5 does not answer, so its throttle cannot be set" in each for each in waits)
    set_ = [each for each in stage.events if each.kind == "throttle" and each.facts["of"] == "broker 5"]
    assert set_[0].at_ms - begun["t-0"] >= 50_000


def test_step_without_throttle_does_not_wait_for_a_broker_that_does_not_answer_us(stage: Stage) -> None:
    stage.admin.silent = {5}
    assert stage.execute(plan_for(stage, AWAY)).ending is Ending.DONE


def test_run_begins_nothing_if_a_throttle_cannot_be_set(stage: Stage) -> None:
    stage.admin.refuse_configs[ConfigResource("topic", "t")] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    outcome = stage.execute(plan_for(stage, AWAY), THROTTLED)
    assert outcome.ending is Ending.IN_PART
    assert not any(kind == "reassign" for kind, _ in stage.admin.calls)
    assert {ConfigResource("topic", "t")}.isdisjoint(stage.admin.set_)
    assert not any(of.of == "broker" for of in stage.admin.set_)


def test_run_waits_while_the_cluster_is_unreachable_for_a_while(stage: Stage) -> None:
    def fail() -> None:
        stage.admin.down = True

    def heal() -> None:
        stage.admin.down = False

    stage.after(3, fail)
    stage.after(40, heal)
    assert stage.execute(plan_for(stage, AWAY), THROTTLED).is_good
    assert "out of reach" in stage.kinds()


def test_run_begins_a_step_later_if_it_could_not_be_throttled_for_a_moment(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, silent = stage.admin.describe_configs, ["once"]

    async def configs(
        of: Iterable[ConfigResource], keys: Collection[str] | None = None, patience_s: float | None = None
    ) -> Mapping[ConfigResource, Mapping[str, Config] | BrokerError]:
        if "run" in stage.kinds() and silent:
            silent.pop()
            raise Unreachable("nobody answers")
        return await ask(of, keys, patience_s)

    monkeypatch.setattr(stage.admin, "describe_configs", configs)
    assert stage.execute(plan_for(stage, AWAY), THROTTLED).is_good
    assert stage.kinds().count("out of reach") == 1
    assert stage.replicas() == AWAY


def test_run_ends_if_the_cluster_stays_unreachable_and_can_be_resumed(stage: Stage) -> None:
    def fail() -> None:
        stage.admin.down = True

    stage.after(3, fail)
    outcome = stage.execute(plan_for(stage, AWAY), THROTTLED)
    assert outcome.ending is Ending.LOST
    stage.admin.down = False
    assert stage.admin.set_
    with pytest.raises(NotNow, match="has not been brought to its end"):
        stage.execute(plan_for(stage, AWAY))
    assert stage.resume(THROTTLED).is_good
    assert stage.admin.set_ == {}
    assert stage.replicas() == AWAY
