"""Rehearsals: the executor in virtual time, its schedule from event to event, and what both tell."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import pytest

import restow
from restow.cli import run
from restow.errors import InvalidInput, RestowError
from restow.execute.predict.by_events import run_events
from restow.execute.run.options import run_options
from restow.model import Copy, Limits, Plan, Snapshot, TopicPartition
from restow.model.load import BYTES_IN, LoadModel, Resource
from restow.plan.flow.constants import USUAL, Calibration
from restow.plan.flow.loads import ClientLoads
from restow.plan.pin import Target, plan_from_targets
from restow.plan.schedule.admission import Admission
from restow.plan.schedule.schedule import Schedule
from restow.rehearse.by_executor import run_executor
from restow.rehearse.rehearsing import CannotRehearse, rehearse
from restow.snapshot import write_snapshot
from tests.unit.plan.clusters import snapshot as snapshot_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from restow.plan.flow.forecast import StepTimes
    from restow.rehearse.answer import Rehearsal

MB = 10**6
START_MS = 1_750_000_000_000
LIMITS = Limits(moves_in=3, moves_out=2)


def cluster(partitions: int = 24, *, size: int = 100 * MB, total: int = 10**12, least: int = 1) -> Snapshot:
    replicas = [(n % 4, (n + 1) % 4) for n in range(partitions)]
    return snapshot_of({"t": replicas}, brokers=range(6), size=size, total=total, least=least)


def plan_to(snapshot: Snapshot, *brokers: int, limits: Limits = LIMITS) -> Plan:
    """Return a plan that moves the second replica of every partition to these brokers in turn."""
    targets = [
        Target(partition=name, replicas=(each.replicas[0], brokers[name.partition % len(brokers)]))
        for name, each in snapshot.all_partitions()
    ]
    return plan_from_targets(snapshot, targets, created_ms=1, limits=limits)


def told_of(plan: Plan, snapshot: Snapshot, tmp_path: Path, **more: object) -> Rehearsal:
    given: dict[str, object] = {"throttle": "10MB/s", "journal": tmp_path, **more}
    return rehearse(plan, snapshot, **given)  # type: ignore[arg-type]


def test_replica_that_a_broker_has_already_is_copied_from_where_it_ends(tmp_path: Path) -> None:
    """A broker that was down while it was drained keeps its replicas, in ZooKeeper mode."""
    whole = cluster()
    plan = plan_to(whole, 4, 5)
    (topic,) = whole.topics
    left_over = tuple(
        each._replace(copies=(*each.copies, Copy(broker=4 + number % 2, log_dir="/d", size_bytes=40 * MB)))
        for number, each in enumerate(topic.partitions)
    )
    snapshot = replace(whole, topics=(replace(topic, partitions=left_over),))
    told = told_of(plan, snapshot, tmp_path)
    assert told.seconds.p50 == pytest.approx(12 * 60 * MB / (10 * MB), rel=0.05)
    events = run_events(plan, snapshot, run_options(throttle="10MB/s"), USUAL, ClientLoads(), start_ms=0)
    assert events.run.seconds == pytest.approx(told.seconds.p50, rel=0.05)


def test_executor_and_its_schedule_begin_steps_in_the_same_order_at_about_the_same_time() -> None:
    snapshot = cluster()
    plan = plan_to(snapshot, 4, 5)
    options = run_options(throttle="10MB/s")
    events = run_events(plan, snapshot, options, USUAL, ClientLoads(), start_ms=START_MS)
    executed = run_executor(
        plan, snapshot, options, USUAL, ClientLoads(), start_ms=START_MS, expected_s=events.run.seconds
    )
    assert executed.is_done
    assert [each.step for each in executed.steps] == [each.step for each in events.run.steps]
    assert executed.seconds == pytest.approx(events.run.seconds, rel=0.03)


def test_rehearsal_follows_a_change_of_the_executors_schedule(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    snapshot = cluster(8)
    plan = plan_to(snapshot, 4, 5)
    usual = told_of(plan, snapshot, tmp_path)
    events = run_events(plan, snapshot, run_options(throttle="10MB/s"), USUAL, ClientLoads(), start_ms=0)
    admit = Schedule.admit
    monkeypatch.setattr(Schedule, "admit", lambda self: admit(self) if self.admission.idle else [])
    monkeypatch.setattr(Admission, "shut", lambda self, _: not self.idle)
    one_at_a_time = told_of(plan, snapshot, tmp_path)
    changed = run_events(plan, snapshot, run_options(throttle="10MB/s"), USUAL, ClientLoads(), start_ms=0)
    assert usual.by == one_at_a_time.by == "executor"
    assert (most_at_once(usual.steps), most_at_once(events.run.steps)) == (6, 6)
    assert (most_at_once(one_at_a_time.steps), most_at_once(changed.run.steps)) == (1, 1)


def most_at_once(steps: Sequence[StepTimes]) -> int:
    return max(sum(one.begun_s <= each.begun_s < one.ended_s for one in steps) for each in steps)


def test_time_is_the_busiest_brokers_bytes_over_the_throttle(tmp_path: Path) -> None:
    snapshot = cluster()
    told = told_of(plan_to(snapshot, 4, 5), snapshot, tmp_path)
    assert told.seconds.p50 == pytest.approx(1200 * MB / (10 * MB), rel=0.05)
    assert told.seconds.p10 < told.seconds.p50 < told.seconds.p90
    assert {each.what for each in told.limiting[:2]} == {
        "broker 4 receives as much as its throttle allows",
        "broker 5 receives as much as its throttle allows",
    }
    assert [each.received_bytes for each in told.brokers if each.broker in (4, 5)] == pytest.approx(
        [1200 * MB, 1200 * MB]
    )
    assert told.holds
    assert told.guessed
    assert told.progress[-1][1] == pytest.approx(2400 * MB, rel=0.01)


def test_special_topics_come_last_and_one_at_a_time() -> None:
    snapshot = snapshot_of({"__consumer_offsets": [(0, 1)] * 3, "t": [(0, 1)] * 3}, size=10 * MB)
    plan = plan_to(snapshot, 4)
    run_ = run_events(
        plan, snapshot, run_options(throttle="10MB/s"), USUAL, ClientLoads(), start_ms=START_MS
    ).run
    ordinary = [each for each in run_.steps if each.step.partition.topic == "t"]
    special = [each for each in run_.steps if each.step.partition.topic != "t"]
    assert max(each.ended_s for each in ordinary) <= min(each.begun_s for each in special)
    assert all(one.ended_s <= two.begun_s for one, two in pairwise(special))


def test_throttle_by_the_hour_counts_from_that_hour_on() -> None:
    snapshot = cluster(2, size=7200 * MB)
    plan = plan_to(snapshot, 4)
    hour = "20MB/s,00-24=10MB/s"
    always = run_events(plan, snapshot, run_options(throttle=hour), USUAL, ClientLoads(), start_ms=START_MS)
    fixed = run_options(throttle="10MB/s")
    same = run_events(plan, snapshot, fixed, USUAL, ClientLoads(), start_ms=START_MS)
    assert always.run.seconds == pytest.approx(same.run.seconds, rel=0.001)


def test_moves_begin_only_at_their_hours() -> None:
    snapshot = cluster(4)
    plan = plan_to(snapshot, 4)
    whole_day = run_options(throttle="10MB/s")
    usual = run_events(plan, snapshot, whole_day, USUAL, ClientLoads(), start_ms=START_MS).run
    times = []
    for hours in ("00:00-12:00", "12:00-24:00"):
        options = run_options(throttle="10MB/s", hours=hours)
        run_ = run_events(plan, snapshot, options, USUAL, ClientLoads(), start_ms=START_MS).run
        times.append(run_.seconds)
    assert min(times) == pytest.approx(usual.seconds)
    assert 12 * 3600 > max(times) - min(times) > 0


def test_deadline_finds_the_lowest_throttle_that_is_done_in_time(tmp_path: Path) -> None:
    snapshot = cluster()
    plan = plan_to(snapshot, 4, 5)
    told = told_of(plan, snapshot, tmp_path, throttle=None, deadline="10m")
    assert told.holds
    assert told.seconds.p90 <= 600
    slower = run_options(throttle=f"{int(int(told.throttle.removesuffix('kB/s')) * 970)}B/s")
    slow = Calibration().slow
    missed = run_events(plan, snapshot, slower, slow, ClientLoads(), start_ms=START_MS)
    assert missed.run.seconds > 600


@pytest.mark.parametrize("deadline", ["61s", "97s", "3m", "20m"])
def test_deadline_finds_a_throttle_that_meets_it(tmp_path: Path, deadline: str) -> None:
    """Also where setting and removing throttles, and the executor's looks, take a part of the time."""
    snapshot = cluster()
    told = told_of(plan_to(snapshot, 4, 5), snapshot, tmp_path, throttle=None, deadline=deadline)
    assert told.problems == ()


