"""The commands around a run, as a user types them, on the embedded cluster."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING, Any

import pytest

from restow.cli import run
from restow.cluster.threaded import ThreadedCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with ThreadedCluster(3) as cluster:
        yield cluster.bootstrap
    gc.collect()


@pytest.fixture
def restow(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, list[Any]]]:
    """Return a function that runs a command with `--json`; it returns the exit code and the documents."""
    monkeypatch.setenv("RESTOW_BOOTSTRAP_SERVER", bootstrap)
    monkeypatch.setenv("RESTOW_JOURNAL", str(tmp_path / "state"))

    def command(*arguments: str) -> tuple[int, list[Any]]:
        code = run([*arguments, "--json"])
        said = capsys.readouterr()
        return code, [json.loads(line) for line in said.out.splitlines()] or [said.err]

    return command


def make_plan(restow: Callable[..., tuple[int, list[Any]]], topic: str, folder: Path) -> Path:
    """Create a topic of two partitions on brokers 0 and 1, and a plan to have them on 1 and 2."""
    import asyncio
    import os

    from restow.client import ConnectionSettings, connected
    from restow.model import TopicPartition
    from restow.plan.files.text import dumps
    from restow.plan.pin import Target, plan_from_targets
    from restow.runtime.clock import SystemClock
    from restow.snapshot import capture

    assert restow("topics", "create", topic, "--replica-assignment", "0:1,1:0")[0] == 0

    async def made() -> str:
        async with connected(ConnectionSettings(bootstrap=os.environ["RESTOW_BOOTSTRAP_SERVER"])) as admin:
            snapshot = await capture(admin, SystemClock())
            targets = [Target(partition=TopicPartition(topic, number), replicas=(2, 1)) for number in (0, 1)]
            return dumps(plan_from_targets(snapshot, targets, created_ms=1))

    path = folder / "plan.json"
    path.write_text(asyncio.run(made()))
    return path


def replicas(restow: Callable[..., tuple[int, list[Any]]], topic: str) -> list[list[int]]:
    _, (described,) = restow("topics", "describe", topic)
    return [each["replicas"] for each in described["partitions"]]


def test_execute_and_undo_move_there_and_back(
    restow: Callable[..., tuple[int, list[Any]]], tmp_path: Path
) -> None:
    plan = make_plan(restow, "orders", tmp_path)
    code, events = restow("execute", str(plan), "--yes", "--throttle", "10MB/s")
    assert code == 0, events[-1]
    kinds = [each["event"] for each in events]
    assert kinds[0] == "run"
    assert kinds[-1] == "ended"
    assert {"begun", "arrived", "progress", "throttle"} <= set(kinds)
    assert replicas(restow, "orders") == [[2, 1], [2, 1]]

    code, (shown,) = restow("undo")
    assert code == 0
    assert len(shown["moves"]) == 2
    assert replicas(restow, "orders") == [[2, 1], [2, 1]], "without --yes nothing is done"
    code, events = restow("undo", "--yes", "--throttle", "none")
    assert code == 0, events[-1]
    assert replicas(restow, "orders") == [[0, 1], [1, 0]]
    assert restow("doctor")[0] == 0
    assert restow("execute", str(plan), "--yes", "--throttle", "none")[0] == 0, (
        "what was undone can be done again"
    )


def test_invalid_command_is_refused_in_one_line_and_changes_nothing(
    restow: Callable[..., tuple[int, list[Any]]], tmp_path: Path
) -> None:
    plan = make_plan(restow, "refused", tmp_path)
    for arguments, code, words in (
        (("execute", str(tmp_path / "none.json"), "--yes", "--throttle", "none"), 2, "cannot be read"),
        (("execute", str(plan), "--yes", "--throttle", "fast"), 2, "is not a rate above zero"),
        (("execute", str(plan), "--yes", "--throttle", "none", "--hours", "at night"), 2, "part of the day"),
        (("resume", "--run", "nobody"), 2, "there is no run 'nobody'"),
        (("cancel",), 2, "no run on this cluster needs care"),
        (("control", "--pause"), 2, "no run is being carried out"),
        (("control",), 2, "nothing to change"),
    ):
        found, (said,) = restow(*arguments)
        assert (found, words in said) == (code, True), (arguments, said)
    assert replicas(restow, "refused") == [[0, 1], [1, 0]]


def test_execute_is_refused_after_drift(restow: Callable[..., tuple[int, list[Any]]], tmp_path: Path) -> None:
    plan = make_plan(restow, "drifted", tmp_path)
    assert restow("execute", str(plan), "--yes", "--throttle", "none")[0] == 0
    code, (said,) = restow("execute", str(plan), "--yes", "--throttle", "none")
    assert code == 1
    assert "the cluster is not what the plan was made for" in said


def test_execute_without_yes_is_refused_without_a_terminal(
    restow: Callable[..., tuple[int, list[Any]]], tmp_path: Path
) -> None:
    plan = make_plan(restow, "unasked", tmp_path)
    code, (said,) = restow("execute", str(plan), "--throttle", "none")
    assert code == 2
    assert "add --yes to do it" in said
    assert replicas(restow, "unasked") == [[0, 1], [1, 0]]


def test_check_says_whether_a_run_could_begin_and_changes_nothing(
    restow: Callable[..., tuple[int, list[Any]]], tmp_path: Path
) -> None:
    plan = make_plan(restow, "checked", tmp_path)
    code, (verdict,) = restow("execute", str(plan), "--check")
    assert (code, verdict["holds"]) == (0, True), verdict
    names = {each["name"] for each in verdict["checks"]}
    assert {"no drift", "permissions", "free space", "brokers alive", "limits", "earlier runs"} <= names
    assert replicas(restow, "checked") == [[0, 1], [1, 0]]
    assert not (tmp_path / "state").exists(), "no journal was begun"

    assert restow("execute", str(plan), "--yes", "--throttle", "none")[0] == 0
    code, (verdict,) = restow("execute", str(plan), "--check")
    assert (code, verdict["holds"]) == (1, False)
    failing = {each["name"]: each["evidence"] for each in verdict["checks"] if each["outcome"] == "fails"}
    assert list(failing) == ["no drift"]
    assert "checked-0 is already as the plan wants it" in failing["no drift"]


def test_watch_shows_the_status(restow: Callable[..., tuple[int, list[Any]]]) -> None:
    code, (standing,) = restow("watch")
    assert code == 0
    assert standing["under_way"] == 0


def test_execute_refuses_a_run_that_misses_its_deadline_and_verify_tells_of_the_prediction(
    restow: Callable[..., tuple[int, list[Any]]], tmp_path: Path
) -> None:
    plan = make_plan(restow, "late", tmp_path)
    late = ("--throttle", "10MB/s", "--deadline", "1ms")
    code, (checked,) = restow("execute", str(plan), "--check", *late)
    assert code == 1
    assert [each["name"] for each in checked["checks"] if each["outcome"] == "fails"] == ["rehearsal"]
    code, (why,) = restow("execute", str(plan), "--yes", *late)
    assert code == 1
    assert "it may miss its deadline" in why
    assert "--anyway" in why
    assert replicas(restow, "late") == [[0, 1], [1, 0]]
    code, (why,) = restow("execute", str(plan), "--yes", "--throttle", "10MB/s", "--deadline", "soon")
    assert (code, "'soon' is no time" in why) == (2, True)

    code, events = restow("execute", str(plan), "--yes", *late, "--anyway")
    assert code == 0, events[-1]
    first, last = events[0], events[-1]["summary"]
    assert last["predicted_s"] == pytest.approx(first["predicted"]["seconds"]["p50"], abs=0.1)
    assert last["prediction_error"] is not None
    assert any("miss its deadline" in each["why"] for each in events if each["event"] == "warned")
    progress = [each["predicted"] for each in events if each["event"] == "progress"]
    assert {each["seconds"]["p50"] for each in progress} == {first["predicted"]["seconds"]["p50"]}
    _, (verdict,) = restow("verify", str(plan))
    (note,) = verdict["notes"]
    assert "predicted" in note
    assert "it took" in note
