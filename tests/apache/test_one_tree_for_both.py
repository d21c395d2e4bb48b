"""One ZooKeeper, first with Apache Kafka 3.9, then with our brokers, then with Apache Kafka again.

Each side finds the topics and configs that the other one made, and serves them.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from harness.apache import apache_kafka
from harness.brokers import BrokerProcess, wait_for
from harness.process import free_ports
from harness.zookeeper import zookeeper
from tests.conftest import needs_kafka
from tests.faults.recording import quiet

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.apache
WAIT_S = 120


def create(bootstrap: str, topic: str) -> None:
    admin = AdminClient(quiet(bootstrap))
    new = NewTopic(topic, num_partitions=2, replication_factor=1, config={"retention.ms": "123456789"})
    admin.create_topics([new])[topic].result(WAIT_S)


def check(bootstrap: str, topics: set[str]) -> None:
    """Check that all topics have leaders and configs, and can be written and read."""
    admin = AdminClient(quiet(bootstrap))

    def all_led() -> bool:
        found = admin.list_topics(timeout=WAIT_S).topics
        return topics <= found.keys() and all(
            partition.leader == 1 for topic in topics for partition in found[topic].partitions.values()
        )

    wait_for("all topics have a leader", all_led, WAIT_S)
    for topic in topics:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        configs = admin.describe_configs([resource])[resource].result(WAIT_S)
        assert configs["retention.ms"].value == "123456789"
    write_and_read(bootstrap, topics)


def write_and_read(bootstrap: str, topics: set[str]) -> None:
    producer = Producer(quiet(bootstrap))
    for topic in topics:
        producer.produce(topic, b"from " + bootstrap.encode())
    assert producer.flush(WAIT_S) == 0
    consumer = Consumer(quiet(bootstrap, **{"group.id": bootstrap, "auto.offset.reset": "earliest"}))
    consumer.subscribe(sorted(topics))
    try:
        seen: set[str] = set()

        def all_seen() -> bool:
            record = consumer.poll(1.0)
            if record is not None and not record.error() and record.value() == b"from " + bootstrap.encode():
                seen.add(record.topic())
            return seen == topics

        wait_for("every topic gives what was written", all_seen, WAIT_S)
    finally:
        consumer.close()


def test_each_side_serves_the_topics_of_the_other(jars: Path, tmp_path: Path) -> None:
    settings = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}
    with ExitStack() as stack:
        with needs_kafka():
            server = stack.enter_context(zookeeper(tmp_path / "zookeeper", fsync=False))
            theirs = stack.enter_context(
                apache_kafka(tmp_path / "apache", zookeeper=server.address, settings=settings)
            )
        create(theirs.bootstrap, "theirs")
        check(theirs.bootstrap, {"theirs"})
        theirs.brokers[1].stop()
        (port,) = stack.enter_context(free_ports(1))
        options = [word for pair in settings.items() for word in ("--config", "=".join(pair))]
        ours = BrokerProcess(1, f"zookeeper://{server.address}", tmp_path, port, tuple(options))
        stack.callback(ours.end)
        ours.start()
        create(ours.address, "ours")
        check(ours.address, {"theirs", "ours"})
        assert ours.stop() == 0
        theirs.brokers[1].launch()
        theirs.brokers[1].until_ready(1)
        check(theirs.bootstrap, {"theirs", "ours"})