def test_deadline_that_cannot_be_met_is_refused_with_the_earliest(tmp_path: Path) -> None:
    snapshot = cluster()
    with pytest.raises(CannotRehearse, match=r"earliest deadline .* is \d+ s after the start"):
        told_of(plan_to(snapshot, 4, 5), snapshot, tmp_path, throttle=None, deadline="2s")


def test_throttle_that_misses_the_deadline_is_a_problem(tmp_path: Path) -> None:
    snapshot = cluster()
    told = told_of(plan_to(snapshot, 4, 5), snapshot, tmp_path, deadline="60s")
    assert not told.holds
    assert "miss its deadline" in told.problems[0]


def load_of(snapshot: Snapshot, written: float, *, cluster_id: str = "here", leave_out: int = 0) -> LoadModel:
    names = snapshot.names[leave_out:]
    column = np.full(len(names), written)
    return LoadModel(
        cluster_id=cluster_id,
        made_ms=0,
        partitions=names,
        resources={BYTES_IN: Resource(leading=column, following=column)},
    )


def test_throttle_below_what_producers_write_never_ends_and_is_named(tmp_path: Path) -> None:
    snapshot = cluster(2)
    told = told_of(plan_to(snapshot, 4), snapshot, tmp_path, load=load_of(snapshot, 20.0 * MB))
    assert told.seconds.p50 == inf
    assert "never end" in told.problems[0]
    assert "t-0" in told.problems[0]
    assert json.loads(json.dumps(told.document()))["seconds"]["p50"] is None


