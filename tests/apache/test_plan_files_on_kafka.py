"""Plan files on Apache Kafka: its own tool executes an exported plan, and recreated topics are noticed."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pytest

from harness.apache import apache_kafka
from harness.brokers import wait_for
from harness.jars import KAFKA_4
from harness.tools import Tools
from restow.cli import run
from restow.client import ConnectionSettings, NewTopic, connected
from tests.apache.traffic import ANY_FILL, WAIT_S, load
from tests.clients.embedded import embedded
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from restow.client import KafkaAdmin

T = TypeVar("T")
BEFORE = {0: (1, 2), 1: (2, 3), 2: (3, 1)}
BYTES_EACH = 200_000


@pytest.fixture(autouse=True)
def hushed(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Silence kafka-python's log, whose records of a lost connection would keep its socket open."""
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")
    yield
    gc.collect()


@dataclass(frozen=True, slots=True)
class Cluster:
    """The address, and the tool that moves partitions: its arguments and its output."""

    bootstrap: str
    reassign: Callable[..., str]


@pytest.fixture(scope="module", params=["embedded", pytest.param("4.3.1", marks=pytest.mark.apache)])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start brokers 1 to 4 with two log dirs each. On Apache Kafka its own tool moves partitions."""
    with ExitStack() as stack:
        if request.param == "embedded":
            bootstrap = stack.enter_context(embedded(5, log_dirs=2)).bootstrap
            yield Cluster(bootstrap, reassign_of_ours)
            return
        folder = tmp_path_factory.mktemp("kafka")
        with needs_kafka():
            apache = stack.enter_context(apache_kafka(folder, nodes=4, version=KAFKA_4, log_dirs=2))
        yield Cluster(apache.bootstrap, partial(Tools(KAFKA_4).run, "kafka-reassign-partitions"))


def reassign_of_ours(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "restow", "reassign", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def on(bootstrap: str, ask: Callable[[KafkaAdmin], Awaitable[T]]) -> T:
    async def main() -> T:
        async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
            return await ask(admin)

    return asyncio.run(main())


def create(bootstrap: str, topic: str) -> None:
    assert on(bootstrap, lambda admin: admin.create_topics([NewTopic(name=topic, by_hand=BEFORE)])) == {
        topic: None
    }
    wait_for("it is known", lambda: replicas_now(bootstrap, topic) == BEFORE, WAIT_S)


def replicas_now(bootstrap: str, topic: str) -> dict[int, tuple[int, ...]]:
    topics = {each.name: each for each in on(bootstrap, lambda admin: admin.describe_topics())}
    return {each.number: each.replicas for each in topics[topic].partitions} if topic in topics else {}


def carried_out(cluster: Cluster, file: Path) -> None:
    """Execute a file with the tool, and check its output."""
    arguments = ("--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", str(file))
    assert "Successfully started" in cluster.reassign(*arguments, "--execute")

    def done() -> bool:
        said = cluster.reassign(*arguments, "--verify", "--preserve-throttles")
        return "still in progress" not in said and "is complete" in said

    wait_for("the tool has verified it", done, WAIT_S)


def wrong(plan: str, bootstrap: str, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """Return the failed checks of `restow verify`."""
    capsys.readouterr()
    run(["verify", plan, "-b", bootstrap, "--journal", f"{plan}.journal", "--json"])
    checks = json.loads(capsys.readouterr().out)["checks"]
    return {each["name"] for each in checks if each["outcome"] != "holds"}


def test_kafkas_tool_executes_a_plan_and_its_inverse(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = cluster.bootstrap
    create(bootstrap, "there")
    load(bootstrap, "there", len(BEFORE), BYTES_EACH)
    moves, plan = tmp_path / "moves.json", str(tmp_path / "plan.json")
    drain = ["plan", "drain", "3", "--disks", "--topics", "there", "-b", bootstrap, *ANY_FILL]
    assert run([*drain, "-o", plan]) == 0
    capsys.readouterr()
    assert run(["show", plan, "--format", "kafka", "--rollback", str(tmp_path / "back.json")]) == 0
    moves.write_text(capsys.readouterr().out)
    carried_out(cluster, moves)
    after = replicas_now(bootstrap, "there")
    assert not any(3 in replicas for replicas in after.values())
    assert wrong(plan, bootstrap, capsys) <= {"first replicas lead"}, "that tool elects no leaders"
    carried_out(cluster, tmp_path / "back.json")
    assert replicas_now(bootstrap, "there") == BEFORE


def test_recreated_topic_is_refused_by_execute_and_left_behind_by_rebase(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = cluster.bootstrap
    create(bootstrap, "remade")
    plan, new = str(tmp_path / "plan.json"), tmp_path / "new.json"
    assert run(["plan", "drain", "2", "--topics", "remade", "-b", bootstrap, *ANY_FILL, "-o", plan]) == 0
    assert on(bootstrap, lambda admin: admin.delete_topics(["remade"])) == {"remade": None}
    wait_for("it is gone", lambda: not replicas_now(bootstrap, "remade"), WAIT_S)
    create(bootstrap, "remade")
    capsys.readouterr()
    where = ["-b", bootstrap, "--journal", str(tmp_path / "state")]
    assert run(["execute", plan, "--throttle", "none", "--yes", *where]) == 1
    said = capsys.readouterr().err
    assert "remade-0 is of a topic that was deleted and made anew" in said
    assert "restow plan rebase" in said
    assert replicas_now(bootstrap, "remade") == BEFORE
    assert run(["plan", "rebase", plan, "-b", bootstrap, "-o", str(new)]) == 3
    assert not new.exists()
