"""Replicas moved between log dirs by Apache Kafka's own tools, while they are written and read."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from harness.jars import KAFKA_4, KAFKA_VERSION
from harness.tools import Tools
from restow.model import TopicPartition
from tests.clients.embedded import Running, embedded, wait_until
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.apache

PARTITIONS = 2
BEFORE = 4000
VALUE = bytes(1000)
SLOW, FAST = 10_000, 5_000_000
"""Bytes per second. Of two megabytes per partition, the first leaves minutes' worth at any check."""
PATIENT = ("--timeout", "60000")
"""The tool's own timeout is ten seconds, and a busy machine may stall for as long."""
BATCH_BYTES = 100_000
"""A batch is copied whole at any rate, so none may be a large part of a partition."""


class Bench:
    """A topic on broker 0 of a cluster whose brokers have two log dirs each."""

    def __init__(self, tools: Tools, running: Running, path: Path) -> None:
        self.running = running
        self._tools = tools
        self._path = path

    def run(self, name: str, *arguments: str) -> str:
        return self._tools.run(name, "--bootstrap-server", self.running.bootstrap, *arguments)

    def log_dir(self, broker: int, number: int) -> str:
        return self.running.cluster.brokers[broker].options.log_dirs[number]

    def described(self, broker: int) -> list[dict[str, Any]]:
        """Return the log dirs of a broker as kafka-log-dirs prints them."""
        printed = self.run("kafka-log-dirs", "--describe", "--topic-list", "t", "--broker-list", str(broker))
        document = json.loads(printed.splitlines()[-1])
        return sorted(document["brokers"][0]["logDirs"], key=lambda each: str(each["logDir"]))

    def where(self, broker: int, partition: int = 0) -> list[str]:
        """Return the log dirs of a replica and its future replica, from the broker's own state."""
        logs = self.running.cluster.brokers[broker].services.logs
        key = TopicPartition("t", partition)
        return [each.path for each in logs.directories if key in each.logs or key in each.futures]

    def plan(self, replicas: list[int], log_dirs: list[str]) -> str:
        file = self._path / "plan.json"
        moves = [
            {"topic": "t", "partition": number, "replicas": replicas, "log_dirs": log_dirs}
            for number in range(PARTITIONS)
        ]
        file.write_text(json.dumps({"version": 1, "partitions": moves}))
        return str(file)

    def reassign(self, plan: str, *arguments: str) -> str:
        return self.run("kafka-reassign-partitions", "--reassignment-json-file", plan, *arguments)

    def refused(self, plan: str, *arguments: str) -> str:
        where = ("--bootstrap-server", self.running.bootstrap, "--reassignment-json-file", plan)
        return self._tools.refused("kafka-reassign-partitions", *where, *arguments)

    def move(self, plan: str, rate: int) -> str:
        throttle = ("--replica-alter-log-dirs-throttle", str(rate))
        return self.reassign(plan, "--execute", "--additional", *throttle, *PATIENT)

    def reassigned(self, plan: str) -> str:
        """Run the tool, and return its output when the move is complete."""
        said = ""

        def is_over() -> bool:
            nonlocal said
            said = self.reassign(plan, "--verify")
            return "still in progress" not in said

        wait_until(is_over, "the end of the move")
        return said

    def rate(self, broker: int) -> int | None:
        return self.running.cluster.brokers[broker].services.quotas.log_dirs.bytes_per_s

    def folders(self, broker: int) -> list[list[str]]:
        return [
            sorted(each.name for each in (self._data(broker, number)).iterdir() if each.name.startswith("t-"))
            for number in range(2)
        ]

    def _data(self, broker: int, number: int) -> Path:
        return type(self._path)(self.log_dir(broker, number))


@pytest.fixture(scope="module", params=[KAFKA_VERSION, pytest.param(KAFKA_4, marks=pytest.mark.full)])
def tools(request: pytest.FixtureRequest) -> Tools:
    tools = Tools(request.param)
    with needs_kafka():
        tools.command("kafka-topics")
    return tools


@pytest.fixture
def bench(tools: Tools, tmp_path: Path) -> Iterator[Bench]:
    from kafka.admin import KafkaAdminClient, NewTopic

    with embedded(2, log_dirs=2) as running:
        admin = KafkaAdminClient(bootstrap_servers=running.bootstrap)
        replicas = {number: [0] for number in range(PARTITIONS)}
        admin.create_topics([NewTopic("t", -1, -1, replica_assignments=replicas)])
        admin.close()
        made = Bench(tools, running, tmp_path)
        wait_until(lambda: all(made.where(0, number) for number in replicas), "the replicas on broker 0")
        yield made


@contextmanager
def written_meanwhile(bootstrap: str) -> Iterator[dict[int, list[bytes]]]:
    """Write many records at first, then one by one until the block ends; yield the acknowledged ones."""
    from confluent_kafka import Producer

    acknowledged: dict[int, list[bytes]] = {number: [] for number in range(PARTITIONS)}
    failed: list[object] = []

    def done(error: object, message: Any) -> None:
        if error is not None:
            failed.append(error)
        else:
            acknowledged[message.partition()].append(message.key())

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "batch.size": BATCH_BYTES,
        }
    )
    for number in range(BEFORE):
        producer.produce("t", VALUE, b"%d" % number, number % PARTITIONS, on_delivery=done)
        producer.poll(0)
    producer.flush()
    over = threading.Event()

    def go_on() -> None:
        number = BEFORE
        while not over.wait(0.005):
            producer.produce("t", VALUE, b"%d" % number, number % PARTITIONS, on_delivery=done)
            producer.poll(0)
            number += 1
        producer.flush()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield acknowledged
    finally:
        over.set()
        thread.join()
    assert not failed