def test_producers_lengthen_a_move(tmp_path: Path) -> None:
    snapshot = cluster(2)
    plan = plan_to(snapshot, 4)
    quiet = told_of(plan, snapshot, tmp_path, load=load_of(snapshot, 0.0))
    busy = told_of(plan, snapshot, tmp_path, load=load_of(snapshot, 2.5 * MB))
    assert busy.seconds.p50 == pytest.approx(2 * quiet.seconds.p50, rel=0.1)


@pytest.mark.parametrize(("other", "said"), [("there", "load model is of cluster"), ("here", "no load of 1")])
def test_load_model_of_another_cluster_or_without_partitions_is_refused(
    tmp_path: Path, other: str, said: str
) -> None:
    snapshot = cluster(2)
    load = load_of(snapshot, 1.0, cluster_id=other, leave_out=1)
    with pytest.raises(InvalidInput, match=said):
        told_of(plan_to(snapshot, 4), snapshot, tmp_path, load=load)


def test_answer_says_that_other_partitions_have_no_load(tmp_path: Path) -> None:
    """They may keep brokers busy, and the model knows nothing of it."""
    snapshot = cluster(4)
    targets = [Target(partition=snapshot.names[3], replicas=(0, 4))]
    plan = plan_from_targets(snapshot, targets, created_ms=1, limits=LIMITS)
    told = [
        told_of(plan, snapshot, tmp_path, load=load_of(snapshot, 1.0, leave_out=number)).notes
        for number in (0, 2)
    ]
    assert not any("has no load of" in each for each in told[0])
    assert any("has no load of 2 partitions" in each for each in told[1])


