"""Restow's Spark sources on an embedded cluster, in batches and as streams."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata
from pyspark.errors import PySparkException
from pyspark.sql.functions import spark_partition_id

from restow.client import ConnectionSettings, NewTopic, ask_cluster
from restow.cluster.net.server import ClientConnection
from restow.pipeline.sampling.batches import GAPS
from restow.pipeline.schemas import SAMPLED, table
from tests.clients.embedded import Running, embedded
from tests.spark.patience import PATIENT, TOO_SLOW, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = pytest.mark.spark

TOPIC, PARTITIONS, RECORDS = "orders", 6, 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    """Start three brokers in three racks, with ten records in each partition and a group that read half."""
    with embedded(3, racks=("a", "b", "c"), log_dirs=2) as running:
        new = NewTopic(name=TOPIC, partitions=PARTITIONS, replication_factor=2)
        ask_cluster(ConnectionSettings(bootstrap=running.bootstrap), lambda admin: admin.create_topics([new]))
        with closing(KafkaProducer(bootstrap_servers=running.bootstrap, acks="all")) as producer:
            for number in range(RECORDS):
                producer.send(TOPIC, b"x" * 100, partition=number % PARTITIONS)
            producer.flush()
        with closing(KafkaConsumer(bootstrap_servers=running.bootstrap, group_id="billing")) as consumer:
            read = {
                TopicPartition(TOPIC, number): OffsetAndMetadata(5, "", -1) for number in range(PARTITIONS)
            }
            consumer.commit(read)
        yield running


def load(spark: SparkSession, cluster: Running, name: str, **options: str) -> DataFrame:
    reader = spark.read.format(f"restow.{name}").option("bootstrap.servers", cluster.bootstrap)
    return reader.options(**PATIENT | options).load()


@pytest.fixture(scope="module")
def sample(spark: SparkSession, cluster: Running) -> dict[str, list[Row]]:
    """Take one sample of all tables; return the rows of each."""
    frame = load(spark, cluster, "samples")
    assert frame.select(spark_partition_id()).distinct().count() == 3
    found: dict[str, list[Row]] = {}
    for row in frame.collect():
        found.setdefault(row.table, []).append(row)
    return found


def test_source_of_each_table_has_its_schema(spark: SparkSession, cluster: Running) -> None:
    for about in SAMPLED:
        assert load(spark, cluster, about.name).schema == about.schema


def test_source_reads_one_table(spark: SparkSession, cluster: Running, sample: dict[str, list[Row]]) -> None:
    alone = load(spark, cluster, "replicas").collect()
    key = table("replicas").key
    assert {tuple(row[name] for name in key) for row in alone} == {
        tuple(row[name] for name in key) for row in sample["replicas"]
    }


def test_sample_has_replicas_and_disks(sample: dict[str, list[Row]]) -> None:
    replicas = [row for row in sample["replicas"] if row.topic == TOPIC]
    assert len(replicas) == 2 * PARTITIONS
    assert all(row["size"] > 0 and not row.is_future and row.topic_id for row in replicas)
    disks = sample["disks"]
    assert sorted((row.broker, row.rack) for row in disks) == [
        (broker, rack) for broker, rack in enumerate("abc") for _ in range(2)
    ]
    assert all(row.total >= row.usable > 0 and row.error is None for row in disks)
    assert {(row.broker, row.log_dir) for row in replicas} <= {(row.broker, row.log_dir) for row in disks}


def test_sample_has_offsets_and_assignment(sample: dict[str, list[Row]]) -> None:
    offsets = {row.partition: row for row in sample["offsets"] if row.topic == TOPIC}
    assignment = {row.partition: row for row in sample["assignment"] if row.topic == TOPIC}
    assert offsets.keys() == assignment.keys() == set(range(PARTITIONS))
    for number, row in offsets.items():
        assert (row.earliest, row.latest) == (0, RECORDS // PARTITIONS)
        assert row.broker == assignment[number].leader == assignment[number].replicas[0]
        assert sorted(assignment[number].isr) == sorted(assignment[number].replicas)


def test_sample_has_groups(sample: dict[str, list[Row]]) -> None:
    found = [row for row in sample["groups"] if row.group == "billing"]
    assert sorted((row.topic, row.partition, row.committed) for row in found) == [
        (TOPIC, number, 5) for number in range(PARTITIONS)
    ]
    assert {(row.state, row.member) for row in found} == {("Empty", None)}


def test_sample_of_a_healthy_cluster_has_no_gaps(sample: dict[str, list[Row]]) -> None:
    assert sample.keys() == {each.name for each in SAMPLED}


def test_broker_that_does_not_answer_is_a_gap(
    spark: SparkSession, cluster: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    hear = ClientConnection.frame

    def frame(self: ClientConnection, payload: bytes) -> None:
        if self._services.broker_id != 1 or b"restow" not in payload[:32]:
            hear(self, payload)

    monkeypatch.setattr(ClientConnection, "frame", frame)
    found = load(spark, cluster, "samples", **{"request.timeout.ms": "15000"}).collect()
    [gap] = [row for row in found if row.table == GAPS]
    assert gap.broker == 1
    assert "does not answer" in gap.error
    [disk] = [row for row in found if row.table == "disks" and row.broker == 1]
    assert (disk.log_dir, disk.rack, disk.error in gap.error) == (None, "b", True)
    told = {row.broker for row in found if row.table == "replicas"}
    assert told == {0, 2}
    assert len([row for row in found if row.table == "assignment" and row.topic == TOPIC]) == PARTITIONS


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "which cluster"),
        ({"bootstrap.servers": "127.0.0.1:1"}, "does not answer"),
        ({"bootstrap.servers": "127.0.0.1:1", "securty.protocol": "SSL"}, "did you mean security.protocol"),
    ],
)
def test_source_fails_with_a_reason(spark: SparkSession, options: dict[str, str], complaint: str) -> None:
    with pytest.raises(PySparkException, match=complaint):
        spark.read.format("restow.replicas").options(**options).load().collect()


@pytest.mark.classic
def test_stream_takes_samples_and_continues_after_a_restart(
    spark: SparkSession, cluster: Running, tmp_path: Path
) -> None:
    reader = spark.readStream.format("restow.offsets").option("bootstrap.servers", cluster.bootstrap)
    frame = reader.options(**PATIENT).option("every", "1s").load()
    batches: dict[int, set[Any]] = {}

    def keep(batch: DataFrame, number: int) -> None:
        """Keep a batch; one that was stopped in the middle comes again."""
        batches[number] = {row["at"] for row in batch.where(f"topic = '{TOPIC}'").select("at").collect()}

    def run(samples: int) -> None:
        writer = frame.writeStream.foreachBatch(keep).trigger(processingTime="1 second")
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        try:
            wait_for(lambda: not query.isActive or len(batches) >= samples, f"{samples} samples")
            failure = query.exception()
            assert failure is None or TOO_SLOW in str(failure)
        finally:
            query.stop()

    def run_until(samples: int) -> None:
        while len(batches) < samples:
            run(samples)

    run_until(2)
    run_until(len(batches) + 1)
    assert sorted(batches) == list(range(len(batches)))
    moments = [at for number in sorted(batches) for at in sorted(batches[number])]
    assert moments == sorted(moments)
    assert all(batches.values())
