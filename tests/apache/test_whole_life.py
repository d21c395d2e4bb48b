"""The whole life of a plan, on every kind of cluster, while clients write and read.

    snapshot ─► plan ─► execute, killed in mid-move ─► doctor --fix
                        resume, killed in mid-move ─► resume ─► verify ─► undo ─► doctor

At the end everything is as before, and no client has noticed.
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from harness.apache import apache_kafka
from harness.brokers import wait_for
from harness.jars import KAFKA_4, KAFKA_VERSION
from harness.zookeeper import zookeeper
from restow.cli import run
from restow.client import ConfigResource, ConnectionSettings, NewTopic, connected
from restow.execute.throttle.throttles import FOLLOWER_RATE, LEADER_REPLICAS
from tests.apache.secured_cluster import login, property_file, secured_kafka
from tests.apache.traffic import ANY_FILL, WAIT_S, Traffic, load
from tests.clients.embedded import embedded
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# kafka-python leaves a refused socket to the garbage collector, which warns of it.
TOPIC = "orders"
BEFORE = ((0, 1), (1, 2), (2, 0), (0, 1), (1, 2))
AFTER = ((2, 1), (0, 2), (2, 1), (1, 0), (1, 2, 0))
"""Other replicas; another order; one more. By index in the list of brokers."""
REORDERED = f"{TOPIC}-3"
BYTES_EACH = 10_000_000
"""Kafka sends a megabyte at once and then pauses for its window: these take minutes if slow."""
SLOW, FAST = "20kB/s", "50MB/s"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The address, the brokers, and the operator's own address and settings, if different."""

    bootstrap: str
    ids: tuple[int, int, int]
    entry: tuple[str, ...] = ()


@contextmanager
def ours(folder: Path) -> Iterator[Cluster]:
    with embedded(3, data=folder) as running:
        yield Cluster(running.bootstrap, (0, 1, 2))


@contextmanager
def on_zookeeper(folder: Path) -> Iterator[Cluster]:
    with (
        zookeeper(folder / "zookeeper", fsync=False) as server,
        apache_kafka(folder / "kafka", nodes=3, heap="256m", zookeeper=server.address) as cluster,
    ):
        yield Cluster(cluster.bootstrap, (1, 2, 3))


@contextmanager
def in_kraft(folder: Path, version: str) -> Iterator[Cluster]:
    with apache_kafka(folder, nodes=3, version=version) as cluster:
        yield Cluster(cluster.bootstrap, (1, 2, 3))


@contextmanager
def secured(folder: Path) -> Iterator[Cluster]:
    """Start a cluster where the operator logs in with a password, over TLS."""
    with secured_kafka(folder, nodes=3) as made:
        at = made.cluster.at
        config = property_file(folder, login("root", "SCRAM-SHA-512", "SASL_SSL") | made.trust())
        yield Cluster(at["PLAINTEXT"], (1, 2, 3), ("-b", at["LOGIN"], "--command-config", config))


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect garbage now, and not during another test."""
    yield
    gc.collect()


T = TypeVar("T")


def repeated(ask: Callable[[], tuple[bool, T]]) -> T:
    """Repeat until it succeeds; return the last result."""
    deadline = time.monotonic() + WAIT_S
    while True:
        content, seen = ask()
        if content:
            return seen
        assert time.monotonic() < deadline, seen
        time.sleep(0.1)


class Operator:
    """Runs commands with `--json`, and reads their output."""

    def __init__(self, cluster: Cluster, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._where = cluster.entry or ("-b", cluster.bootstrap)
        self._journal = ("--journal", str(folder / "state"))
        self._capsys = capsys

    def asks(self, *words: str) -> tuple[int, Any]:
        """Return the exit code, and the last document or the error."""
        code = run([*words, *self._where, "--json"])
        said = self._capsys.readouterr()
        return code, json.loads(said.out.splitlines()[-1]) if said.out else said.err

    def types(self, *words: str, code: int = 0) -> Any:
        """Return the document; check the exit code."""
        found, document = self.asks(*words)
        assert found == code, document
        return document

    def runs(self, *words: str, code: int = 0) -> Any:
        """Do the same for a command about runs."""
        return self.types(*words, *self._journal, code=code)

    def until(self, answer: Callable[[int, Any], bool], *words: str) -> Any:
        """Repeat a command until all brokers know of all changes."""

        def ask() -> tuple[bool, tuple[int, Any]]:
            seen = self.asks(*words, *self._journal)
            return answer(*seen), seen

        return repeated(ask)[1]

    def until_unchanged(self, but: str = "nothing") -> None:
        """Wait until a snapshot is as before, except for the controller, which may change at any time."""

        def ask() -> tuple[bool, list[str]]:
            self.types("snapshot", "-o", self.file("now.json"))
            run(["snapshot", "diff", self.file("before.json"), self.file("now.json"), "--json"])
            found = json.loads(self._capsys.readouterr().out)["differences"]
            left = [each for each in found if not each.startswith(("controller", but))]
            return not left, left

        repeated(ask)

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def killed(self, *words: str) -> None:
        """Run in a process of its own, and send SIGKILL when moves are under way."""
        command = [sys.executable, "-m", "restow", *words, *self._where, *self._journal, "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = []
            for line in process.stdout:
                said.append(line)
                event = json.loads(line)
                if event["event"] == "progress" and event["under_way"]:
                    break
            process.kill()
        assert process.returncode < 0, said


def ask(bootstrap: str, work: Callable[[Any], Any]) -> Any:
    async def main() -> Any:
        async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
            return await work(admin)

    return asyncio.run(main())


def prepare(bootstrap: str, ids: tuple[int, int, int]) -> None:
    """Create a topic with data, and foreign throttles."""
    by_hand = {number: tuple(ids[at] for at in replicas) for number, replicas in enumerate(BEFORE)}
    made = ask(bootstrap, lambda admin: admin.create_topics([NewTopic(name=TOPIC, by_hand=by_hand)]))
    assert made == {TOPIC: None}
    load(bootstrap, TOPIC, len(BEFORE), BYTES_EACH)
    changes = {
        ConfigResource("topic", TOPIC): {LEADER_REPLICAS: f"77:{ids[0]}"},
        ConfigResource("broker", str(ids[1])): {FOLLOWER_RATE: "99000000"},
    }
    assert ask(bootstrap, lambda admin: admin.incremental_alter_configs(changes)) == dict.fromkeys(changes)


def wanted(ids: tuple[int, int, int]) -> str:
    entries = [
        {"topic": TOPIC, "partition": number, "replicas": [ids[at] for at in replicas]}
        for number, replicas in enumerate(AFTER)
    ]
    return json.dumps({"version": 1, "partitions": entries})


def kinds(findings: Any) -> list[str]:
    """Return the kinds of a doctor's findings; an error has none."""
    return [each["finding"] for each in findings] if isinstance(findings, list) else []


