"""Two consumer groups that read one topic, one of each protocol, and what Restow's commands say of them."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from restow.cli.app import app
from tests.clients.embedded import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPIC = "orders"
PARTITIONS = 4
RECORDS = 10
"""In each partition, a minute apart; the last one is a minute old."""
READ = 7
PROTOCOLS = ("classic", "consumer")


@contextmanager
def groups_of_both(bootstrap: str) -> Iterator[None]:
    """Run a group of each protocol: two members each, which have read 7 of 10 records of each partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
        made.result()
    wait_until(lambda: len(_leaders(admin)) == PARTITIONS, "the topic has leaders")
    producer = Producer({"bootstrap.servers": bootstrap})
    now_ms = int(time.time() * 1000)
    for partition in range(PARTITIONS):
        for number in range(RECORDS):
            age_ms = (RECORDS - number) * 60_000
            producer.produce(TOPIC, str(number), partition=partition, timestamp=now_ms - age_ms)
    assert producer.flush(60) == 0
    consumers = [_consumer(bootstrap, protocol, number) for protocol in PROTOCOLS for number in range(2)]
    try:
        wait_until(lambda: _shared(consumers), "every member has two partitions")
        for consumer in consumers:
            mine = [TopicPartition(TOPIC, each.partition, READ) for each in consumer.assignment()]
            consumer.commit(offsets=mine, asynchronous=False)
        yield
    finally:
        for consumer in consumers:
            consumer.close()


def _leaders(admin: Any) -> list[int]:
    found = admin.list_topics(timeout=120).topics.get(TOPIC)
    return [each.leader for each in found.partitions.values() if each.leader >= 0] if found else []


def _consumer(bootstrap: str, protocol: str, number: int) -> Any:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"of-{protocol}",
            "group.protocol": protocol,
            "client.id": f"{protocol}-{number}",
            "enable.auto.commit": False,
            "auto.offset.reset": "latest",
        }
    )
    consumer.subscribe([TOPIC])
    return consumer


def _shared(consumers: list[Any]) -> bool:
    for consumer in consumers:
        consumer.poll(0.05)
    return all(len(consumer.assignment()) == PARTITIONS // 2 for consumer in consumers)


def restow(*arguments: str) -> Any:
    """Run a command that prints JSON, and return the document."""
    answer = CliRunner().invoke(app, [*arguments, "--json"])
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)
