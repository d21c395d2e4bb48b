"""Restow called from Python, as the documents show it, against the embedded cluster."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaProducer

import restow
from restow.client import NewTopic
from restow.execute import Ending, NotNow, RunEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
NEEDS_SPARK = "restow.pipeline("
PARTITIONS = 6
FEW = {"offsets.topic.num.partitions": "4"}


@pytest.fixture
def kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[restow.cluster.ThreadedCluster]:
    """Four brokers with a topic, on which no group was ever used, and journals in a folder of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RESTOW_JOURNAL", str(tmp_path / "journals"))
    with restow.cluster.ThreadedCluster(4, properties=FEW) as running:
        with restow.connect(running.bootstrap) as cluster:
            orders = NewTopic(
                name="orders", by_hand={number: (3, number % 3) for number in range(PARTITIONS)}
            )
            assert cluster.ask(lambda admin: admin.create_topics([orders])) == {"orders": None}
        yield running


def _fill(bootstrap: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all")
    for number in range(200):
        producer.send("orders", bytes(10_000), partition=number % PARTITIONS)
    producer.flush()
    producer.close()


def _replicas(snapshot: restow.Snapshot) -> list[tuple[int, ...]]:
    return [partition.replicas for partition in snapshot.topic["orders"].partitions]


def _blocks(document: str) -> list[str]:
    found = BLOCK.findall((ROOT / document).read_text(encoding="utf-8"))
    return [block for block in found if ">>> " not in block and NEEDS_SPARK not in block]


@pytest.mark.parametrize("document", ["README.md", "docs/api.md"])
def test_python_examples_run_against_the_embedded_cluster(
    document: str, kafka: restow.cluster.ThreadedCluster
) -> None:
    """One after the other in one namespace, as somebody would try them."""
    with restow.connect(kafka.bootstrap) as cluster:
        restow.write_snapshot(cluster.snapshot(), "now.json")
    names: dict[str, Any] = {"__name__": "example"}
    for block in _blocks(document):
        exec(compile(block.replace("localhost:9092", kafka.bootstrap), document, "exec"), names)  # noqa: S102


def test_documents_have_examples_of_the_whole_flow() -> None:
    for document in ("README.md", "docs/api.md"):
        calls = ("restow.connect(", "restow.plan(", ".execute(", ".verify(", ".undo(")
        assert any(all(call in block for call in calls) for block in _blocks(document)), document


def test_cluster_drains_verifies_and_undoes_inside_a_running_loop(
    kafka: restow.cluster.ThreadedCluster,
) -> None:
    """A notebook has a loop that is running already."""
    _fill(kafka.bootstrap)
    heard: list[str] = []

    async def cell() -> None:
        with restow.connect(kafka.bootstrap) as cluster:
            before = cluster.snapshot()
            plan = restow.plan(before, drain=3)
            assert plan.moves
            assert not cluster.verify(plan).holds
            run = cluster.execute(plan, throttle="none", on_event=lambda event: heard.append(event.kind))
            assert run.is_good
            assert run.run in run._repr_html_()
            assert cluster.verify(plan).holds
            assert cluster.status().under_way == 0
            back = cluster.undo(run, throttle="none")
            assert back.is_good
            assert _replicas(cluster.snapshot()) == _replicas(before)

    asyncio.run(cell())
    assert heard[0] == "run"
    assert heard[-1] == "ended"


def test_callback_that_raises_leaves_the_run_to_be_resumed(kafka: restow.cluster.ThreadedCluster) -> None:
    _fill(kafka.bootstrap)

    def stop(event: RunEvent) -> None:
        if event.kind == "begun":
            raise KeyboardInterrupt

    with restow.connect(kafka.bootstrap) as cluster:
        plan = restow.plan(cluster.snapshot(), drain=3, topics="orders")
        with pytest.raises(KeyboardInterrupt):
            cluster.execute(plan, throttle="1kB/s", on_event=stop)
        with pytest.raises(NotNow, match="has not been brought to its end"):
            cluster.execute(plan, throttle="none")
        run = cluster.resume(throttle="none")
        assert run.ending is Ending.DONE
        assert cluster.verify(plan).holds


def test_connect_says_why_it_cannot(tmp_path: Path) -> None:
    with pytest.raises(restow.RestowError, match=r"127\.0\.0\.1:1"):
        restow.connect("127.0.0.1:1")
    with pytest.raises(restow.RestowError, match="cannot be read"):
        restow.connect("127.0.0.1:1", command_config=tmp_path / "none")
    with pytest.raises(restow.RestowError, match=r"command_property: security\.protocol"):
        restow.connect("127.0.0.1:1", command_property={"security.protocol": "CARRIER_PIGEON"})
