"""A broker has died for good: plans that know it rebuild its replicas on others."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from harness.apache import apache_kafka
from harness.brokers import wait_for
from harness.jars import KAFKA_4
from restow.cli import run
from restow.client import ConnectionSettings, NewTopic, connected
from tests.apache.traffic import ANY_FILL, WAIT_S, load, read_all
from tests.clients.embedded import embedded
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Cluster = tuple[str, tuple[int, ...], Callable[[int], None]]

# kafka-python leaves a refused socket to the garbage collector, which warns of it.
DEAD, SPARE = 2, 3
TOPICS = {"left": ((0, 2), (2, 1), (0, 1)), "right": ((2, 0), (1, 2))}
"""By index in the list of brokers. The last of them has nothing."""
BYTES_EACH = 500_000


@contextmanager
def ours(folder: Path) -> Iterator[Cluster]:
    with embedded(4, data=folder) as running:
        yield running.bootstrap, (0, 1, 2, 3), running.kill


@contextmanager
def todays(folder: Path) -> Iterator[Cluster]:
    with apache_kafka(folder, nodes=4, version=KAFKA_4) as cluster:
        yield cluster.bootstrap, (1, 2, 3, 4), lambda broker: cluster.brokers[broker].kill()


@pytest.fixture(autouse=True)
def hushed(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Silence kafka-python's log, whose records of a lost connection would keep its socket open."""
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")
    yield
    gc.collect()


class Operator:
    """Runs commands with `--json`, and reads the last document."""

    def __init__(self, bootstrap: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._where = ("-b", bootstrap, "--json")
        self._journal = ("--journal", str(folder / "state"))
        self._plan = str(folder / "plan.json")
        self._capsys = capsys

    def asks(self, *words: str) -> tuple[int, Any]:
        code = run([*words, *self._where])
        said = self._capsys.readouterr()
        return code, json.loads(said.out.splitlines()[-1]) if said.out else said.err

    def types(self, *words: str) -> Any:
        code, document = self.asks(*words)
        assert code == 0, document
        return document

    def findings(self) -> set[str]:
        _, found = self.asks("doctor", *self._journal)
        return {each["finding"] for each in found} if isinstance(found, list) else {found}

    def replicas(self, topic: str) -> list[list[int]]:
        described = self.types("topics", "describe", topic)
        return [each["replicas"] for each in described["partitions"]]

    def carries_out(self, *plan: str) -> None:
        self.types("plan", *plan, *ANY_FILL, "-o", self._plan)
        ended = self.types("execute", self._plan, "--yes", "--throttle", "20MB/s", *self._journal)
        assert ended["outcome"] == "done"
        wait_for("it is verified", lambda: self.asks("verify", self._plan, *self._journal)[0] == 0, WAIT_S)


def create(bootstrap: str, ids: tuple[int, ...]) -> None:
    wanted = [
        NewTopic(name=name, by_hand={number: tuple(ids[at] for at in row) for number, row in enumerate(rows)})
        for name, rows in TOPICS.items()
    ]

    async def main() -> None:
        async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
            assert await admin.create_topics(wanted) == dict.fromkeys(TOPICS)

    asyncio.run(main())


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param(ours, id="embedded"),
        pytest.param(todays, id="4.3.1", marks=[pytest.mark.apache, pytest.mark.full]),
    ],
)
def test_replicas_of_a_dead_broker_are_rebuilt(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        with needs_kafka():
            bootstrap, ids, kill = stack.enter_context(cluster(tmp_path / "cluster"))
        create(bootstrap, ids)
        for name, rows in TOPICS.items():
            load(bootstrap, name, len(rows), BYTES_EACH)
        there = {name: read_all(bootstrap, name, len(rows)) for name, rows in TOPICS.items()}
        operator = Operator(bootstrap, tmp_path, capsys)
        dead, spare = ids[DEAD], ids[SPARE]

        kill(dead)
        wait_for("its death is known", lambda: operator.findings() == {"under-replicated"}, WAIT_S)
        operator.carries_out("replace", f"{dead}:{spare}", "--topics", "left")
        assert operator.replicas("left") == [
            [spare if at == DEAD else ids[at] for at in row] for row in TOPICS["left"]
        ]
        operator.carries_out("remove-brokers", str(dead))
        for row in operator.replicas("right"):
            assert dead not in row
            assert len(set(row)) == 2
        wait_for("all is in order", lambda: operator.findings() == set(), WAIT_S)
        for name, rows in TOPICS.items():
            assert read_all(bootstrap, name, len(rows)) == there[name]

        _, verdict = operator.asks("broker-check", str(dead))
        failing = {each["name"] for each in verdict["checks"] if each["outcome"] != "holds"}
        unknown = {"known", "no logs left"}
        assert failing <= {*unknown, "not the controller"}, "nobody knows it, but a quorum counts its voters"
