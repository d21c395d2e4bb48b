"""A broker's process is killed again and again while a replica moves to its other log dir."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harness.process import last_words, running
from tests.clients import two_log_dirs
from tests.clients.embedded import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kafka.admin import KafkaAdminClient

RECORDS = 12_000
VALUE = bytes(1000)
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
SLOW = 50_000
"""Bytes per second: of twelve megabytes most is left after all that happens in between."""


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Start a broker and yield its address; kill it at the end of the block."""
    log = folder / "broker.log"
    log.write_text("")
    with running([sys.executable, two_log_dirs.__file__, str(folder / "data")], log) as process:

        def said() -> list[str]:
            """Return its output without warnings."""
            return [line for line in log.read_text().splitlines() if line.startswith("127.0.0.1:")]

        def says() -> bool:
            assert process.poll() is None, last_words(log)
            return bool(said())

        wait_until(says, "the broker")
        yield said()[0]


@contextmanager
def admin_of(bootstrap: str) -> Iterator[KafkaAdminClient]:
    from kafka.admin import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        yield admin
    finally:
        admin.close()


def limit(admin: KafkaAdminClient, rate: int | None) -> None:
    from kafka.admin import ConfigResource, ConfigResourceType

    change = ("DELETE", None) if rate is None else ("SET", str(rate))
    admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, "0", {RATE: change})])


def write(bootstrap: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "batch.size": 16_384})
    for number in range(RECORDS):
        producer.produce("t", VALUE, b"%d" % number, 0)
        producer.poll(0)
    assert producer.flush(60) == 0


def read(bootstrap: str) -> list[bytes]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[bytes] = []
    try:

        def more() -> bool:
            messages = consumer.consume(1000, 1.0)
            assert not [message.error() for message in messages if message.error()]
            found.extend(message.key() for message in messages)
            return len(found) >= RECORDS

        wait_until(more, "all records")
    finally:
        consumer.close()
    return found


def sizes(admin: KafkaAdminClient) -> dict[bool, int]:
    """Return the bytes of the replica (False) and of its future replica (True)."""
    (answer,) = admin.describe_log_dirs(["t"])
    parts: list[Any] = [
        partition
        for log_dir in answer["log_dirs"]
        for topic in log_dir["topics"]
        for partition in topic["partitions"]
    ]
    return {each["is_future_key"]: each["partition_size"] for each in parts}


def folders(path: Path) -> list[list[str]]:
    homes = sorted((path / "data" / "broker-0").glob("log-*"))
    return [sorted(each.name for each in home.iterdir() if each.name.startswith("t-")) for home in homes]


def test_move_between_log_dirs_survives_kills_of_the_broker(tmp_path: Path) -> None:
    expected = [b"%d" % number for number in range(RECORDS)]
    target = str(tmp_path / "data" / "broker-0" / "log-1")
    with broker(tmp_path) as bootstrap, admin_of(bootstrap) as admin:
        admin.create_topics({"t": {"assignments": {0: [0]}}})
        write(bootstrap)
        limit(admin, SLOW)
        assert folders(tmp_path) == [["t-0"], []]
        admin.alter_replica_log_dirs({("t", 0, 0): target})
        wait_until(lambda: sizes(admin).get(True, 0) > 0, "a copy")
    grown = 0
    for _ in range(3):
        with broker(tmp_path) as bootstrap, admin_of(bootstrap) as admin:
            before = sizes(admin)
            assert before[False] >= RECORDS * len(VALUE)
            assert before[True] >= grown
            wait_until(lambda: sizes(admin)[True] > before[True], "that it goes on")  # noqa: B023
            grown = before[True]
    with broker(tmp_path) as bootstrap, admin_of(bootstrap) as admin:
        limit(admin, None)
        wait_until(lambda: folders(tmp_path) == [[], ["t-0"]], "the end of the move")
        assert read(bootstrap) == expected
    with broker(tmp_path) as bootstrap:
        assert read(bootstrap) == expected
        assert folders(tmp_path) == [[], ["t-0"]]
