"""`restow plan explain`: single partitions and brokers of a plan, with numbers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from restow.cli.app import run
from restow.cli.plan.progress import text_of
from restow.plan.judge.bound import Bound
from restow.plan.search import Progress

from test_cli_plan import write_snapshot  # isort: skip

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    return write_snapshot(tmp_path / "now.json", 24)


def test_broker_is_explained_with_its_goals_and_what_wider_bands_save(
    snapshot: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "explain", "3", "--snapshot", snapshot, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["broker"] == 3
    goals = {each["goal"]: each for each in told["goals"]}
    assert goals["disk"]["before"] == 0
    assert goals["disk"]["after"] > 0
    assert told["comes"] * 1000 == told["comes_bytes"] > 0
    assert told["goes"] == 0
    rules = [each["rule"] for each in told["savings"]]
    assert any(rule.startswith("bands 1.5 times as wide") for rule in rules)
    wider = told["savings"][0]
    assert wider["saved_bytes"] == told["comes_bytes"] - wider["copied_bytes"]


def test_partition_is_explained_with_its_move_and_the_brokers_it_did_not_go_to(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.json"
    assert run(["plan", "drain", "0", "--snapshot", snapshot, "-o", str(plan)]) == 0
    capsys.readouterr()
    assert run(["plan", "explain", "orders-0", "--drain", "0", "--snapshot", snapshot, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["before"] == [0, 1]
    assert 0 not in told["after"]
    assert told["reason"].startswith("drain broker 0")
    (move,) = told["moves"]
    assert move["source"] == 0
    assert (move["copied_bytes"], move["freed_bytes"]) == (1000, 1000)
    assert sum(move["others"].values()) == 1, "of four brokers two have it afterwards, and one is emptied"


def test_partition_that_stays_says_why(snapshot: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plan", "explain", "orders-1", "--drain", "0", "--exclude-partitions", "orders-1"]
    assert run([*arguments, "--snapshot", snapshot]) == 0
    assert "it stays: it is excluded (--exclude-partitions)" in capsys.readouterr().out


def test_broker_is_drawn_as_a_table(snapshot: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "explain", "0", "--snapshot", snapshot]) == 0
    told = capsys.readouterr().out
    assert "broker 0: receives and gives" in told
    assert "if this were allowed" in told


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("orders-99", "there is no partition orders-99 in this cluster: orders has partitions 0 to 23"),
        ("nothing-0", "there is no topic 'nothing'; there are orders"),
        ("77", "there is no broker 77 in this cluster: there are 0, 1, 2, 3"),
        ("orders", "is neither a partition, like orders-7, nor the id of a broker"),
    ],
)
def test_what_is_not_there_is_refused(
    what: str, says: str, snapshot: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "explain", what, "--snapshot", snapshot]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_explain_writes_no_plan(snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "plan.json"
    assert run(["plan", "explain", "0", "--snapshot", snapshot, "-o", str(target)]) == 2
    assert "explain writes no plan" in capsys.readouterr().err
    assert not target.exists()


def test_start_from_keeps_the_old_plan(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    assert run(["plan", "balance", "--snapshot", snapshot, "-o", first]) == 0
    again = ["plan", "balance", "--snapshot", snapshot, "--seed", "5", "--start-from", first, "-o", second]
    assert run(again) == 0
    capsys.readouterr()
    assert run(["plan", "compare", first, second, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["different"] == []
    assert told["moves"][0] == told["moves"][1] == told["same"]


def test_start_from_a_file_that_is_no_plan_is_refused(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "new.json"
    arguments = ["plan", "balance", "--snapshot", snapshot, "--start-from", snapshot, "-o", str(target)]
    assert run(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert not target.exists()


def test_progress_says_how_near_the_plan_is() -> None:
    text = text_of(Progress("mending", 1.1e9, 0.0), Bound(1e9, "how"))
    assert text.startswith("mending: 1.1 GB to copy, 1.100 × the least possible so far, replicas in band")
    assert "0.25 average loads out of band" in text_of(Progress("saving", 0.0, 0.25), Bound(0.0, "how"))
