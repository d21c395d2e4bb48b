"""The judge of plans, as the commands ask it: by the plan alone, or with a snapshot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.model import CheckOutcome, Limits, Move, Plan, TopicPartition
from restow.plan import planning
from restow.plan.judge.waves import BrokenPlan, check_sound, violations_of
from restow.plan.pin import Target, plan_from_targets
from restow.plan.request.request import PlanRequest
from restow.verify.plan_done import verify
from tests.unit.plan.clusters import snapshot

if TYPE_CHECKING:
    from restow.model import Snapshot

NAME = TopicPartition("t", 0)


def here() -> Snapshot:
    return snapshot({"t": [(1, 2), (1, 2), (1, 2)]})


def sound_plan() -> Plan:
    wishes = [Target(partition=TopicPartition("t", number), replicas=(1, 3)) for number in range(3)]
    return plan_from_targets(here(), wishes, created_ms=0)


def crowded_plan() -> Plan:
    """Three replicas go to broker 3 in one wave, and one at a time is allowed."""
    return replace(sound_plan(), limits=Limits(moves_in=1))


def rules(plan: Plan, there: Snapshot | None = None) -> set[str]:
    return {each.rule for each in violations_of(plan, there)}


def test_judge_finds_nothing_in_a_plan_of_ours() -> None:
    assert violations_of(sound_plan()) == ()
    assert violations_of(sound_plan(), here()) == ()
    check_sound(sound_plan(), here())


def test_judge_counts_arrivals_only_where_a_snapshot_shows_them() -> None:
    assert rules(crowded_plan()) == set()
    assert rules(crowded_plan(), here()) == {"moves in"}


def test_judge_counts_what_the_leaders_of_a_snapshot_send_in_a_wave() -> None:
    one_at_a_time = replace(sound_plan(), limits=Limits(moves_out=1))
    assert rules(one_at_a_time) == set()
    assert rules(one_at_a_time, here()) == {"moves out"}


def test_judge_counts_no_arrival_where_a_plan_names_the_present_log_dir() -> None:
    stays = [
        Target(partition=TopicPartition("t", number), replicas=(1, 3 + number), log_dirs=("/d", "/d"))
        for number in range(3)
    ]
    plan = plan_from_targets(here(), stays, created_ms=0, limits=Limits(moves_in=1))
    assert rules(plan) == rules(plan, here()) == set()


def test_judge_judges_the_moves_of_a_plan_without_waves() -> None:
    move = Move(partition=NAME, before=(1, 2), after=(3, 3), size_bytes=1, log_dirs=("/d",))
    assert rules(Plan(cluster_id="c", created_ms=0, moves=(move,))) == {"distinct", "log dirs"}


def test_judge_names_a_move_that_its_waves_do_not_bring_home() -> None:
    plan = sound_plan()
    with pytest.raises(BrokenPlan, match=r"t-0: arrives \(ends as \(1, 2\)\)"):
        check_sound(replace(plan, waves=(plan.waves[0][1:],)))


def test_planning_refuses_a_plan_that_the_judge_finds_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("restow.plan.propose.propose", lambda *_, **__: crowded_plan())
    with pytest.raises(BrokenPlan, match="wave 1: moves in"):
        planning.make_plan(here(), None, PlanRequest(drain=frozenset({2})))


def test_verify_has_a_check_by_the_judge() -> None:
    plan = sound_plan()
    broken = replace(plan, waves=(plan.waves[0][1:],))
    for judged, outcome in ((plan, CheckOutcome.HOLDS), (broken, CheckOutcome.FAILS)):
        checks = {check.name: check.outcome for check in verify(judged, here()).checks}
        assert checks["plan sound"] is outcome
