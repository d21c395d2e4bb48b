"""`restow reassign --zookeeper`: the tool's old way, through nodes, on brokers of ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from harness.brokers import BrokerProcesses, broker_processes, wait_for
from restow.cli import run
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcesses]:
    with needs_kafka(), broker_processes(tmp_path_factory.mktemp("brokers")) as running:
        yield running


class Tool:
    """The command line with ZooKeeper's address, or the brokers'."""

    def __init__(self, brokers: BrokerProcesses, capsys: pytest.CaptureFixture[str]) -> None:
        self.nodes = ("reassign", "--zookeeper", f"{brokers.zookeeper.address}/restow")
        self.wire = ("--bootstrap-server", brokers.bootstrap)
        self._capsys = capsys

    def run(self, *words: str, code: int = 0) -> str:
        found = run(list(words))
        said = self._capsys.readouterr()
        assert found == code, said
        return said.out + said.err


def _file(path: Path, *replicas: int, **more: object) -> str:
    entry = {"topic": "t", "partition": 0, "replicas": replicas, **more}
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    return str(path)


def test_execute_list_and_verify(
    brokers: BrokerProcesses, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    tool = Tool(brokers, capsys)
    tool.run("topics", "create", "t", "--replica-assignment", "1:2", *tool.wire)
    assert "No partition reassignments found." in tool.run(*tool.nodes, "--list")
    file = ("--reassignment-json-file", _file(tmp_path / "moves.json", 3, 2))
    said = tool.run(*tool.nodes, "--execute", *file, "--throttle", "10000000")
    assert '"replicas":[1,2],"log_dirs":["any","any"]' in said
    assert "The inter-broker throttle limit was set to 10000000 B/s" in said
    assert "Successfully started partition reassignment for t-0" in said
    done = "Reassignment of partition t-0 is completed."
    wait_for("the move is done", lambda: done in tool.run(*tool.nodes, "--verify", *file))
    assert "throttled" not in tool.run("snapshot", "--json", *tool.wire)
    with_dirs = ("--reassignment-json-file", _file(tmp_path / "dirs.json", 3, 2, log_dirs=["any", "/d"]))
    said = tool.run(*tool.nodes, "--execute", *with_dirs, code=1)
    assert said.startswith("Error: log_dirs need --bootstrap-server")


def test_no_such_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reassign", "--zookeeper", "not an address", "--list"]) == 1
    assert "is not HOST:PORT" in capsys.readouterr().out
