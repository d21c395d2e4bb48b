"""Moves under way that cannot go on: they hold up neither other moves nor the end of the run."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.client import BrokerError, BrokerLogDirs
from restow.execute.progress.outcome import Ending
from restow.execute.progress.stuck import Stall
from restow.execute.repair.doctor import FindingKind, diagnose
from restow.execute.run.control import ControlRequest
from restow.execute.run.options import Guards, RunOptions
from restow.execute.run.start import cancel
from restow.execute.throttle.throttles import ThrottleRates
from restow.model import Limits, LogDir, Plan, TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.unit.execute.fake_admin import MB
from tests.unit.execute.stage import Stage, control_of, plan_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TWO = Limits(moves_in=2, moves_out=2)
PATIENT = RunOptions(
    throttle=ThrottleRates(rate=5 * MB), guards=Guards(under_replicated=None, offline=None), give_up_s=60
)
TO_3, TO_4 = [(1, 3)] * 2, [(1, 4)] * 4
BLOCKED = tuple(TopicPartition("many", number) for number in (0, 1))


@pytest.fixture(autouse=True)
def ended_in_time(stage: Stage) -> None:
    """Have a run that does not end by itself leave its moves running, so that a test fails and ends."""
    stage.after(400, lambda: control_of(stage).request(ControlRequest(stop="leave")))


def many(stage: Stage) -> Plan:
    """Return a plan in which two moves to broker 3 go first, and take all places of their leader."""
    stage.admin.add("many", [(1, 2)] * 6)
    return plan_for(stage, [*TO_3, *TO_4], "many", TWO)


def kill(stage: Stage, broker: int) -> None:
    stage.admin.brokers.discard(broker)


def throttled(stage: Stage) -> set[str]:
    """Return the replicas whose throttles are on, as `topic:partition:broker`."""
    return {
        f"{owner.name}:{entry}"
        for owner, configs in stage.admin.set_.items()
        for value in configs.values()
        if owner.of == "topic"
        for entry in value.split(",")
    }


def test_moves_to_a_dead_broker_leave_their_places_to_others(stage: Stage) -> None:
    plan = many(stage)
    stage.after(3, lambda: kill(stage, 3))
    outcome = stage.execute(plan, PATIENT)
    assert stage.replicas("many")[2:] == TO_4
    assert (outcome.ending, outcome.reason) == (
        Ending.STUCK,
        "many-0 to 3: dead target: broker 3 is not there",
    )
    assert outcome.under_way == BLOCKED
    assert throttled(stage) == {f"many:{at}:{broker}" for at in (0, 1) for broker in (1, 2, 3)}
    assert outcome.throttles_left
    assert outcome.next == (
        "2 moves left under way, throttled. Remove what hinders it, then `restow resume`; or `restow cancel` "
        "to take back what is under way; or `restow undo` for all of it"
    )
    assert outcome.document()["under_way"] == ["many-0", "many-1"]
    (found,) = [each for each in asyncio.run(diagnose(stage.world)) if each.kind is FindingKind.OPEN_RUN]
    assert found.evidence.startswith("it stopped: stuck; 2 moves under way, ")


def test_run_that_ended_for_a_dead_target_is_resumed_when_the_broker_is_back(stage: Stage) -> None:
    stage.after(3, lambda: kill(stage, 3))
    stage.execute(many(stage), PATIENT)
    stage.admin.brokers.add(3)
    assert stage.resume(PATIENT).is_good
    assert stage.replicas("many") == [*TO_3, *TO_4]
    assert stage.admin.set_ == {}


def test_run_that_ended_for_a_dead_target_can_be_resumed_while_it_is_dead(stage: Stage) -> None:
    stage.after(3, lambda: kill(stage, 3))
    stage.execute(many(stage), PATIENT)
    outcome = stage.resume(PATIENT)
    assert (outcome.ending, outcome.under_way) == (Ending.STUCK, BLOCKED)


@pytest.mark.parametrize("how", ["cancel", "undo"])
def test_run_that_ended_for_a_dead_target_is_taken_back_without_the_broker(stage: Stage, how: str) -> None:
    stage.after(3, lambda: kill(stage, 3))
    stage.execute(many(stage), PATIENT)
    if how == "undo":
        assert stage.undo(PATIENT).ending is Ending.DONE
        assert stage.replicas("many") == [(1, 2)] * 6
    else:
        outcome = asyncio.run(cancel(stage.world, stage.watcher))
        assert outcome is not None
        assert outcome.ending is Ending.CANCELLED
        assert stage.replicas("many") == [(1, 2), (1, 2), *TO_4]
    on_broker_3 = {owner.name for owner in stage.admin.set_} - {"3"}
    assert on_broker_3 == set(), "only the settings of the dead broker wait for it"


def test_moves_that_go_on_count_again_and_nothing_begins_before_there_is_room(stage: Stage) -> None:
    """Broker 3 is back while others use its moves' places: four moves copy, and two may."""
    plan = many(stage)
    under_way: Counter[bool] = Counter()
    at_begin: list[int] = []

    def copying() -> int:
        return sum(
            each.is_moving and not set(each.adding) - stage.admin.brokers
            for each in stage.admin.assignments.values()
        )

    stage.hooks.append(lambda event: at_begin.append(copying()) if event.kind == "begun" else None)
    stage.clock.on_tick.append(lambda _: under_way.update([copying() > 2]))
    stage.after(3, lambda: kill(stage, 3))
    stage.after(8, lambda: stage.admin.brokers.add(3))
    assert stage.execute(plan, PATIENT).is_good
    told = [(each.kind, each.facts["partition"]) for each in stage.events if "blocked" in each.kind]
    assert told == [
        (kind, name) for kind in ("blocked", "no longer blocked") for name in ("many-0", "many-1")
    ]
    assert under_way[True], "more copy at once than the limits allow, because nobody can halt a move"
    assert max(at_begin) <= 1, "nothing begins beside two or more that copy"
    assert stage.admin.set_ == {}