def test_disk_that_producers_fill_meanwhile_is_a_problem(tmp_path: Path) -> None:
    snapshot = cluster(4, total=1000 * MB)
    told = told_of(
        plan_to(snapshot, 4), snapshot, tmp_path, throttle="4MB/s", load=load_of(snapshot, 0.7 * MB)
    )
    [fullest] = [each for each in told.log_dirs if each.broker == 4]
    assert fullest.peak_bytes > 900 * MB
    assert any("of broker 4 would hold" in each for each in told.problems)


def test_plan_for_another_cluster_or_a_drifted_one_is_refused(tmp_path: Path) -> None:
    snapshot = cluster(2)
    plan = plan_to(snapshot, 4)
    with pytest.raises(RestowError, match="plan is for cluster here"):
        told_of(plan, replace(snapshot, cluster_id="there"), tmp_path)
    moved = snapshot_of({"t": [(0, 5), (1, 2)]}, size=100 * MB, total=10**12)
    with pytest.raises(CannotRehearse, match="not what the plan was made for"):
        told_of(plan, moved, tmp_path)


def test_dead_target_is_waited_for_until_it_comes_back(tmp_path: Path) -> None:
    snapshot = cluster(8)
    plan = plan_to(snapshot, 4, 5)
    gone = told_of(plan, snapshot, tmp_path, what_if=["broker 4 dies at 30%"]).what_if[0]
    assert gone.seconds == inf
    assert gone.unfinished == LIMITS.moves_in
    back = told_of(
        plan, snapshot, tmp_path, what_if=["broker 4 dies at 30%", "broker 4 comes back at 5m"]
    ).what_if[0]
    assert back.unfinished == 0
    assert back.seconds > 300


def test_copies_from_a_dead_leader_wait_until_it_is_noticed(tmp_path: Path) -> None:
    snapshot = snapshot_of({"t": [(0, 1)]}, size=100 * MB)
    plan = plan_from_targets(
        snapshot, [Target(partition=TopicPartition("t", 0), replicas=(2, 1))], created_ms=1
    )
    fault = ["broker 0 dies at 50%"]
    told = told_of(plan, snapshot, tmp_path, what_if=fault, max_under_replicated=-1)
    assert told.what_if[0].seconds == pytest.approx(told.seconds.p50 + USUAL.detect_s, abs=1.0)


def test_dead_leader_moves_leaders_and_pauses_the_run(tmp_path: Path) -> None:
    snapshot = cluster(24, least=2)
    told = told_of(plan_to(snapshot, 4, 5), snapshot, tmp_path, what_if=["broker 0 dies at 10%"])
    [fault] = told.what_if
    assert fault.leaders_moved > 0
    assert fault.under_replicated > 0
    assert fault.isr_margin == -1
    assert any("under-replicated" in each for each in fault.pauses)


@pytest.mark.parametrize("text", ["broker 9 dies at 30%", "broker 1 sleeps", "broker 1 dies at 300%"])
def test_fault_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    snapshot = cluster(2)
    with pytest.raises(InvalidInput, match="--what-if"):
        told_of(plan_to(snapshot, 4), snapshot, tmp_path, what_if=[text])


