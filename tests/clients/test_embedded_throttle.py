"""A throttled move, begun and ended by Apache Kafka's own tool: which replicas are slowed down."""

from __future__ import annotations

import json
import time
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

PARTITIONS = 4
RECORDS = 8000
VALUE = bytes(1000)
SLOW, FAST = 50_000, 50_000_000
"""Bytes per second. At the first rate two minutes' worth is left at any check."""


@pytest.fixture(scope="module", params=[KAFKA_VERSION, pytest.param(KAFKA_4, marks=pytest.mark.full)])
def tools(request: pytest.FixtureRequest) -> Tools:
    tools = Tools(request.param)
    with needs_kafka():
        tools.command("kafka-topics")
    return tools


@pytest.fixture
def cluster() -> Iterator[Running]:
    """Start a cluster with a filled topic `moved` on broker 0, and `other` on all three."""
    from kafka.admin import KafkaAdminClient, NewTopic

    with embedded(3) as running:
        admin = KafkaAdminClient(bootstrap_servers=running.bootstrap)
        assignments = {"moved": [0], "other": [0, 1, 2]}
        admin.create_topics(
            [
                NewTopic(name, -1, -1, replica_assignments=dict.fromkeys(range(PARTITIONS), replicas))
                for name, replicas in assignments.items()
            ]
        )
        admin.close()
        write(running.bootstrap, "moved", RECORDS)
        yield running


def write(bootstrap: str, topic: str, count: int) -> None:
    """Write records that all in-sync replicas acknowledge."""
    from confluent_kafka import Producer

    failed: list[object] = []

    def done(error: object, _: Any) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "batch.size": 16_384})
    for number in range(count):
        producer.produce(topic, VALUE, b"%d" % number, number % PARTITIONS, on_delivery=done)
        producer.poll(0)
    assert producer.flush(60) == 0
    assert not failed


def read(bootstrap: str, topic: str, count: int) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found = 0
    try:

        def more() -> bool:
            nonlocal found
            found += len(consumer.consume(1000, 1.0))
            return found >= count

        wait_until(more, f"{count} records")
    finally:
        consumer.close()
    assert found == count


def test_throttled_move_slows_down_only_the_moving_replica(
    tools: Tools, cluster: Running, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    moves = [{"topic": "moved", "partition": number, "replicas": [2]} for number in range(PARTITIONS)]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))

    def reassign(*arguments: str) -> str:
        where = ("--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", str(plan))
        return tools.run("kafka-reassign-partitions", *where, *arguments)

    def copied() -> int:
        replicas = cluster.cluster.brokers[2].services.replicas
        found = [replicas.partition(TopicPartition("moved", number)) for number in range(PARTITIONS)]
        return sum(each.log.size_bytes for each in found if each is not None)

    def rates() -> set[int | None]:
        quotas = [each.services.quotas for each in cluster.cluster.brokers.values()]
        return {quota.bytes_per_s for each in quotas for quota in (each.leader, each.follower)}

    began_s = time.monotonic()
    said = reassign("--execute", "--throttle", str(SLOW))
    assert f"The inter-broker throttle limit was set to {SLOW} B/s" in said
    assert SLOW in rates()
    wait_until(lambda: copied() > 0, "the first batch")

    write(cluster.bootstrap, "other", 2000)
    read(cluster.bootstrap, "moved", RECORDS)
    now = copied()
    assert now <= SLOW * (time.monotonic() - began_s + 2)
    assert now < RECORDS * len(VALUE) / 2, "writing, reading and this much in between took too long to tell"
    assert "is still in progress" in reassign("--verify")
    assert SLOW in rates(), "the throttle is on as long as something moves"
    assert cluster.in_sync("other") == {0, 1, 2}

    reassign("--execute", "--additional", "--throttle", str(FAST))
    assert SLOW not in rates()
    wait_until(lambda: "still in progress" not in reassign("--verify"), "the end of the move")
    wait_until(lambda: rates() == {None}, "the throttle's removal")
    assert copied() >= RECORDS * len(VALUE)
    read(cluster.bootstrap, "moved", RECORDS)
    configs = tools.run(
        "kafka-configs",
        *("--bootstrap-server", cluster.bootstrap, "--describe", "--entity-type", "topics", "--all"),
        *("--entity-name", "moved"),
    )
    assert "throttled.replicas= " in configs
    wait_until(lambda: not any(cluster_folder(cluster, 0, "moved")), "the removal of the old directories")


def cluster_folder(cluster: Running, broker: int, topic: str) -> list[str]:
    logs = cluster.cluster.brokers[broker].services.logs
    return [str(each) for each in logs.partitions if each.topic == topic]
