"""Spark's Kafka source and sink, in batches and in streams, with an embedded cluster."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.clients.embedded import WAIT_S, Running, embedded, wait_until
from tests.often import often

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = pytest.mark.spark

START_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(3) as running:
        yield running


class Topic:
    """A topic of its own for a test, and Spark's way to it."""

    def __init__(self, cluster: Running, spark: SparkSession, partitions: int) -> None:
        self.cluster = cluster
        self.name = f"t-{uuid4().hex}"
        self._spark = spark
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        self._admin.create_topics([NewTopic(self.name, partitions, 3)])[self.name].result(WAIT_S)

    def grow(self, partitions: int) -> None:
        self._admin.create_partitions([NewPartitions(self.name, partitions)])[self.name].result(WAIT_S)

    def write(self, numbers: Sequence[int], partitions: int) -> None:
        """Write each number as key and value, with its own header and time, around the partitions."""
        with closing(KafkaProducer(bootstrap_servers=self.cluster.bootstrap, acks="all")) as producer:
            for number in numbers:
                producer.send(
                    self.name,
                    value=b"value %d" % number,
                    key=b"%d" % number,
                    headers=[("number", b"%d" % number)],
                    partition=number % partitions,
                    timestamp_ms=START_MS + number,
                )
            producer.flush()

    def batch(self, **options: str) -> list[Row]:
        """Return all records that the source reads with these options, by key."""
        reader = self._spark.read.format("kafka").options(**self._where(), **options)
        rows: list[Row] = reader.load().collect()
        return sorted(rows, key=lambda row: int(row.key))

    def stream(self, **options: str) -> DataFrame:
        reader = self._spark.readStream.format("kafka").options(**self._where(), **options)
        return reader.option("startingOffsets", "earliest").load()

    def _where(self) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.cluster.bootstrap,
            "subscribe": self.name,
            "includeHeaders": "true",
        }


def numbers_of(rows: list[Row]) -> list[int]:
    return [int(row.key) for row in rows]


