"""The picture of a run: its content, and cleaned names from the cluster."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from restow.cli.runs.screen import conclude, log_line
from restow.cli.runs.view import draw_outcome, picture, until
from restow.execute.predict.prediction import Prediction, TimeRange
from restow.execute.progress.outcome import Ending, RunOutcome, Summary
from restow.execute.progress.progress import BrokerPart, Copying, DirPart, ProgressReport
from restow.execute.progress.status import RunEvent, RunStatus, status_of
from restow.execute.progress.stuck import Cause, StuckReplica
from restow.execute.throttle.pace import ASKED_TO_PAUSE
from restow.model import TopicPartition
from restow.sizes import human_duration

GB = 10**9


def run_status(**changes: object) -> RunStatus:
    name = TopicPartition("orders\x1b[2J", 0)
    report = ProgressReport(
        done_bytes=2 * GB,
        to_do_bytes=8 * GB,
        rate=50e6,
        eta_s=300,
        brokers=(BrokerPart(broker=4, done_bytes=2 * GB, to_do_bytes=8 * GB, replicas=1),),
        copying=(
            Copying(
                partition=name, broker=4, leader=1, size_bytes=3 * GB, copied_bytes=2 * GB, in_sync=False
            ),
        ),
        still=(
            StuckReplica(
                partition=name,
                broker=4,
                cause=Cause.DEAD_TARGET,
                evidence="broker 4 is not there",
                advice="bring it back",
            ),
        ),
    )
    usual: dict[str, object] = {
        "run": "20261115-082137",
        "report": report,
        "steps_done": 3,
        "steps_left": 9,
        "under_way": 1,
        "throttle": 50_000_000,
        "auto": True,
        "paused": None,
        "waits": None,
        "under_replicated": 0,
        "offline": 0,
        "latency_s": 0.003,
    }
    return RunStatus(**{**usual, **changes})  # type: ignore[arg-type]


def drawn(what: RunStatus) -> str:
    page = Console(width=120, file=io.StringIO(), color_system=None)
    with page.capture() as captured:
        page.print(picture(what))
    return captured.get()


def test_picture_draws_a_bar_of_all_bytes_and_leaves_out_brokers_without_any() -> None:
    """Broker 6 has received everything and sent nothing of 20 kB yet: its bar is almost full."""
    parts = (
        BrokerPart(broker=6, done_bytes=50 * GB, to_do_bytes=50 * GB, to_send_bytes=20_000, replicas=0),
        BrokerPart(broker=5, done_bytes=0, to_do_bytes=0, replicas=0),
    )
    status = run_status()
    rows = drawn(replace(status, report=replace(status.report, brokers=parts))).splitlines()
    (row,) = [each for each in rows if each.startswith(("6 ", "5 "))]
    assert row.startswith("6")
    assert "···" not in row


@pytest.mark.parametrize(("silent", "words"), [((3,), "broker 3"), ((3, 5), "brokers 3, 5")])
def test_picture_names_brokers_that_did_not_answer(silent: tuple[int, ...], words: str) -> None:
    status = run_status(silent=silent)
    assert f"requests take 3 ms, no answer from {words}\n" in drawn(status)
    assert status_of(status.document()).silent == silent


def test_picture_shows_progress_brokers_stalls_and_health() -> None:
    text = drawn(run_status())
    for words in (
        "run 20261115-082137   3 of 12 steps done, 1 under way   throttle 50.0 MB/s (auto)",
        "2.0 GB of 8.0 GB   50.0 MB/s in all   5.0 min left",
        "dead target: broker 4 is not there: bring it back",
        "0 under-replicated, 0 offline, requests take 3 ms",
    ):
        assert words in text
    assert "\x1b" not in text


def test_picture_fills_the_bar_of_a_broker_that_has_sent_everything() -> None:
    sender = BrokerPart(
        broker=77, done_bytes=0, to_do_bytes=0, replicas=0, sent_bytes=9_000_000, to_send_bytes=9_000_000
    )
    shown = drawn(run_status(report=replace(run_status().report, brokers=(sender,))))
    row = next(line for line in shown.splitlines() if line.strip().startswith("77"))
    assert "█" in row
    assert "·" not in row


def test_picture_gives_the_reason_of_a_pause() -> None:
    assert "paused: an operator paused the run" in drawn(run_status(paused=ASKED_TO_PAUSE))
    assert "waits: broker 3 is not there" in drawn(run_status(waits="broker 3 is not there"))


def test_picture_shows_what_a_dead_broker_has_copied_as_unknown() -> None:
    dead = replace(run_status().report.copying[0], copied_bytes=0, answered=False)
    status = run_status(report=replace(run_status().report, copying=(dead,)))
    (row,) = [line for line in drawn(status).splitlines() if line.count("?") == 2]
    assert "3.0 GB" in row
    assert "0 B" not in row
    (written,) = json.loads(json.dumps(status.document()))["replicas"]
    assert (written["copied_bytes"], written["behind_bytes"]) == (None, None)
    assert status_of(status.document()) == status


def test_picture_of_a_paused_run_gives_no_time_left() -> None:
    unknown = replace(run_status().report, eta_s=None)
    shown = drawn(run_status(paused=ASKED_TO_PAUSE, report=unknown))
    assert "time left unknown while paused" in shown
    assert "min left" not in shown


def test_picture_of_a_run_that_waits_gives_no_time_left() -> None:
    unknown = replace(run_status().report, eta_s=None)
    shown = drawn(run_status(waits="orders-0: its replica on broker 4 is not in sync", report=unknown))
    assert "time left unknown while nothing can move" in shown


def test_picture_of_a_paused_run_in_which_nothing_waits_gives_the_time_left() -> None:
    assert " left" in drawn(run_status(paused=ASKED_TO_PAUSE))


@pytest.mark.parametrize("paused", [None, ASKED_TO_PAUSE])
def test_picture_of_a_run_that_has_ended_gives_no_time_left(paused: str | None) -> None:
    assert " left" not in drawn(run_status(ended="done", paused=paused))


def test_log_line_of_a_pause_is_a_sentence() -> None:
    paused = RunEvent(at_ms=0, kind="paused", facts={"why": ASKED_TO_PAUSE})
    assert log_line(paused).startswith("paused: an operator paused the run")
    refused = RunEvent(at_ms=0, kind="refused", facts={"partition": "t-0", "why": "nobody knows it"})
    assert log_line(refused) == "refused: partition t-0: nobody knows it"
    assert log_line(RunEvent(at_ms=0, kind="goes on", facts={})) == "goes on"


@pytest.mark.parametrize(
    ("ending", "wanted", "code"),
    [
        (Ending.DONE, Ending.DONE, 0),
        (Ending.CANCELLED, Ending.DONE, 1),
        (Ending.CANCELLED, Ending.CANCELLED, 0),
        (Ending.LEFT, Ending.CANCELLED, 1),
    ],
)
def test_exit_code_is_0_only_for_the_ending_that_the_command_wants(
    ending: Ending, wanted: Ending, code: int
) -> None:
    assert conclude(RunOutcome(ending=ending), interactive=False, wanted=wanted) == code
    left_over = RunOutcome(ending=ending, throttles_left=("a rate of broker 1",))
    assert conclude(left_over, interactive=False, wanted=wanted) == 1


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (89, "89 s"), (90, "1.5 min"), (1200, "20 min"), (7200, "2.0 h")]
)
def test_duration_uses_the_largest_unit_that_fits(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


def test_until_says_that_the_time_is_not_known() -> None:
    assert until(None) == "time left not known yet"


def test_picture_cuts_no_number_in_a_narrow_terminal() -> None:
    name = TopicPartition("a-topic-with-a-name-that-is-rather-long-for-a-terminal-of-eighty-columns", 11)
    copying = Copying(
        partition=name,
        broker=1001,
        leader=1002,
        size_bytes=288_400_000,
        copied_bytes=111_000_000,
        in_sync=False,
        log_dir="/var/lib/kafka/data-of-the-second-disk",
    )
    report = ProgressReport(
        done_bytes=111_000_000,
        to_do_bytes=288_400_000,
        rate=1e6,
        eta_s=None,
        brokers=tuple(
            BrokerPart(
                broker=1000 + number,
                done_bytes=111_000_000,
                to_do_bytes=288_400_000,
                replicas=10,
                sent_bytes=123_400_000,
                to_send_bytes=999_000_000,
            )
            for number in range(14)
        ),
        copying=(copying,),
        still=(),
        dirs=(
            DirPart(
                broker=1001,
                path="/var/lib/kafka/data-of-the-second-disk-in-a-folder-of-many-letters-and-one-more",
                done_bytes=111_000_000,
                to_do_bytes=288_400_000,
                replicas=1,
            ),
        ),
    )
    page = Console(width=80, file=io.StringIO(), color_system=None)
    with page.capture() as captured:
        page.print(picture(run_status(report=report)))
    text = captured.get()
    for words in ("received", "288 MB", "111 MB", "123 MB", "999 MB", "behind", "moving", "and 2 more"):
        assert words in text


def test_picture_shows_reassignments_of_other_tools_beside_the_run() -> None:
    text = drawn(run_status(others=run_status(run="", steps_done=0, steps_left=2, under_way=2)))
    assert "not of this run:" in text
    assert "moves under way   0 of 2 steps done, 2 under way" in text


def test_summary_shows_the_moves_and_cleans_names() -> None:
    outcome = RunOutcome(
        ending=Ending.IN_PART,
        reason="because \x1b[2J",
        dropped={TopicPartition("evil\x1b[31m", 0): "its topic \x1b]0;x\x07 is gone"},
        summary=Summary(
            run="20261115-082137",
            partitions_moved=12,
            partitions_moved_before=3,
            partitions_left=1,
            copied_bytes=145_000_000,
            left_bytes=12_000_000,
            seconds=81,
            prediction=Prediction(
                start_ms=0, seconds=TimeRange(p10=70, p50=79, p90=160), by="schedule", guessed=("begin_s",)
            ),
            busiest="broker 3 received",
            busiest_bytes=81_000_000,
        ),
    )
    page = Console(width=200, file=io.StringIO(), color_system=None)
    with page.capture() as captured:
        draw_outcome(page, outcome)
    text = captured.get()
    assert "\x1b" not in text
    assert "\x07" not in text
    for words in (
        "done in part: because",
        "moved     12 partitions, 145 MB copied; 3 before it was resumed",
        "took      81 s, 1.8 MB/s in all; broker 3 received 81.0 MB, 1.0 MB/s",
        "predicted 79 s (P10 70 s, P90 2.7 min), by the schedule",
        "left      1 partition, 12.0 MB to copy",
        "restow resume",
    ):
        assert words in text


def test_picture_cleans_a_hostile_run_name() -> None:
    text = drawn(run_status(run="\x1b[2Jrun", ended="\x1b[2J", by_hour="\x1b[2J", auto=False))
    assert "\x1b" not in text


def test_standing_survives_a_round_trip_through_json() -> None:
    before = run_status()
    assert status_of(json.loads(json.dumps(before.document()))) == before