def test_run_gives_up_when_all_that_is_under_way_has_lost_its_leader(stage: Stage) -> None:
    stage.admin.add("one", [(5,), (5,)])
    stage.admin.add("more", [(1, 2)] * 2)
    one = plan_for(stage, [(6,), (6,)], "one", TWO)
    more = plan_for(stage, [(1, 6)] * 2, "more", TWO)

    def lose() -> None:
        kill(stage, 5)
        for move in one.moves:
            stage.admin.leaders[move.partition] = None

    stage.after(3, lose)
    outcome = stage.execute(replace(one, moves=(*one.moves, *more.moves)), PATIENT)
    assert stage.replicas("more") == [(1, 6)] * 2
    assert outcome.ending is Ending.STUCK
    assert outcome.reason == "one-0 to 6: leader gone: the partition has no leader to copy from"
    assert "`restow undo` would be refused now: one-0 cannot be taken back: none of its" in outcome.next


def fail_dir(stage: Stage, broker: int) -> None:
    """Let the only log dir of a broker fail, as Kafka tells it: with none of its replicas."""
    describe = stage.admin.describe_log_dirs

    async def failed(
        brokers: Iterable[int], patience_s: float | None = None
    ) -> Mapping[int, BrokerLogDirs | BrokerError]:
        gone = BrokerLogDirs(log_dirs=(LogDir(path="/d", failed=True),), replicas=())
        return {**await describe(brokers, patience_s), broker: gone}

    stage.admin.describe_log_dirs = failed  # type: ignore[method-assign]


def test_moves_into_a_failed_log_dir_leave_their_places_to_others(stage: Stage) -> None:
    plan = many(stage)

    def fail() -> None:
        fail_dir(stage, 3)
        for name in BLOCKED:
            stage.admin.copies[name].pop(3)
            stage.admin.sizes[name] = 10**15

    stage.after(3, fail)
    outcome = stage.execute(plan, PATIENT)
    assert stage.replicas("many")[2:] == TO_4
    assert (outcome.ending, outcome.reason) == (
        Ending.STUCK,
        "many-0 to 3: full dir: broker 3: /d has failed",
    )


@pytest.mark.parametrize(
    ("silent", "why"),
    [
        (set(), "many-0 to 3: no progress: no byte in "),
        ({3}, "many-0 to 3: no progress: broker 3 does not answer, no byte was seen in "),
    ],
)
def test_run_gives_up_when_no_byte_comes_for_long_and_nobody_knows_why(
    stage: Stage, silent: set[int], why: str
) -> None:
    """Moves of a broker that hangs may go on at any moment: they keep their places until then."""
    plan = many(stage)

    def hang() -> None:
        stage.admin.rate = 0.0
        stage.admin.silent |= silent

    stage.after(3, hang)
    outcome = stage.execute(plan, PATIENT)
    assert outcome.ending is Ending.STUCK
    assert outcome.reason.startswith(why)
    assert outcome.under_way == BLOCKED
    assert len([each for each in stage.events if each.kind == "begun"]) == 2
    stage.admin.rate, stage.admin.silent = 10 * MB, set()
    assert stage.resume(PATIENT).is_good


def test_run_does_not_give_up_while_a_broker_that_tells_no_sizes_may_copy(stage: Stage) -> None:
    """Without permission to describe log dirs no byte is seen; that says nothing of the copies."""
    plan = many(stage)
    stage.admin.rate = MB
    stage.hooks.append(lambda event: hide(stage) if event.kind == "begun" else None)
    assert stage.execute(plan, PATIENT).is_good


def hide(stage: Stage) -> None:
    async def refused(
        brokers: Iterable[int], patience_s: float | None = None
    ) -> Mapping[int, BrokerLogDirs | BrokerError]:
        return dict.fromkeys(brokers, BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))

    stage.admin.describe_log_dirs = refused  # type: ignore[method-assign]


def test_run_does_not_give_up_while_a_copy_is_slower_than_its_patience(stage: Stage) -> None:
    stage.admin.rate = 0.5 * MB
    assert stage.execute(plan_for(stage, [(1, 3)]), PATIENT).is_good


def test_special_topics_do_not_wait_for_a_move_under_way_that_cannot_go_on(stage: Stage) -> None:
    stage.admin.add("__consumer_offsets", [(1, 2)] * 2, size=MB)
    special = plan_for(stage, [(1, 4)] * 2, "__consumer_offsets").moves
    plan = plan_for(stage, [(1, 3)])
    stage.after(3, lambda: kill(stage, 3))
    outcome = stage.execute(replace(plan, moves=(*plan.moves, *special)), PATIENT)
    assert outcome.under_way == (TopicPartition("t", 0),)
    assert stage.replicas("__consumer_offsets") == [(1, 4)] * 2
    assert stage.admin.most_moving == 2, "the one that cannot go on, and one special partition at a time"


def test_time_left_is_unknown_while_some_moves_cannot_go_on(stage: Stage) -> None:
    stage.after(3, lambda: kill(stage, 3))
    stage.after(30, lambda: stage.admin.brokers.add(3))
    plan = plan_for(stage, [(1, 3), (1, 4)])
    stage.admin.rate = MB
    assert stage.execute(plan, PATIENT).is_good
    blocked = [each for each in stage.statuses if each.report.still]
    assert {each.report.eta_s for each in blocked} == {None}
    assert {each.report.still[0].stall for each in blocked} == {Stall.BLOCKED}
    assert stage.statuses[-2].report.eta_s is not None