def live_through(operator: Operator, traffic: Traffic) -> None:
    others = ["throttle nobody needs"] * 2
    findings = operator.until(lambda _, found: kinds(found) == others, "doctor")
    operator.types("snapshot", "-o", operator.file("before.json"))
    plan = operator.file("plan.json")
    operator.types("plan", "from-json", operator.file("moves.json"), *ANY_FILL, "-o", plan)

    operator.killed("execute", plan, "--yes", "--throttle", SLOW)
    found = operator.runs("doctor", code=1)
    assert "run without an end" in {each["finding"] for each in found}
    operator.until(lambda _, found: found == findings, "doctor", "--fix")
    operator.until_unchanged(but=REORDERED)  # which has arrived at once, and stays

    operator.killed("resume", "--yes", "--throttle", SLOW)
    assert "has not been brought to its end" in operator.runs(
        "execute", plan, "--yes", "--throttle", FAST, code=1
    )
    assert operator.runs("resume")["under_way"] > 0
    verdict = operator.runs("verify", plan, code=1)
    failing = {each["name"]: each["evidence"] for each in verdict["checks"] if each["outcome"] == "fails"}
    assert failing.keys() >= {"replicas in place", "nothing moves", "no throttles left"}

    assert operator.runs("resume", "--yes", "--throttle", FAST)["outcome"] == "done"
    verdict = operator.until(lambda code, _: code == 0, "verify", plan)
    assert "others have set" in verdict["checks"][-1]["evidence"]
    operator.until(lambda _, found: found == findings, "doctor")
    assert traffic.flows()

    assert operator.runs("undo", "--yes", "--throttle", FAST)["outcome"] == "done"
    operator.until(lambda _, found: found == findings, "doctor")
    operator.until_unchanged()


APACHE, FULL = pytest.mark.apache, pytest.mark.full


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param(ours, id="embedded", marks=FULL),
        pytest.param(on_zookeeper, id="3.9.1 on ZooKeeper", marks=[APACHE, FULL]),
        pytest.param(lambda folder: in_kraft(folder, KAFKA_VERSION), id="3.9.1", marks=[APACHE, FULL]),
        pytest.param(lambda folder: in_kraft(folder, KAFKA_4), id="4.3.1", marks=APACHE),
        pytest.param(secured, id="4.3.1 secured", marks=[APACHE, FULL]),
    ],
)
def test_whole_life_of_a_plan_loses_and_leaves_nothing(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        with needs_kafka():
            made: Cluster = stack.enter_context(cluster(tmp_path / "cluster"))
        prepare(made.bootstrap, made.ids)
        operator = Operator(made, tmp_path, capsys)
        (tmp_path / "moves.json").write_text(wanted(made.ids))
        with Traffic(made.bootstrap, TOPIC, len(BEFORE)) as traffic:
            wait_for("records flow", traffic.flows, WAIT_S)
            live_through(operator, traffic)
            traffic.check()
