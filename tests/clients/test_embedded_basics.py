"""Unmodified clients write to an embedded cluster and read exactly that."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from tests.clients.embedded import WAIT_S, Running, embedded, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RECORDS = 500


@pytest.fixture(scope="module", params=[1, 3])
def cluster(request: pytest.FixtureRequest) -> Iterator[Running]:
    with embedded(request.param) as running:
        yield running


def values(prefix: str) -> list[bytes]:
    return [f"{prefix}-{number}".encode() for number in range(RECORDS)]


def read_with_kafka_python(bootstrap: str, topic: str, count: int = RECORDS) -> list[bytes]:
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found: list[bytes] = []
        wait_until(lambda: bool(_poll(consumer, found)) or len(found) >= count, f"{count} records")
        while len(found) < count:
            _poll(consumer, found)
        return found


def _poll(consumer: KafkaConsumer, found: list[bytes]) -> list[bytes]:
    for records in consumer.poll(timeout_ms=500).values():
        found += [record.value for record in records]
    return found


def read_with_confluent(bootstrap: str, topic: str, count: int = RECORDS) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"of-{topic}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found: list[bytes] = []

    def read() -> bool:
        for message in consumer.consume(RECORDS, 0.5):
            assert message.error() is None, message.error()
            found.append(message.value())
        return len(found) >= count

    try:
        wait_until(read, f"{count} records")
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("acks", [1, "all"])
def test_records_of_kafka_python_are_read_by_both_clients(
    cluster: Running, compression: str | None, acks: int | str
) -> None:
    """The topic is created on first use."""
    topic = f"kafka-python-{compression}-{acks}-{len(cluster.cluster.brokers)}"
    sent = values(topic)
    with closing(
        KafkaProducer(
            bootstrap_servers=cluster.bootstrap,
            compression_type=compression,
            acks=acks,
            enable_idempotence=acks == "all",
        )
    ) as producer:
        futures = [producer.send(topic, value) for value in sent]
        assert [future.get(WAIT_S).offset for future in futures] == list(range(RECORDS))
    assert read_with_kafka_python(cluster.bootstrap, topic) == sent
    assert read_with_confluent(cluster.bootstrap, topic) == sent


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_confluent_kafka_are_read_back(cluster: Running, compression: str) -> None:
    topic = f"confluent-{compression}-{len(cluster.cluster.brokers)}"
    sent = values(topic)
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "compression.type": compression, "enable.idempotence": True}
    )
    refused: list[object] = []
    for value in sent:
        producer.produce(topic, value, on_delivery=lambda error, _: error and refused.append(error))
    assert producer.flush(WAIT_S) == 0
    assert refused == []
    assert read_with_confluent(cluster.bootstrap, topic) == sent


def test_replicas_are_equal_byte_by_byte(tmp_path: Path) -> None:
    with embedded(3, data=tmp_path) as running:
        with closing(KafkaAdminClient(bootstrap_servers=running.bootstrap)) as admin:
            admin.create_topics([NewTopic("t", num_partitions=4, replication_factor=3)])
        with closing(KafkaProducer(bootstrap_servers=running.bootstrap, acks="all")) as producer:
            for number, value in enumerate(values("t")):
                producer.send("t", value, partition=number % 4)
            producer.flush()
    name = "00000000000000000000.log"
    for partition in range(4):
        copies = {
            (tmp_path / f"broker-{broker}" / "log-0" / f"t-{partition}" / name).read_bytes()
            for broker in range(3)
        }
        assert len(copies) == 1
        assert copies.pop()


def test_records_survive_a_restart(tmp_path: Path) -> None:
    sent = values("kept")
    with embedded(3, data=tmp_path, log_dirs=2) as running:
        with closing(KafkaAdminClient(bootstrap_servers=running.bootstrap)) as admin:
            admin.create_topics([NewTopic("kept", num_partitions=1, replication_factor=2)])
        with closing(KafkaProducer(bootstrap_servers=running.bootstrap, acks="all")) as producer:
            for value in sent:
                producer.send("kept", value)
            producer.flush()
        assert read_with_confluent(running.bootstrap, "kept") == sent
    with embedded(3, data=tmp_path, log_dirs=2) as running:
        assert read_with_kafka_python(running.bootstrap, "kept") == sent
        with closing(KafkaProducer(bootstrap_servers=running.bootstrap, acks="all")) as producer:
            assert producer.send("kept", b"more").get(WAIT_S).offset == RECORDS
        assert read_with_confluent(running.bootstrap, "kept", count=1) == [b"more"]
