"""The whole flow: collect, model, plan, execute, verify, and collect again.

The second measurement matches the plan: brokers are in their bands, or where the plan said.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaProducer

from harness.apache import apache_kafka
from harness.jars import KAFKA_4
from restow.cli import run
from restow.client import ConnectionSettings, NewTopic, connected
from restow.cluster.threaded import ThreadedCluster
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("patient")]

TOPIC, PARTITIONS = "orders", 16
RECORD = b"." * 1_000
SLACK = 0.02
"""Tolerance: brokers report sizes a moment apart, and a log is a little larger than its records."""


@pytest.fixture(
    params=["embedded", pytest.param("4.3.1", marks=[pytest.mark.apache, pytest.mark.full])], scope="module"
)
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start three brokers with ids from 1, or from 0."""
    with ExitStack() as stack:
        if request.param == "embedded":
            yield stack.enter_context(ThreadedCluster(3, fsync=False)).bootstrap
            return
        with needs_kafka():
            folder = tmp_path_factory.mktemp("kafka")
            yield stack.enter_context(apache_kafka(folder, nodes=3, version=KAFKA_4)).bootstrap


@pytest.fixture(autouse=True)
def same_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands use the test's session instead of starting one each."""

    @contextmanager
    def given(*about: object, **more: object) -> Iterator[SparkSession]:
        yield spark

    for module in ("options", "collect"):
        monkeypatch.setattr(f"restow.cli.pipeline.{module}.spark_for", given)


def write(bootstrap: str, records: int) -> None:
    """Write records, most of them to the first partitions."""
    with closing(KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=5)) as producer:
        for number in range(records):
            producer.send(TOPIC, RECORD, partition=min(number % PARTITIONS, number * 7 % PARTITIONS))
        producer.flush()


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    code = run([*arguments, "--json"])
    said = capsys.readouterr()
    assert code == 0, said.out + said.err
    return json.loads(said.out.splitlines()[-1])


def skewed_topic(bootstrap: str) -> None:
    """Create a topic with nearly all replicas on the first two of three brokers."""

    async def create() -> None:
        async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
            first, second, third = sorted(node.id for node in (await admin.describe_cluster()).nodes)
            homes = dict.fromkeys(range(PARTITIONS - 1), (first, second))
            homes[PARTITIONS - 1] = (third, first)
            answers = await admin.create_topics([NewTopic(name=TOPIC, by_hand=homes)])
            assert answers == {TOPIC: None}

    asyncio.run(create())


def have_groups(bootstrap: str) -> None:
    """Let Kafka create `__consumer_offsets` before the plan counts leaders: the run's mark would later."""
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": "earlier"})) as consumer:
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=False)


def measured(capsys: pytest.CaptureFixture[str], lake: str) -> dict[str, float]:
    """Return the busiest broker's multiple of the mean, by measure."""
    rows = told(capsys, "pipeline", "skew", "--lake", lake, "--of", "broker", "--rows", "500")["skew"]
    return {row["measure"]: row["max_share"] for row in rows}


def test_load_after_the_run_equals_the_plan(
    kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, journal = (str(tmp_path / name) for name in ("before", "after", "journal"))
    plan_file = str(tmp_path / "plan.json")
    skewed_topic(kafka)
    write(kafka, 4_000)
    have_groups(kafka)
    told(capsys, "collect", "--once", "--lake", first, "-b", kafka)
    write(kafka, 2_000)
    told(capsys, "collect", "--once", "--lake", first, "-b", kafka)
    made = told(
        capsys, "pipeline", "run", "--lake", first, "--window", "1s", "--load", str(tmp_path / "loads")
    )
    before = measured(capsys, first)
    assert before["size"] > 1.3
    plan = ("--load", made["loads"][0], "--band", "0.15", "-o", plan_file)
    promised = told(capsys, "plan", "balance", *plan, "-b", kafka)
    assert promised["moves"] > 0
    ended = told(
        capsys, "execute", plan_file, "--yes", "--throttle", "none", "--journal", journal, "-b", kafka
    )
    assert ended["outcome"] == "done"
    told(capsys, "verify", plan_file, "--journal", journal, "-b", kafka)
    told(capsys, "collect", "--once", "--lake", second, "-b", kafka)
    told(capsys, "pipeline", "run", "--lake", second)
    after = measured(capsys, second)
    goals = {goal["name"]: goal for goal in promised["goals"]}
    for goal, measure in (("disk", "size"), ("replicas", "replicas"), ("leaders", "leaders")):
        limit = max(1 + goals[goal]["band"], goals[goal]["after"][0])
        assert after[measure] <= limit * (1 + SLACK), (goal, before[measure], after[measure], limit)
    assert after["size"] < before["size"]