def test_batch_source_reads_all_fields_of_a_record(cluster: Running, spark: SparkSession) -> None:
    topic = Topic(cluster, spark, 3)
    topic.write(range(90), 3)
    rows = topic.batch()
    assert numbers_of(rows) == list(range(90))
    for number, row in enumerate(rows):
        assert bytes(row.value) == b"value %d" % number
        assert (row.topic, row.partition, row.offset) == (topic.name, number % 3, number // 3)
        assert round(row.timestamp.timestamp() * 1000) == START_MS + number
        assert [(header.key, bytes(header.value)) for header in row.headers] == [("number", b"%d" % number)]


def test_batch_source_starts_and_ends_at_the_given_offsets(cluster: Running, spark: SparkSession) -> None:
    topic = Topic(cluster, spark, 3)
    topic.write(range(90), 3)
    assert numbers_of(topic.batch(startingTimestamp=str(START_MS + 60))) == list(range(60, 90))
    by_time = json.dumps({topic.name: {str(p): START_MS + 30 for p in range(3)}})
    until = json.dumps({topic.name: {str(p): START_MS + 60 for p in range(3)}})
    found = topic.batch(startingOffsetsByTimestamp=by_time, endingOffsetsByTimestamp=until)
    assert numbers_of(found) == list(range(30, 60))
    starting = json.dumps({topic.name: {"0": 10, "1": -2, "2": 30}})
    ending = json.dumps({topic.name: {"0": 20, "1": 5, "2": -1}})
    expected = sorted([*range(30, 60, 3), *range(1, 16, 3)])
    assert numbers_of(topic.batch(startingOffsets=starting, endingOffsets=ending)) == expected


@pytest.mark.parametrize("compression", often(["none", "gzip", "snappy", "lz4", "zstd"], "none", "zstd"))
def test_batch_sink_writes_records(cluster: Running, spark: SparkSession, compression: str) -> None:
    topic = Topic(cluster, spark, 2)
    frame = spark.range(60).selectExpr(
        "cast(id as string) as key",
        "concat('value ', id) as value",
        "cast(id % 2 as int) as partition",
        "array(struct('number' as key, cast(cast(id as string) as binary) as value)) as headers",
    )
    writer = frame.coalesce(1).write.format("kafka").option("kafka.bootstrap.servers", cluster.bootstrap)
    writer = writer.option("topic", topic.name).option("includeHeaders", "true")
    writer.option("kafka.compression.type", compression).save()
    with closing(KafkaConsumer(bootstrap_servers=cluster.bootstrap)) as consumer:
        consumer.assign([TopicPartition(topic.name, partition) for partition in range(2)])
        consumer.seek_to_beginning()
        found: dict[int, tuple[bytes, int, list[tuple[str, bytes]]]] = {}

        def read() -> bool:
            for records in consumer.poll(timeout_ms=200).values():
                for each in records:
                    assert int(each.key) not in found
                    found[int(each.key)] = (each.value, each.partition, list(each.headers))
            return len(found) >= 60

        wait_until(read, "60 records")
    assert found == {n: (b"value %d" % n, n % 2, [("number", b"%d" % n)]) for n in range(60)}


def test_stream_reads_each_record_once(cluster: Running, spark: SparkSession, tmp_path: Path) -> None:
    """The topic grows, a broker stops and starts, and so does the stream."""
    topic = Topic(cluster, spark, 2)
    records, checkpoint = str(tmp_path / "records"), str(tmp_path / "checkpoint")

    def start() -> StreamingQuery:
        columns = topic.stream().selectExpr("cast(cast(key as string) as int) as number")
        stream = columns.writeStream.format("parquet").option("checkpointLocation", checkpoint)
        return stream.trigger(processingTime="100 milliseconds").start(records)

    def found() -> list[int]:
        return sorted(row.number for row in spark.read.parquet(records).select("number").collect())

    topic.write(range(40), 2)
    query = start()
    query.processAllAvailable()
    assert found() == list(range(40))
    topic.grow(5)
    topic.write(range(40, 100), 5)
    query.processAllAvailable()
    assert found() == list(range(100))
    away = cluster.leader_of(topic.name)
    cluster.stop(away)
    topic.write(range(100, 150), 5)
    query.processAllAvailable()
    query.stop()
    cluster.start(away)
    topic.write(range(150, 200), 5)
    again = start()
    again.processAllAvailable()
    again.stop()
    assert found() == list(range(200))


def test_stream_copies_from_topic_to_topic(cluster: Running, spark: SparkSession, tmp_path: Path) -> None:
    source, target = Topic(cluster, spark, 3), Topic(cluster, spark, 2)
    for numbers in (range(100), range(100, 150)):
        source.write(numbers, 3)
        columns = source.stream().selectExpr(
            "key", "concat('copied ', cast(value as string)) as value", "headers"
        )
        stream = columns.writeStream.format("kafka").option("kafka.bootstrap.servers", cluster.bootstrap)
        stream = stream.option("topic", target.name).option("includeHeaders", "true")
        stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = stream.trigger(availableNow=True).start()
        assert query.awaitTermination(WAIT_S)
    rows = target.batch()
    assert [bytes(row.value) for row in rows] == [b"copied value %d" % number for number in range(150)]
    assert [bytes(row.headers[0].value) for row in rows] == [b"%d" % number for number in range(150)]


def test_source_reads_committed_records_of_a_transactional_producer(
    cluster: Running, spark: SparkSession, tmp_path: Path
) -> None:
    """In a batch and in a stream, past aborted transactions, and not into an open one."""
    topic = Topic(cluster, spark, 3)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": topic.name})
    producer.init_transactions(WAIT_S)
    for number in range(10):
        producer.begin_transaction()
        for each in range(9 * number, 9 * number + 9):
            producer.produce(topic.name, b"value %d" % each, key=b"%d" % each, partition=each % 3)
        producer.flush()
        if number < 9:
            end = producer.abort_transaction if number % 3 == 1 else producer.commit_transaction
            end(WAIT_S)
    kept = [each for each in range(81) if each // 9 % 3 != 1]
    isolation = {"kafka.isolation.level": "read_committed"}
    assert numbers_of(topic.batch(**isolation)) == kept
    frame = topic.stream(**isolation).selectExpr("cast(key as string) as key")
    writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    query.processAllAvailable()
    producer.commit_transaction(WAIT_S)
    query.processAllAvailable()
    query.stop()
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(int(row.key) for row in rows) == [*kept, *range(81, 90)]
