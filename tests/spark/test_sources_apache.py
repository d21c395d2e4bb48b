"""Spark sources and `restow collect` on Apache Kafka 4.3.1."""

from __future__ import annotations

from contextlib import ExitStack, closing
from queue import SimpleQueue
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaProducer

from harness.apache import apache_kafka
from harness.jars import KAFKA_4
from restow.client import ConnectionSettings, NewTopic, ask_cluster
from restow.pipeline.collect import collecting, into_lake
from restow.pipeline.lake import Lake
from tests.conftest import needs_kafka
from tests.spark.patience import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from restow.pipeline.sampling.sample import Sample

pytestmark = [pytest.mark.spark, pytest.mark.apache, pytest.mark.full, pytest.mark.classic]

TOPIC, PARTITIONS = "orders", 4


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start two brokers and a topic with ten records in each partition."""
    with ExitStack() as stack:
        with needs_kafka():
            folder = tmp_path_factory.mktemp("kafka")
            cluster = stack.enter_context(apache_kafka(folder, nodes=2, version=KAFKA_4))
        new = NewTopic(name=TOPIC, partitions=PARTITIONS, replication_factor=2)
        ask_cluster(ConnectionSettings(bootstrap=cluster.bootstrap), lambda admin: admin.create_topics([new]))
        with closing(KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all")) as producer:
            for number in range(10 * PARTITIONS):
                producer.send(TOPIC, b"x" * 100, partition=number % PARTITIONS)
            producer.flush()
        yield cluster.bootstrap


def member(bootstrap: str, group: str, protocol: str) -> Consumer:
    """Start a consumer that has read records and committed 7 for partition 0."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    wait_for(lambda: consumer.poll(0.5) is not None, "a record")
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 7)], asynchronous=False)
    return consumer


def test_collect_writes_all_tables_to_the_lake(spark: SparkSession, bootstrap: str, tmp_path: Path) -> None:
    lake = Lake(spark, str(tmp_path / "lake"))
    samples: SimpleQueue[Sample] = SimpleQueue()
    stream = collecting(
        spark,
        {"bootstrap.servers": bootstrap},
        into_lake(lake),
        samples.put,
        every_ms=None,
        checkpoint=str(tmp_path / "checkpoint"),
    )
    with ExitStack() as stack:
        for group, protocol in (("old", "classic"), ("new", "consumer")):
            stack.callback(member(bootstrap, group, protocol).close)
        with stream:
            wait_for(lambda: stream.ended, "one sample")
    sample = samples.get_nowait()
    assert (sample.brokers, sample.gaps) == (2, ())
    replicas = lake.read("replicas").where(f"topic = '{TOPIC}'").collect()
    assert len(replicas) == 2 * PARTITIONS
    assert all(row["size"] > 0 and row.topic_id for row in replicas)
    offsets = lake.read("offsets").where(f"topic = '{TOPIC}'").collect()
    assert {(row.partition, row.earliest, row.latest) for row in offsets} == {
        (number, 0, 10) for number in range(PARTITIONS)
    }
    assignment = lake.read("assignment").where(f"topic = '{TOPIC}'").collect()
    assert {row.partition: sorted(row.isr) for row in assignment} == {
        number: [1, 2] for number in range(PARTITIONS)
    }
    assert all(row.total > row.usable > 0 for row in lake.read("disks").collect())
    groups = lake.read("groups").collect()
    for group in ("old", "new"):
        rows = [row for row in groups if row.group == group]
        assert {(row.partition, row.committed) for row in rows} == {(0, 7), (1, None), (2, None), (3, None)}
        assert all(row.member and row.subscription == [TOPIC] and row.state == "Stable" for row in rows)
