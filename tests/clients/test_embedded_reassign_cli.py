"""Snapshots, pinned plans and Apache's tool from the command line, on an embedded cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from restow.cli import run
from tests.clients.embedded import Running, embedded, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with embedded(4, data=tmp_path / "cluster") as cluster:
        yield cluster


class Shell:
    """The command line with the cluster's address."""

    def __init__(self, running: Running, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self._where = ("--bootstrap-server", running.bootstrap)
        self._capsys = capsys
        self._folder = folder

    def file(self, name: str, *parts: tuple[str, int, list[int]]) -> str:
        rows = [{"topic": topic, "partition": number, "replicas": ids} for topic, number, ids in parts]
        path = self._folder / name
        path.write_text(json.dumps({"version": 1, "partitions": rows}))
        return str(path)

    def run(self, *words: str, code: int = 0, online: bool = True) -> str:
        found = run([*words, *(self._where if online else ())])
        said = self._capsys.readouterr()
        assert found == code, said
        return said.out + said.err

    def json(self, *words: str, online: bool = True) -> Any:
        return json.loads(self.run(*words, "--json", online=online))


@pytest.fixture
def shell(running: Running, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Shell:
    shell = Shell(running, capsys, tmp_path)
    shell.run("topics", "create", "t", "--replica-assignment", "0:1,1:2,2:0")
    return shell


def test_snapshot_plan_show_and_diff_work_together(shell: Shell, tmp_path: Path) -> None:
    before, after, plan = (str(tmp_path / name) for name in ("before.json", "after.json", "plan.json"))
    assert "4 brokers" in shell.run("snapshot", "-o", before)
    moves = shell.file("moves.json", ("t", 0, [3, 2]), ("t", 1, [1, 2]))
    told = shell.json("plan", "from-json", moves, "-o", plan)
    assert told["moves"] == 1
    assert told["steps"] == 2
    assert "t-0: [0, 1] → [3, 2]" in shell.run("show", plan, "--moves", online=False)
    whole = shell.json("show", plan, "--snapshot", before, online=False)
    assert [each["broker"] for each in whole["brokers"]] == [0, 1, 2, 3]
    again = shell.json("plan", "from-json", moves, "--snapshot", before, "--extra-copies", "2", online=False)
    assert again["steps"] == 1
    shell.run("reassign", "--execute", "--reassignment-json-file", moves)
    wait_until(lambda: "No partition" in shell.run("reassign", "--list"), "the move is done")
    shell.run("snapshot", "-o", after)
    found = shell.json("snapshot", "diff", before, after, online=False)["differences"]
    assert "t-0, replicas: [0, 1] → [3, 2]" in found


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("plan", "from-json", "nowhere.json"), "cannot be read"),
        (("show", "nowhere.json"), "cannot be read"),
        (("snapshot", "diff", "nowhere.json", "nowhere.json"), "cannot be read"),
    ],
)
def test_missing_files_are_reported(
    words: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(list(words)) == 2
    assert complaint in capsys.readouterr().err


def test_impossible_plan_is_refused_in_one_line(shell: Shell) -> None:
    moves = shell.file("moves.json", ("t", 0, [0, 99]))
    said = shell.run("plan", "from-json", moves, code=2)
    assert said == "Error: t-0 is to have a replica on broker 99, which is not there\n"
    assert "extra copies is 0" in shell.run("plan", "from-json", moves, "--extra-copies", "0", code=2)


def test_move_that_only_adds_replicas_is_cancelled(shell: Shell, running: Running) -> None:
    """The original says that none of the moves is active."""
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=running.bootstrap)
    for _ in range(40):
        producer.send("t", b"x" * 100_000, partition=0)
    producer.flush()
    producer.close()
    moves = shell.file("moves.json", ("t", 0, [0, 1, 3]))
    file = ("--reassignment-json-file", moves)
    shell.run("reassign", "--execute", *file, "--throttle", "1000")
    assert "t-0: replicas: 0,1,3. adding: 3." in shell.run("reassign", "--list")
    said = shell.run("reassign", "--cancel", *file)
    assert "Successfully cancelled partition reassignment for: t-0" in said
    assert "No partition" in shell.run("reassign", "--list")


def test_change_of_the_factor_is_refused_when_disallowed(shell: Shell) -> None:
    moves = shell.file("moves.json", ("t", 0, [0, 1, 3]))
    said = shell.run(
        "reassign",
        "--execute",
        "--reassignment-json-file",
        moves,
        "--disallow-replication-factor-change",
        code=1,
    )
    assert "Error reassigning partition(s):\nt-0: " in said
    assert "No partition" in shell.run("reassign", "--list")


def test_dead_broker_does_not_keep_the_others_throttled(shell: Shell, running: Running) -> None:
    moves = shell.file("moves.json", ("t", 0, [0, 1]))
    shell.run("reassign", "--execute", "--reassignment-json-file", moves, "--throttle", "5000")
    running.kill(1)
    wait_until(lambda: "3 brokers" in shell.run("snapshot"), "the others have noticed")
    said = shell.run("reassign", "--verify", "--reassignment-json-file", moves, code=1)
    assert "broker 1 is not there: its throttles could not be cleared" in said
    left = [each for each in shell.json("snapshot")["brokers"] if each["configs"]]
    assert left == []