def read_back(bootstrap: str, count: int) -> dict[int, list[bytes]]:
    from confluent_kafka import Consumer, TopicPartition

    found: dict[int, list[bytes]] = {number: [] for number in range(PARTITIONS)}
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition("t", number, 0) for number in range(PARTITIONS)])
    try:

        def read() -> bool:
            for message in consumer.consume(1000, 1.0):
                assert message.error() is None
                found[message.partition()].append(message.key())
            return sum(map(len, found.values())) >= count

        wait_until(read, "all records")
    finally:
        consumer.close()
    return found


def test_move_within_a_broker_keeps_every_record(bench: Bench) -> None:
    """The throttle is set during the move and removed afterwards."""
    source, target = bench.log_dir(0, 0), bench.log_dir(0, 1)
    plan = bench.plan([0], [target])
    with written_meanwhile(bench.running.bootstrap) as acknowledged:
        said = bench.move(plan, SLOW)
        assert f"replica-alter-dir throttle limit was set to {SLOW} B/s" in said
        assert f"Successfully started moving log directory to {target} for replica t-0 with broker 0" in said
        assert bench.rate(0) == SLOW
        by_path = {each["logDir"]: each["partitions"] for each in bench.described(0)}
        assert set(by_path) == {source, target}
        (copy,) = [each for each in by_path[target] if each["isFuture"]]
        assert copy["partition"] == "t-0"
        assert copy["offsetLag"] > 0
        assert "is still in progress" in bench.reassign(plan, "--verify")
        bench.move(plan, FAST)
        assert bench.rate(0) == FAST
        said = bench.reassigned(plan)
        assert "Clearing broker-level throttles" in said
        assert all(bench.where(0, number) == [target] for number in range(PARTITIONS))
        wait_until(lambda: bench.rate(0) is None, "the throttle's removal")
    found = read_back(bench.running.bootstrap, sum(map(len, acknowledged.values())))
    assert found == acknowledged
    by_path = {each["logDir"]: each["partitions"] for each in bench.described(0)}
    assert by_path[source] == []
    assert {(each["partition"], each["isFuture"], each["offsetLag"]) for each in by_path[target]} == {
        (f"t-{number}", False, 0) for number in range(PARTITIONS)
    }
    wait_until(lambda: bench.folders(0) == [[], ["t-0", "t-1"]], "the removal of the old directories")


def test_move_to_a_log_dir_of_another_broker_arrives_there(bench: Bench) -> None:
    """The tool sends the log dir before the replica exists, and until it does."""
    plan = bench.plan([1], [bench.log_dir(1, 1)])
    with written_meanwhile(bench.running.bootstrap) as acknowledged:
        throttles = ("--throttle", "5000000", "--replica-alter-log-dirs-throttle", "5000000")
        said = bench.reassign(plan, "--execute", *throttles, *PATIENT)
        assert "Successfully started partition reassignment" in said
        said = bench.reassigned(plan)
        assert "Reassignment of partition t-0 is completed" in said
    assert all(bench.where(1, number) == [bench.log_dir(1, 1)] for number in range(PARTITIONS))
    assert all(bench.where(0, number) == [] for number in range(PARTITIONS))
    found = read_back(bench.running.bootstrap, sum(map(len, acknowledged.values())))
    assert found == acknowledged
    configs = bench.run("kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", "t")
    assert "throttled" not in configs


def test_broker_killed_midway_continues_the_move(bench: Bench) -> None:
    target = bench.log_dir(0, 1)
    plan = bench.plan([0], [target])
    with written_meanwhile(bench.running.bootstrap) as acknowledged:
        pass
    bench.move(plan, SLOW)
    bench.running.kill(0)
    bench.running.start(0)
    wait_until(lambda: bench.rate(0) == SLOW, "the throttle after the start")
    assert any(each["isFuture"] for log_dir in bench.described(0) for each in log_dir["partitions"])
    bench.move(plan, FAST)
    assert "Clearing broker-level throttles" in bench.reassigned(plan)
    assert all(bench.where(0, number) == [target] for number in range(PARTITIONS))
    assert read_back(bench.running.bootstrap, sum(map(len, acknowledged.values()))) == acknowledged
    wait_until(lambda: bench.folders(0) == [[], ["t-0", "t-1"]], "the removal of the old directories")


@pytest.mark.parametrize("path", ["/nowhere", "log-1"])
def test_unknown_log_dir_is_refused(bench: Bench, path: str) -> None:
    before = [bench.where(0, number) for number in range(PARTITIONS)]
    said = bench.refused(bench.plan([0], [path]), "--execute", "--timeout", "0")
    assert "LogDirNotFoundException" in said
    assert [bench.where(0, number) for number in range(PARTITIONS)] == before
