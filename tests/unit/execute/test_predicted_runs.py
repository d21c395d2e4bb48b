"""Runs are predicted before they begin: in the journal, in what they tell, and as a reason to refuse them."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from restow.cli.plan.show_html import page_of
from restow.errors import InvalidInput
from restow.execute.journal.runs import last_run_of, predictions_told
from restow.execute.predict.learn import calibrate
from restow.execute.predict.predicting import predict
from restow.execute.predict.prediction import Prediction, TimeRange, prediction_of
from restow.execute.progress.status import STATUS_FILE, RunListener, status_of
from restow.execute.run.control import ControlRequest
from restow.execute.run.examine import examine
from restow.execute.run.options import expecting, run_options
from restow.execute.run.start import NotNow, execute, undo
from restow.model import ANY_DIR, CheckOutcome, Limits, Move, Plan, TopicPartition
from restow.model.load import BYTES_IN, LoadModel, Resource
from restow.plan.explain.view import view_of
from restow.plan.flow.constants import Calibration
from restow.plan.flow.loads import ClientLoads
from tests.unit.execute.fake_admin import MB
from tests.unit.execute.stage import control_of, plan_for
from tests.unit.execute.test_time_left import Run, ThrottledAdmin, cluster, sized
from tests.unit.rehearse.test_rehearse import cluster as cluster_of
from tests.unit.rehearse.test_rehearse import plan_to

if TYPE_CHECKING:
    from restow.execute.progress.status import RunStatus
    from restow.execute.run.options import RunOptions

AT_6 = run_options(throttle="6MB/s")
TARGETS = [(1, 4), (2, 4), (3, 5)]


def unequal(tmp_path: Path, **more: float) -> Run:
    """Broker 4 is to receive 180 MB, broker 5 60 MB."""
    admin = cluster(**more)
    admin.add("t", [(1, 2), (2, 3), (3, 1)])
    sized(admin, {0: 120, 1: 60, 2: 60})
    return Run(tmp_path, admin)


def load_of(written: float) -> LoadModel:
    names = tuple(TopicPartition("t", number) for number in range(3))
    rates = Resource(leading=np.full(3, written), following=np.full(3, written))
    return LoadModel(cluster_id="fake", made_ms=0, partitions=names, resources={BYTES_IN: rates})


def between_log_dirs(admin: ThrottledAdmin, limits: Limits | None = None) -> Plan:
    """Return a plan that moves each replica on broker 1 to another log dir: 90 MB each."""
    moves = tuple(
        Move(
            partition=partition,
            before=each.replicas,
            after=each.replicas,
            size_bytes=90 * MB,
            log_dirs=("/e", ANY_DIR),
            dirs_before={1: "/d"},
        )
        for partition, each in admin.assignments.items()
    )
    return Plan(cluster_id="fake", created_ms=0, moves=moves, limits=limits or Limits())


def journal_of(run: Run) -> Path:
    (folder,) = {str(each.facts["folder"]) for each in run.stage.events if each.kind == "run"}
    return Path(folder) / "journal.jsonl"


def test_run_keeps_its_prediction_and_tells_how_it_went(tmp_path: Path) -> None:
    run = unequal(tmp_path)
    plan = plan_for(run.stage, TARGETS)
    outcome = run.stage.execute(plan, AT_6)
    took_s = outcome.summary.seconds
    assert outcome.summary.predicted_s == pytest.approx(180 / 6, rel=0.05)
    assert (outcome.summary.prediction.is_guess, outcome.summary.prediction.guessed != ()) == (False, True)
    assert outcome.summary.error == pytest.approx(took_s / outcome.summary.predicted_s - 1)
    (kept,) = asyncio.run(run.stage.world.runs()).all()
    prediction = kept.ledger.prediction
    assert prediction is not None
    assert prediction.seconds.p10 < prediction.seconds.p50 < prediction.seconds.p90
    assert (prediction.by, prediction.resumed) == ("schedule", False)
    assert prediction.curve[-1][1] == pytest.approx(240 * MB, rel=0.01)
    assert kept.ledger.took_s == pytest.approx(took_s, abs=1)
    seconds, sizes = zip(*kept.ledger.copied, strict=True)
    assert (list(seconds), list(sizes)) == (sorted(seconds), sorted(sizes))
    assert (sizes[0], sizes[-1]) == (0, 240 * MB)
    (note,) = predictions_told(plan, tmp_path)
    assert kept.name in note
    assert re.search(r"by the schedule; it took 30 s, \d\.\d% less$", note)
    told = outcome.document()["summary"]
    assert isinstance(told, dict)
    assert told["prediction_error"] == pytest.approx(outcome.summary.error, abs=0.001)


def test_summary_has_the_time_that_the_journal_has(tmp_path: Path) -> None:
    """What the run does after its last entry takes time, and does not count."""
    run = unequal(tmp_path)
    plan = plan_for(run.stage, TARGETS)

    def status(told: RunStatus) -> None:
        if told.ended:
            run.stage.clock.now_s += 5

    listener = RunListener(event=lambda _: None, status=status)
    outcome = asyncio.run(execute(run.stage.world, plan, AT_6, listener))
    (kept,) = asyncio.run(run.stage.world.runs()).all()
    assert outcome.summary.seconds == kept.ledger.took_s


def test_page_of_a_plan_has_its_last_run(tmp_path: Path) -> None:
    run = unequal(tmp_path)
    plan = plan_for(run.stage, TARGETS)
    assert last_run_of(plan, tmp_path) is None
    run.stage.execute(plan, AT_6)
    after = page_of(plan, view_of(plan), run=last_run_of(plan, tmp_path))
    assert "The last run, predicted and actual" in after
    assert "<title>copied</title>" in after
    assert "<title>predicted</title>" in after


def test_status_says_how_far_ahead_of_the_prediction_a_run_is(tmp_path: Path) -> None:
    run = unequal(tmp_path)
    run.stage.after(5, lambda: control_of(run.stage).request(ControlRequest(throttle="3MB/s")))
    run.stage.execute(plan_for(run.stage, TARGETS), AT_6)
    told = [each.predicted for each in run.stage.statuses]
    before = [each for each in told if each is not None and 2 < each.elapsed_s < 5]
    later = [each for each in told if each is not None and 20 < each.elapsed_s < 30]
    assert all(abs(each.ahead_s or 0.0) < 3 for each in before)
    assert before
    assert [each for each in later if each.ahead_s is None or each.ahead_s > -5] == []
    assert later
    assert {each.ends_ms for each in later} == {before[0].ends_ms}


def test_status_file_has_the_prediction_and_old_ones_are_read_without(tmp_path: Path) -> None:
    run = unequal(tmp_path)
    run.stage.execute(plan_for(run.stage, TARGETS), AT_6)
    written = json.loads((journal_of(run).parent / STATUS_FILE).read_text())
    assert status_of(written).predicted is not None
    del written["predicted"]
    assert status_of(written).predicted is None


def test_journals_without_a_prediction_are_still_read_and_resumed(tmp_path: Path) -> None:
    run = unequal(tmp_path)
    run.stage.after(5, lambda: control_of(run.stage).request(ControlRequest(stop="leave")))
    plan = plan_for(run.stage, TARGETS)
    run.stage.execute(plan, replace(AT_6, predicts=False))
    assert json.loads(journal_of(run).read_text().splitlines()[0])["prediction"] is None
    (kept,) = asyncio.run(run.stage.world.runs()).all()
    assert kept.ledger.prediction is None
    assert predictions_told(plan, tmp_path) == ()
    assert run.stage.resume(AT_6).is_good
    assert len(predictions_told(plan, tmp_path)) == 1


def test_prediction_of_the_last_run_is_told_though_an_earlier_one_was_done(tmp_path: Path) -> None:
    """After a cancelled run, the numbers of the run before it would be taken for its own."""
    run = unequal(tmp_path)
    plan = plan_for(run.stage, TARGETS)
    assert run.stage.execute(plan, AT_6).is_good
    asyncio.run(undo(run.stage.world, AT_6, run.stage.watcher))
    run.stage.events.clear()
    run.stage.after(5, lambda: control_of(run.stage).request(ControlRequest(stop="cancel")))
    cancelled = run.stage.execute(plan, AT_6)
    (note,) = predictions_told(plan, tmp_path)
    assert note.startswith(f"run {cancelled.run}: predicted ")
    assert note.endswith("; it has ended: cancelled")


def test_resumed_run_is_predicted_by_what_is_left(tmp_path: Path) -> None:
    """Of 180 MB at 6 MB/s, a third is there after ten seconds."""
    run = unequal(tmp_path)
    run.stage.after(10, lambda: control_of(run.stage).request(ControlRequest(stop="leave")))
    run.stage.execute(plan_for(run.stage, TARGETS), AT_6)
    outcome = run.stage.resume(AT_6)
    assert outcome.summary.prediction.resumed
    assert outcome.summary.predicted_s == pytest.approx(20, rel=0.15)
    assert outcome.summary.predicted_s == pytest.approx(outcome.summary.seconds, rel=0.15)
    assert all(abs(each.predicted.ahead_s or 0.0) < 4 for each in run.stage.statuses if each.predicted)


def test_undo_is_predicted(tmp_path: Path) -> None:
    run = unequal(tmp_path)
    run.stage.execute(plan_for(run.stage, TARGETS), AT_6)
    back = run.stage.undo(AT_6)
    assert back.is_good
    assert back.summary.predicted_s == pytest.approx(back.summary.seconds, rel=0.2)


def refuses(run: Run, options: RunOptions, says: str, plan: Plan | None = None) -> None:
    wanted = plan or plan_for(run.stage, TARGETS)
    checked = asyncio.run(examine(run.stage.world, wanted, options))
    (check,) = (each for each in checked.checks if each.name == "rehearsal")
    assert check.outcome is CheckOutcome.FAILS
    with pytest.raises(NotNow, match=says) as refused:
        run.stage.execute(wanted, options)
    assert check.evidence in str(refused.value)
    assert run.admin.calls == []
    assert run.stage.events == []
    assert asyncio.run(run.stage.world.runs()).all() == ()


def test_run_that_would_miss_its_deadline_is_refused_unless_anyway(tmp_path: Path) -> None:
    run = unequal(tmp_path)
    refuses(run, expecting(AT_6, deadline="20s"), "may miss its deadline: it takes up to 3. s, and has 20 s")
    assert run.stage.execute(
        plan_for(run.stage, TARGETS), expecting(AT_6, deadline="20s", anyway=True)
    ).is_good
    assert "warned" in run.stage.kinds()


def test_run_that_meets_its_deadline_begins(tmp_path: Path) -> None:
    run = unequal(tmp_path)
    assert run.stage.execute(plan_for(run.stage, TARGETS), expecting(AT_6, deadline="1m")).is_good
    assert "warned" not in run.stage.kinds()


def test_run_that_would_never_end_is_refused_and_its_partitions_are_named(tmp_path: Path) -> None:
    run = unequal(tmp_path)
    refuses(run, expecting(AT_6, load=load_of(8 * MB)), "never end.*3 partitions.*t-0.*--anyway")


def test_run_that_would_fill_a_log_dir_is_refused_even_anyway(tmp_path: Path) -> None:
    """Log dirs have 1,000 MB in them. There is room for 120 MB, but not for what producers add meanwhile."""
    run = unequal(tmp_path)
    plan = replace(plan_for(run.stage, TARGETS), limits=Limits(fill=1_130 / 100_000))
    options = expecting(AT_6, load=load_of(1 * MB), anyway=True)
    refuses(run, options, "of broker 4 would hold .* and the plan allows .*another --fill", plan)


def test_deadline_that_is_no_time_is_refused_before_the_cluster_is_asked() -> None:
    with pytest.raises(InvalidInput, match="'soon' is no time"):
        expecting(AT_6, deadline="soon")


def test_very_large_plan_is_predicted_by_its_busiest_broker() -> None:
    snapshot = cluster_of(6_000, size=10 * MB)
    plan = plan_to(snapshot, 4, 5)
    told = predict(plan, snapshot, AT_6, Calibration(), ClientLoads(), start_ms=0, deadline_s=60)
    assert told.prediction.by == "busiest broker"
    assert told.prediction.seconds.p50 == pytest.approx(3_000 * 10 / 6, rel=0.02)
    assert told.prediction.curve[-1][1] == 6_000 * 10 * MB
    assert [each.why for each in told.objections] == [
        f"it may miss its deadline: it takes up to {told.prediction.seconds.p90:,.0f} s, and has 60 s"
    ]


def test_prediction_is_the_same_after_it_was_written_and_read() -> None:
    told = Prediction(
        start_ms=5,
        seconds=TimeRange(p10=1.0, p50=2.0, p90=inf),
        by="schedule",
        guessed=("begin_s",),
        curve=((0.0, 0.0), (2.0, 10.0)),
        resumed=True,
    )
    assert prediction_of(json.loads(json.dumps(told.document()))) == told


@pytest.mark.parametrize(
    ("share", "seconds", "ahead_s"),
    [
        (0.0, 3.0, -3.0),
        (0.25, 5.0, 0.0),
        (0.5, 15.0, 0.0),
        (0.5, 25.0, -5.0),
        (0.75, 20.0, 5.0),
        (1.0, 40.0, -10.0),
    ],
)
def test_run_is_in_time_anywhere_on_a_flat_part_of_the_curve(
    share: float, seconds: float, ahead_s: float
) -> None:
    """Half of it is copied in ten seconds, nothing in the next ten, the rest in the last ten."""
    points = ((0.0, 0.0), (10.0, 50.0), (20.0, 50.0), (30.0, 100.0))
    told = Prediction(start_ms=0, seconds=TimeRange(p10=30, p50=30, p90=30), by="schedule", curve=points)
    assert told.ahead_s(share, seconds) == pytest.approx(ahead_s)


@pytest.mark.parametrize(("throttle", "name"), [("none", "dir_rate"), ("5MB/s", "dir_share")])
def test_later_runs_learn_what_a_run_has_measured_between_log_dirs(
    tmp_path: Path, throttle: str, name: str
) -> None:
    admin: ThrottledAdmin = cluster(most=8 * MB)
    admin.add("t", [(1, 2), (1, 3)], size=90 * MB)
    run = Run(tmp_path, admin)
    plan = between_log_dirs(admin, Limits(moves_in=1))
    run.stage.execute(plan, run_options(throttle=throttle))
    known = calibrate(str(tmp_path), "fake")
    assert set(known.sources) - {"throttling_s"} == {name}
    right = {"dir_rate": 8 * MB, "dir_share": 1.0}[name]
    assert getattr(known.usual, name) == pytest.approx(right, rel=0.1)
    back = run.stage.undo(run_options(throttle=throttle))
    assert back.summary.predicted_s == pytest.approx(back.summary.seconds, rel=0.15)


def test_resumed_run_between_log_dirs_tells_the_right_time_left(tmp_path: Path) -> None:
    """After 30 s at 3 MB/s, 90 of 180 MB are left: 30 s more, whatever was copied before."""
    admin = cluster()
    admin.add("t", [(1, 2), (1, 3)], size=90 * MB)
    run = Run(tmp_path, admin)
    plan = between_log_dirs(admin)
    options = run_options(throttle="3MB/s")
    run.stage.after(30, lambda: control_of(run.stage).request(ControlRequest(stop="leave")))
    run.execute(plan, options)
    run.resume(options)
    left_s = run.told[-1].at_s - run.told[0].at_s
    first = run.told[0].status
    assert first.report.eta_s == pytest.approx(left_s, rel=0.15)
    assert first.report.rate == 0.0, "what was copied before is no rate"
    assert first.predicted is not None
    assert first.predicted.seconds.p50 == pytest.approx(left_s, rel=0.15)
    assert run.wrong(after_s=13) == []
