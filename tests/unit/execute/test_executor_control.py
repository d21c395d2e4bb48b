"""A run is paused, tuned, cancelled, left, resumed and undone; and it looks after itself."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest

from restow.client import ConfigResource
from restow.errors import InvalidInput
from restow.execute.journal.runs import predictions_told
from restow.execute.progress.outcome import NO_ANSWER_IN_TIME, Ending, RunOutcome
from restow.execute.repair.doctor import fix
from restow.execute.repair.undo import CannotUndo
from restow.execute.run.control import CANCEL, ControlRequest
from restow.execute.run.options import Guards, RunOptions
from restow.execute.run.start import cancel, execute, resume
from restow.execute.run.steps import rest_of
from restow.execute.throttle.hours import Hours
from restow.execute.throttle.throttles import FOLLOWER_RATE, ThrottleRates
from restow.model import ANY_DIR, Limits, Move, Plan, TopicPartition
from restow.plan.pin import Target, plan_from_targets
from restow.snapshot import capture
from tests.unit.execute.fake_admin import MB
from tests.unit.execute.stage import AWAY, THROTTLED, Stage, control_of, plan_for

if TYPE_CHECKING:
    from restow.client import ClusterView


def test_pause_holds_steps_that_have_not_begun_until_the_run_goes_on(stage: Stage) -> None:
    plan = plan_for(stage, AWAY, limits=Limits(moves_in=1, moves_out=1))
    stage.after(1, lambda: control_of(stage).request(ControlRequest(paused=True)))
    stage.after(100, lambda: control_of(stage).request(ControlRequest(paused=False)))
    assert stage.execute(plan).is_good
    begun = [each.at_ms for each in stage.events if each.kind == "begun"]
    paused = next(each.at_ms for each in stage.events if each.kind == "paused")
    goes_on = next(each.at_ms for each in stage.events if each.kind == "goes on")
    assert not [at for at in begun if paused < at < goes_on]
    assert [at for at in begun if at >= goes_on]


def test_throttle_and_concurrency_change_during_a_run(stage: Stage) -> None:
    stage.after(2, lambda: control_of(stage).request(ControlRequest(throttle="7MB/s", moves_in=1)))
    rates = []
    stage.hooks.append(
        lambda event: (
            rates.append(event.facts["value"])
            if event.kind == "throttle" and event.facts["key"] == FOLLOWER_RATE
            else None
        )
    )
    plan = plan_for(stage, AWAY)
    outcome = stage.execute(plan, THROTTLED)
    assert outcome.is_good
    assert str(5 * MB) in rates
    assert str(7 * MB) in rates
    assert "concurrency" in stage.kinds()
    assert outcome.summary is not None
    assert (outcome.summary.steered, outcome.summary.error) == (("concurrency", "throttle"), None)
    (told,) = predictions_told(plan, stage.world.root)
    assert told.endswith("; an operator changed it meanwhile (concurrency, throttle)")
    assert stage.admin.set_ == {}


def test_cancel_restores_moves_under_way_in_their_order(stage: Stage) -> None:
    plan = plan_for(stage, [(3, 1), (1, 4), (5, 6), (2, 3)])
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="cancel")))
    outcome = stage.execute(plan, THROTTLED)
    assert outcome.ending is Ending.CANCELLED
    assert stage.replicas() == [(1, 2), (1, 2), (2, 1), (2, 3)]
    assert stage.admin.set_ == {}


def test_cancel_leaves_a_move_whose_original_replica_has_died(stage: Stage) -> None:
    def request() -> None:
        stage.admin.brokers.discard(2)
        control_of(stage).request(ControlRequest(stop="cancel"))

    stage.after(2.5, request)
    outcome = stage.execute(plan_for(stage, AWAY), THROTTLED)
    assert outcome.ending is Ending.LEFT
    assert "its original replica on broker 2 is not there" in outcome.reason


def test_cancel_goes_back_to_a_replica_that_was_dead_before(stage: Stage) -> None:
    stage.admin.brokers.discard(2)
    stage.admin.leaders = dict.fromkeys(stage.admin.leaders, 1)
    snapshot = asyncio.run(capture(stage.admin, stage.clock))
    request = Target(partition=TopicPartition("t", 0), replicas=(1, 3))
    plan = plan_from_targets(snapshot, [request], created_ms=0)
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="cancel")))
    assert stage.execute(plan, THROTTLED).ending is Ending.CANCELLED
    assert stage.replicas()[0] == (1, 2)
    assert stage.admin.set_ == {}


def test_run_that_is_left_while_nothing_moves_keeps_no_throttle(stage: Stage) -> None:
    """A guard has paused it, and what was under way has arrived."""
    stage.after(2, lambda: stage.admin.leaders.update({TopicPartition("t", 3): None}))
    stage.after(200, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    one_at_a_time = Limits(moves_in=1, moves_out=1)
    outcome = stage.execute(plan_for(stage, [(1, 3), (1, 3)], limits=one_at_a_time), THROTTLED)
    assert stage.replicas()[:2] == [(1, 3), (1, 2)]
    assert (outcome.ending, outcome.under_way, outcome.throttles_left) == (Ending.LEFT, (), ())
    assert stage.admin.set_ == {}
    assert "nothing is under way" in outcome.next


def test_cancel_works_on_a_run_that_was_left_running(stage: Stage) -> None:
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    assert stage.execute(plan_for(stage, AWAY), THROTTLED).ending is Ending.LEFT
    assert stage.admin.set_
    outcome = asyncio.run(cancel(stage.world, stage.watcher))
    assert outcome is not None
    assert outcome.ending is Ending.CANCELLED
    assert stage.admin.set_ == {}
    assert stage.replicas() == [(1, 2), (1, 2), (2, 1), (2, 3)]


def test_cancel_restores_the_order_of_replicas_of_a_run_that_was_left(stage: Stage) -> None:
    """On its way to [3,2] the partition is [3,2,1]: only the journal knows that it was [1,2]."""
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    assert stage.execute(plan_for(stage, [(3, 2), (2, 4)]), THROTTLED).ending is Ending.LEFT
    outcome = asyncio.run(cancel(stage.world, stage.watcher))
    assert outcome is not None
    assert outcome.ending is Ending.CANCELLED
    assert stage.replicas()[:2] == [(1, 2), (1, 2)]


def test_resume_works_when_all_has_arrived_meanwhile(stage: Stage) -> None:
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    stage.execute(plan_for(stage, [(1, 3)]), THROTTLED)
    asyncio.run(stage.clock.sleep(100))
    assert stage.replicas()[0] == (1, 3)
    outcome = stage.resume(THROTTLED)
    assert outcome.is_good
    assert outcome.summary is not None
    assert (outcome.summary.partitions_moved, outcome.summary.partitions_moved_before) == (0, 1)
    assert stage.admin.set_ == {}


def test_resumed_run_counts_only_bytes_copied_since_it_was_resumed(stage: Stage) -> None:
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    stage.execute(plan_for(stage, [(1, 3)]), THROTTLED)
    there = stage.admin.copies[TopicPartition("t", 0)][3]
    assert 0 < there < 100 * MB
    outcome = stage.resume(THROTTLED)
    assert outcome.is_good
    assert outcome.summary is not None
    assert (outcome.summary.partitions_moved, outcome.summary.partitions_moved_before) == (1, 0)
    assert outcome.summary.copied_bytes == outcome.summary.busiest_bytes == 100 * MB - there
    assert stage.statuses[-1].report.done_bytes == 100 * MB


def test_throttle_is_not_corrected_after_it_was_removed(stage: Stage) -> None:
    stage.admin.add("small", [(1, 2)], size=10 * MB)
    assert stage.execute(plan_for(stage, [(1, 3)], "small"), THROTTLED).is_good
    assert "throttle" in stage.kinds()
    assert "throttle corrected" not in stage.kinds()


def test_undo_restores_everything_newest_first(stage: Stage) -> None:
    before = stage.replicas()
    stage.execute(plan_for(stage, AWAY, limits=Limits(moves_in=1, moves_out=1)), THROTTLED)
    arrived = [str(each.facts["partition"]) for each in stage.events if each.kind == "arrived"]
    stage.events.clear()
    assert stage.undo(THROTTLED).is_good
    assert stage.replicas() == before
    begun = [str(each.facts["partition"]) for each in stage.events if each.kind == "begun"]
    assert begun[0] == arrived[-1]
    assert stage.admin.set_ == {}
    assert stage.admin.leaders[TopicPartition("t", 2)] == 2


def test_undo_applies_to_the_run_that_moved_something_last(stage: Stage) -> None:
    """That run was resumed after the doctor had written a journal of its own for elections."""
    before = stage.replicas()
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="cancel")))
    assert stage.execute(plan_for(stage, [(1, 3)])).ending is Ending.CANCELLED
    asyncio.run(stage.clock.sleep(10))
    stage.admin.leaders[TopicPartition("t", 2)] = 1
    asyncio.run(fix(stage.world, stage.watcher))
    assert len(asyncio.run(stage.world.runs()).all()) == 2
    asyncio.run(stage.clock.sleep(10))
    assert stage.resume().is_good
    assert stage.replicas()[0] == (1, 3)
    assert stage.undo().is_good
    assert stage.replicas() == before


def test_undo_works_on_a_run_in_progress(stage: Stage) -> None:
    before = stage.replicas()
    stage.after(22, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    stage.execute(plan_for(stage, AWAY, limits=Limits(moves_in=1, moves_out=1)), THROTTLED)
    assert stage.replicas() != before
    assert stage.undo(THROTTLED).is_good
    assert stage.replicas() == before
    assert stage.admin.set_ == {}


def test_undo_is_refused_if_an_original_broker_is_dead(stage: Stage) -> None:
    stage.execute(plan_for(stage, [(1, 3)]))
    stage.admin.brokers.discard(2)
    with pytest.raises(CannotUndo, match="t-0 was on broker 2, which is not there"):
        stage.undo()


def test_rate_that_another_tool_sets_meanwhile_is_left_alone(stage: Stage) -> None:
    broker = ConfigResource("broker", "3")
    stage.after(2.5, lambda: stage.admin.set_[broker].update({FOLLOWER_RATE: "77"}))
    assert stage.execute(plan_for(stage, AWAY), THROTTLED).is_good
    assert stage.admin.set_ == {broker: {FOLLOWER_RATE: "77"}}
    assert "left alone" in stage.kinds()


def test_throttle_that_another_tool_removes_during_a_move_is_set_again(stage: Stage) -> None:
    stage.after(2.5, lambda: stage.admin.set_.pop(ConfigResource("topic", "t")))
    seen = []
    stage.after(8, lambda: seen.append(dict(stage.admin.set_.get(ConfigResource("topic", "t"), {}))))
    stage.execute(plan_for(stage, AWAY), RunOptions(throttle=ThrottleRates(rate=5 * MB)))
    assert seen[0]
    assert stage.admin.set_ == {}


def test_run_pauses_on_new_under_replicated_partitions_until_they_recover(stage: Stage) -> None:
    stage.admin.add("other", [(5, 6)])
    name = TopicPartition("other", 0)
    stage.after(2, lambda: stage.admin.lagging.add((name, 6)))
    stage.after(60, lambda: stage.admin.lagging.discard((name, 6)))
    plan = plan_for(stage, AWAY, limits=Limits(moves_in=1, moves_out=1))
    outcome = stage.execute(plan, RunOptions(guards=Guards()))
    assert outcome.is_good
    reason = "1 partition became under-replicated during the run, such as other-0"
    in_spite = "`restow control --go-on` goes on in spite of it"
    assert [each.facts["why"] for each in stage.events if each.kind == "paused"] == [f"{reason}; {in_spite}"]
    assert outcome.summary is not None
    assert outcome.summary.held == reason
    (told,) = predictions_told(plan, stage.world.root)
    assert told.endswith(f" longer; a guard paused it meanwhile ({reason})")


@pytest.mark.parametrize(("planned", "dead", "is_left"), [("/e", (), 1), ("/e", (3,), 0), ("/d", (), 0)])
def test_move_that_has_arrived_is_left_only_for_a_log_dir_that_is_known_to_be_wrong(
    stage: Stage, planned: str, dead: tuple[int, ...], is_left: int
) -> None:
    """A dead broker does not tell where its replica lies, and a run would wait for it in vain."""
    stage.admin.brokers.difference_update(dead)
    move = Move(
        partition=TopicPartition("t", 3),
        before=(2, 1),
        after=(2, 3),
        size_bytes=MB,
        log_dirs=(ANY_DIR, planned),
    )
    plan = Plan(cluster_id="fake", created_ms=0, moves=(move,), limits=Limits())
    snapshot = asyncio.run(capture(stage.admin, stage.clock))
    assert len(rest_of(plan, snapshot).moves) == is_left


def test_resume_takes_an_earlier_run_only_by_its_name(stage: Stage) -> None:
    """Later runs may have moved the same partitions on, and it would move them back."""
    stage.after(3, lambda: control_of(stage).request(ControlRequest(stop=CANCEL)))
    cancelled = stage.execute(plan_for(stage, AWAY), THROTTLED)
    assert cancelled.ending is Ending.CANCELLED
    assert stage.execute(plan_for(stage, [(2, 1)]), THROTTLED).is_good
    with pytest.raises(InvalidInput, match=rf"it is done\. Earlier ones are not \({cancelled.run}\)"):
        stage.resume(THROTTLED)
    assert stage.replicas()[0] == (2, 1)
    again = asyncio.run(resume(stage.world, THROTTLED, stage.watcher, cancelled.run))
    assert again.run == cancelled.run


ONE_BY_ONE = [(1, 3), (1, 3), (2, 3), (2, 3)]
"""Three copies of ten seconds each to one broker."""


def test_run_goes_on_in_spite_of_a_guard_when_an_operator_says_so(stage: Stage) -> None:
    """What was seen then is accepted for good; what comes later pauses the run again."""
    stage.admin.add("other", [(5, 6), (6, 5)])
    seen, unseen = TopicPartition("other", 0), TopicPartition("other", 1)
    stage.after(2, lambda: stage.admin.lagging.add((seen, 6)))
    stage.after(60, lambda: control_of(stage).request(ControlRequest(paused=False)))
    stage.after(62, lambda: stage.admin.lagging.add((unseen, 5)))
    stage.after(90, lambda: control_of(stage).request(ControlRequest(throttle="6MB/s")))
    stage.after(120, lambda: control_of(stage).request(ControlRequest(paused=False)))
    plan = plan_for(stage, ONE_BY_ONE, limits=Limits(moves_in=1, moves_out=1))
    assert stage.execute(plan, RunOptions(throttle=ThrottleRates(rate=5 * MB), guards=Guards())).is_good
    paused = [each for each in stage.events if each.kind == "paused"]
    assert [str(each.facts["why"]).partition(", such as ")[2].partition(";")[0] for each in paused] == [
        "other-0",
        "other-1",
    ]
    goes_on = [each.at_ms for each in stage.events if each.kind == "goes on"]
    begun = [each.at_ms for each in stage.events if each.kind == "begun"]
    for since, until in zip((each.at_ms for each in paused), goes_on, strict=True):
        assert until - since > 25_000  # a change of the throttle is no word to go on
        assert not [at for at in begun if since < at < until]


def test_moves_that_end_beside_a_broker_accepted_as_dead_do_not_pause_the_run_again(stage: Stage) -> None:
    stage.admin.add("other", [(5, 6)])
    stage.after(2, lambda: stage.admin.brokers.discard(2))
    stage.after(60, lambda: control_of(stage).request(ControlRequest(paused=False)))
    plan = plan_for(stage, [(1, 3), (4, 2), (2, 3), (2, 4)], limits=Limits(moves_in=1, moves_out=1))
    stage.execute(plan, RunOptions(throttle=ThrottleRates(rate=5 * MB), guards=Guards(), give_up_s=600))
    goes_on = next(each.at_ms for each in stage.events if each.kind == "goes on")
    assert not [each for each in stage.events if each.kind == "paused" and each.at_ms > goes_on]


def test_slow_answers_that_an_operator_accepts_pause_a_run_again_once_they_were_quick(stage: Stage) -> None:
    answer, takes_s = stage.admin.describe_cluster, [0.0]

    async def slowly() -> ClusterView:
        await stage.clock.sleep(takes_s[0])
        return await answer()

    stage.admin.describe_cluster = slowly  # type: ignore[method-assign]
    for at_s, seconds in ((2, 3.0), (61, 0.0), (72, 3.0)):
        stage.after(at_s, partial(takes_s.__setitem__, 0, seconds))
    stage.after(60, lambda: control_of(stage).request(ControlRequest(paused=False)))
    plan = plan_for(stage, ONE_BY_ONE, limits=Limits(moves_in=1, moves_out=1))
    options = RunOptions(throttle=ThrottleRates(rate=MB), guards=Guards(latency_s=1.0))
    assert stage.execute(plan, options).is_good
    pauses = [kind for kind in stage.kinds() if kind in ("paused", "goes on")]
    assert pauses == ["paused", "goes on", "paused"]


def test_step_waits_while_a_replica_is_out_of_sync(stage: Stage) -> None:
    stage.admin.lagging.add((TopicPartition("t", 0), 1))
    stage.admin.leaders[TopicPartition("t", 0)] = 2
    outcome = stage.execute(plan_for(stage, [(1, 3)]), RunOptions(give_up_s=10))
    assert outcome.ending is Ending.STUCK
    assert "its replica on broker 1 is not in sync" in outcome.reason


def test_run_tells_beside_its_prediction_error_how_long_nothing_could_move(stage: Stage) -> None:
    stage.admin.lagging.add((TopicPartition("t", 0), 1))
    stage.admin.leaders[TopicPartition("t", 0)] = 2
    stage.after(40, stage.admin.lagging.clear)
    plan = plan_for(stage, [(1, 3)])
    outcome = stage.execute(plan, RunOptions(give_up_s=100))
    assert outcome.is_good
    assert outcome.summary is not None
    waited, _, why = outcome.summary.waited.partition(": ")
    assert 38 <= float(waited.removesuffix(" s")) <= 44
    assert why == "t-0: its replica on broker 1 is not in sync, so none may go"
    (told,) = predictions_told(plan, stage.world.root)
    assert told.endswith(f" longer; nothing could move for {waited}: {why}")


def test_run_tells_that_all_its_copies_stood_still(stage: Stage) -> None:
    """Broker 3, to which everything is copied, is dead for 40 s."""
    stage.after(2, lambda: stage.admin.brokers.discard(3))
    stage.after(42, lambda: stage.admin.brokers.add(3))
    outcome = stage.execute(plan_for(stage, [(1, 3)]), RunOptions(throttle=ThrottleRates(rate=MB)))
    assert outcome.is_good
    assert outcome.summary is not None
    waited, _, why = outcome.summary.waited.partition(": ")
    assert 35 <= float(waited.removesuffix(" s")) <= 44
    assert why == "t-0 to 3: dead target: broker 3 is not there"


def test_run_begins_nothing_outside_its_hours(stage: Stage) -> None:
    from datetime import datetime

    now = datetime.fromtimestamp(stage.clock.now_s).astimezone()
    minute = now.hour * 60 + now.minute
    hours = Hours((minute + 5) % 1440, (minute + 100) % 1440)
    assert stage.execute(plan_for(stage, AWAY), RunOptions(hours=hours)).is_good
    begun = next(each.at_ms for each in stage.events if each.kind == "begun")
    assert begun / 1000 - 1_000_000 > 200


def test_automatic_throttle_starts_from_a_measurement_and_says_why(stage: Stage) -> None:
    stage.admin.rate = 40 * MB
    outcome = stage.execute(plan_for(stage, AWAY), RunOptions(auto=True))
    assert outcome.is_good
    decided = [each.facts for each in stage.events if each.kind == "throttle decided"]
    assert decided[0]["rate"] == 10 * MB
    assert decided[1]["why"] == "all of it is used and nobody suffers"
    assert stage.admin.set_ == {}


def test_run_that_is_stopped_during_a_hanging_request_records_its_end(stage: Stage) -> None:
    """The journal has the end, the throttles stay, and the run can be resumed."""

    async def main() -> RunOutcome:
        run = asyncio.create_task(execute(stage.world, plan_for(stage, AWAY), THROTTLED, stage.watcher))
        hanging = asyncio.Event()

        async def hang(*_: object) -> None:
            hanging.set()
            await asyncio.Event().wait()

        stage.after(2, lambda: setattr(stage.admin, "list_partition_reassignments", hang))
        await hanging.wait()
        run.cancel()
        return await run

    outcome = asyncio.run(main())
    assert (outcome.ending, outcome.reason) == (Ending.LEFT, NO_ANSWER_IN_TIME)
    assert stage.admin.set_
    (run,) = asyncio.run(stage.world.runs()).all()
    assert run.ledger.outcome == "left running"
    assert not run.ledger.is_settled
    del stage.admin.list_partition_reassignments
    assert stage.resume(THROTTLED).is_good
    assert stage.admin.set_ == {}
