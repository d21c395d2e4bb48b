"""`restow reassign --zookeeper`: the tool's old way, through nodes, on our brokers and on Apache's."""

from __future__ import annotations

import gc
import json
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from harness.apache import apache_kafka
from harness.brokers import broker_processes, wait_for
from harness.zookeeper import zookeeper
from restow.cli import run
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    Places = tuple[str, str]

# kafka-python leaves a refused socket to the garbage collector, which warns of it.
pytestmark = pytest.mark.jvm

SLOW, FAST = "10000", "50000000"
WAIT_S = 120
RECORDS, RECORD_BYTES = 20, 100_000
PATIENT = {"zookeeper.session.timeout.ms": "45000"}
"""No broker dies here, so none may lose its session when the machine stalls."""


@contextmanager
def ours(folder: Path) -> Iterator[Places]:
    with broker_processes(folder, configs=PATIENT) as brokers:
        yield brokers.bootstrap, f"{brokers.zookeeper.address}/restow"


@contextmanager
def apaches(folder: Path) -> Iterator[Places]:
    with (
        zookeeper(folder / "zookeeper") as server,
        apache_kafka(folder / "kafka", nodes=3, heap="256m", zookeeper=f"{server.address}/old") as cluster,
    ):
        yield cluster.bootstrap, f"{server.address}/old"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(ours, id="ours"),
        pytest.param(apaches, id="3.9.1", marks=[pytest.mark.apache, pytest.mark.full]),
    ],
)
def places(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """Yield the addresses of three brokers and of their nodes in ZooKeeper."""
    with ExitStack() as stack:
        with needs_kafka():
            found = stack.enter_context(request.param(tmp_path_factory.mktemp("brokers")))
        yield found
    gc.collect()


class Tool:
    """The command line with ZooKeeper's address, or the brokers'."""

    def __init__(self, places: Places, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.bootstrap, nodes = places
        self.nodes = ("reassign", "--zookeeper", nodes)
        self.wire = ("--bootstrap-server", self.bootstrap)
        self._folder = folder
        self._capsys = capsys

    def run(self, *words: str, code: int = 0) -> str:
        found = run(list(words))
        said = self._capsys.readouterr()
        assert found == code, said
        return said.out + said.err

    def file(self, name: str, document: Mapping[str, object]) -> str:
        path = self._folder / name
        path.write_text(json.dumps({"version": 1, **document}))
        return str(path)

    def moves(self, name: str, topic: str, *replicas: int, **more: object) -> tuple[str, str]:
        entry = {"topic": topic, "partition": 0, "replicas": replicas, **more}
        return "--reassignment-json-file", self.file(name, {"partitions": [entry]})

    def throttles(self) -> dict[str, Any]:
        """Return all throttles of brokers and topics."""
        seen = json.loads(self.run("snapshot", "--json", *self.wire))
        owners = [(f"broker {each['id']}", each) for each in seen["brokers"]]
        owners += [(f"topic {each['name']}", each) for each in seen["topics"]]
        return {
            f"{key} of {owner}": value
            for owner, each in owners
            for key, value in each["configs"].items()
            if "throttled" in key
        }


@pytest.fixture
def tool(places: Places, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Tool:
    return Tool(places, tmp_path, capsys)


def test_tool_executes_lists_and_verifies(tool: Tool) -> None:
    tool.run("topics", "create", "t", "--replica-assignment", "1:2", *tool.wire)
    assert "No partition reassignments found." in tool.run(*tool.nodes, "--list")
    file = tool.moves("moves.json", "t", 3, 2)
    said = tool.run(*tool.nodes, "--execute", *file, "--throttle", "10000000")
    assert '"replicas":[1,2],"log_dirs":["any","any"]' in said
    assert "The inter-broker throttle limit was set to 10000000 B/s" in said
    assert "Successfully started partition reassignment for t-0" in said
    done = "Reassignment of partition t-0 is completed."
    wait_for("the move is done", lambda: done in tool.run(*tool.nodes, "--verify", *file), WAIT_S)
    wait_for("brokers have heard of it", lambda: not tool.throttles(), WAIT_S)
    with_dirs = tool.moves("dirs.json", "t", 3, 2, log_dirs=["any", "/d"])
    said = tool.run(*tool.nodes, "--execute", *with_dirs, code=1)
    assert said.startswith("Error: log_dirs need --bootstrap-server")


def test_tool_generates_a_proposal(tool: Tool) -> None:
    tool.run("topics", "create", "g", "--replica-assignment", "1:2,2:1", *tool.wire)
    topics = tool.file("topics.json", {"topics": [{"topic": "g"}]})
    said = tool.run(
        *tool.nodes, "--generate", "--topics-to-move-json-file", topics, "--broker-list", "2,3"
    ).splitlines()
    present, proposed = (json.loads(line) for line in said if line.startswith("{"))
    assert [each["replicas"] for each in present["partitions"]] == [[1, 2], [2, 1]]
    assert [sorted(each["replicas"]) for each in proposed["partitions"]] == [[2, 3], [2, 3]]


def test_tool_runs_one_reassignment_at_a_time_and_changes_only_its_throttle(tool: Tool) -> None:
    tool.run("topics", "create", "slow", "--replica-assignment", "1:2", *tool.wire)
    write(tool.bootstrap, "slow")
    file = tool.moves("slow.json", "slow", 1, 3)
    tool.run(*tool.nodes, "--execute", *file, "--throttle", SLOW)
    assert "slow-0" in tool.run(*tool.nodes, "--list")
    assert "is still in progress" in tool.run(*tool.nodes, "--verify", *file)
    wait_for("brokers have heard of it", lambda: rates(tool) == {SLOW}, WAIT_S)
    assert tool.throttles()["follower.replication.throttled.replicas of topic slow"] == "0:3"

    tool.run("topics", "create", "other", "--replica-assignment", "1:2", *tool.wire)
    other = tool.moves("other.json", "other", 3, 2)
    assert "There is an existing assignment running." in tool.run(*tool.nodes, "--execute", *other)
    assert "cannot be cancelled" in tool.run(*tool.nodes, "--cancel", *file, code=1)
    assert "slow-0" in tool.run(*tool.nodes, "--list")

    said = tool.run(*tool.nodes, "--execute", *file, "--throttle", FAST)
    assert "There is an existing assignment running." in said
    assert f"The inter-broker throttle limit was set to {FAST} B/s" in said
    done = "Reassignment of partition slow-0 is completed."
    wait_for("the move is done", lambda: done in tool.run(*tool.nodes, "--verify", *file), WAIT_S)
    wait_for("brokers have heard of it", lambda: not tool.throttles(), WAIT_S)
    described = json.loads(tool.run("topics", "describe", "other", "--json", *tool.wire))
    assert described["partitions"][0]["replicas"] == [1, 2]


def rates(tool: Tool) -> set[str]:
    return {value for name, value in tool.throttles().items() if ".rate of " in name}


def write(bootstrap: str, topic: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for _ in range(RECORDS):
        producer.produce(topic, bytes(RECORD_BYTES), partition=0)
    assert producer.flush(WAIT_S) == 0


def test_unreachable_zookeeper_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reassign", "--zookeeper", "not an address", "--list"]) == 1
    assert "is not HOST:PORT" in capsys.readouterr().out