def test_leaders_that_move_are_listed(tmp_path: Path) -> None:
    snapshot = cluster(2)
    name = TopicPartition("t", 0)
    plan = plan_from_targets(snapshot, [Target(partition=name, replicas=(4, 1))], created_ms=1)
    told = told_of(plan, snapshot, tmp_path)
    assert [(each.partition, each.before, each.after) for each in told.leader_changes] == [(name, 0, 4)]


def test_copies_between_log_dirs_are_rehearsed_by_the_executor(tmp_path: Path) -> None:
    snapshot = snapshot_of({"t": [(0, 1)] * 4}, size=50 * MB, dirs=("/a", "/b"))
    targets = [
        Target(partition=TopicPartition("t", number), replicas=(0, 1), log_dirs=("/b", "any"))
        for number in range(4)
    ]
    told = told_of(plan_from_targets(snapshot, targets, created_ms=1), snapshot, tmp_path)
    assert told.by == "executor"
    assert told.seconds.p50 == pytest.approx(20.0 / USUAL.dir_share, rel=0.1)
    assert told.limiting[0].what == "broker 0 copies between its log dirs as much as its throttle allows"


def test_large_plan_is_rehearsed_by_its_schedule(tmp_path: Path) -> None:
    snapshot = cluster(4000, size=MB)
    plan = plan_to(snapshot, 4, 5, limits=Limits())
    told = told_of(plan, snapshot, tmp_path)
    options = run_options(throttle="10MB/s")
    exact = run_events(plan, snapshot, options, USUAL, ClientLoads(), start_ms=START_MS)
    assert told.by == "events"
    assert told.seconds.p50 == pytest.approx(exact.run.seconds, rel=0.05)
    assert told.seconds.p10 < told.seconds.p50 < told.seconds.p90
    assert len(told.steps) == 4000


def test_rehearsal_without_moves_takes_no_time(tmp_path: Path) -> None:
    snapshot = cluster(2)
    told = told_of(plan_from_targets(snapshot, [], created_ms=1), snapshot, tmp_path)
    assert told.seconds.p50 == 0
    assert told.holds


def saved(tmp_path: Path, snapshot: Snapshot, plan: Plan) -> list[str]:
    restow.write_plan(plan, tmp_path / "plan.json")
    write_snapshot(snapshot, tmp_path / "now.json")
    files = [str(tmp_path / "plan.json"), "--snapshot", str(tmp_path / "now.json")]
    return ["rehearse", *files, "--journal", str(tmp_path)]


def test_command_prints_the_answer_and_writes_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = cluster()
    given = saved(tmp_path, snapshot, plan_to(snapshot, 4, 5))
    html = tmp_path / "page.html"
    what_if = ["--what-if", "broker 0 dies at 50%"]
    assert run([*given, "--throttle", "10MB/s", "--html", str(html), *what_if]) == 0
    told = capsys.readouterr().out
    assert "24 partitions, 2.4 GB to copy: takes 2.0 min" in told
    assert "broker 4 receives as much as its throttle allows" in told
    assert "If broker 0 dies at 50%" in told
    page = html.read_text()
    assert page.count("<svg") == 4
    assert "if broker 0 dies at 50%" in page
    assert "t-0 → 4: from 0." in page
    assert run([*given, "--throttle", "10MB/s", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["by"] == "executor"


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--throttle", "10MB/s", "--deadline", "10s"], 1, "miss its deadline"),
        (["--deadline", "2s"], 1, "earliest deadline"),
        ([], 2, "say a throttle"),
        (["--throttle", "10MB/s", "--start", "soon"], 2, "--start"),
        (["--throttle", "10MB/s", "--what-if", "broker 77 dies at 1%"], 2, "no broker 77"),
    ],
)
def test_command_exits_with_a_code_and_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], code: int, said: str
) -> None:
    snapshot = cluster(8)
    given = saved(tmp_path, snapshot, plan_to(snapshot, 4, 5))
    assert run([*given, *more]) == code
    printed = capsys.readouterr()
    assert said in printed.out + printed.err
