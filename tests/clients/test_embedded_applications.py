"""Kafka Streams and Kafka Connect, unmodified, with an embedded cluster: exactly once, after kill -9, too."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from harness.applications import WORDS_IN, WORDS_OUT, connect_worker, word_count
from harness.jars import KAFKA_4, application_jars, kafka_jars
from tests.clients.embedded import WAIT_S, Running, embedded, wait_until
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

pytestmark = [pytest.mark.apache, pytest.mark.full]

WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta")
LINES = 3_000
SEEN_BEFORE_THE_KILL = 300
SESSION_MS = "10000"


@pytest.fixture
def cluster() -> Iterator[Running]:
    with needs_kafka():
        kafka_jars(KAFKA_4)
        application_jars()
    with embedded(3) as running:
        yield running


def create(cluster: Running, *topics: str, partitions: int = 3) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for made in admin.create_topics([NewTopic(each, partitions, 3) for each in topics]).values():
        made.result(WAIT_S)
    for each in topics:
        cluster.wait_until_known(each, partitions)


class Committed:
    """All committed records of a topic, in the order of each partition."""

    def __init__(self, cluster: Running, topic: str) -> None:
        self.records: list[tuple[bytes | None, bytes | None]] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": f"g-{uuid4().hex}",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
            }
        )
        self._consumer.subscribe([topic])

    def has(self, count: int) -> bool:
        """Read on; return whether there are that many."""
        for message in self._consumer.consume(1_000, timeout=0.1):
            if message.error():
                raise AssertionError(message.error())
            self.records.append((message.key(), message.value()))
        return len(self.records) >= count

    def close(self) -> None:
        self._consumer.close()


def send_lines(cluster: Running, topic: str, lines: Sequence[str]) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for line in lines:
        producer.produce(topic, line, on_delivery=lambda error, _: error and pytest.fail(str(error)))
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0


def test_streams_application_counts_words_exactly_once(cluster: Running, tmp_path: Path) -> None:
    create(cluster, WORDS_IN, WORDS_OUT)
    lines = [f"{WORDS[number % len(WORDS)]} {WORDS[number % 3]}" for number in range(LINES)]
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "application.id": "counter",
        "processing.guarantee": "exactly_once_v2",
        "replication.factor": "3",
        "num.stream.threads": "2",
        "commit.interval.ms": "100",
        "session.timeout.ms": SESSION_MS,
        "statestore.cache.max.bytes": "0",
        "auto.offset.reset": "earliest",
    }
    output = Committed(cluster, WORDS_OUT)
    send_lines(cluster, WORDS_IN, lines[: LINES // 2])
    with word_count(tmp_path, settings):
        wait_until(lambda: output.has(SEEN_BEFORE_THE_KILL), "the first counts are committed")
    send_lines(cluster, WORDS_IN, lines[LINES // 2 :])
    expected = Counter(word for line in lines for word in line.split())
    with word_count(tmp_path, settings):
        wait_until(lambda: output.has(expected.total()), "all words are counted")
    output.close()
    counts = defaultdict(list)
    for word, count in output.records:
        assert word is not None
        assert count is not None
        counts[word.decode()].append(int.from_bytes(count))
    assert counts == {word: list(range(1, count + 1)) for word, count in expected.items()}


def test_connect_copies_a_file_through_a_topic(cluster: Running, tmp_path: Path) -> None:
    """The source is exactly once, by transactions; the sink repeats what it had not committed."""
    create(cluster, "lines", partitions=1)
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    converter = "org.apache.kafka.connect.storage.StringConverter"
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "connect",
        "key.converter": converter,
        "value.converter": converter,
        **{f"{each}.storage.topic": f"connect-{each}" for each in ("config", "offset", "status")},
        "exactly.once.source.support": "enabled",
        "offset.flush.interval.ms": "500",
        "session.timeout.ms": SESSION_MS,
        # Otherwise the group waits five minutes for a worker that was killed.
        "scheduled.rebalance.max.delay.ms": "0",
    }
    connectors = {
        "source": {"connector.class": "FileStreamSource", "file": str(source), "topic": "lines"},
        "sink": {"connector.class": "FileStreamSink", "file": str(sink), "topics": "lines"},
    }
    lines = [f"line {number}" for number in range(LINES)]

    def write(some: Sequence[str]) -> None:
        with source.open("a") as file:
            file.writelines(f"{line}\n" for line in some)

    def copied() -> list[str]:
        return sink.read_text().splitlines() if sink.exists() else []

    write(lines[: LINES // 2])
    with connect_worker(tmp_path / "worker", settings) as worker:
        for name, given in connectors.items():
            worker.configure(name, {"tasks.max": "1", **given})
        wait_until(lambda: len(copied()) >= LINES // 2, "the first half is copied")
    write(lines[LINES // 2 :])
    with connect_worker(tmp_path / "worker", settings):
        wait_until(lambda: set(lines) <= set(copied()), "everything is copied")
    topic = Committed(cluster, "lines")
    wait_until(lambda: topic.has(LINES), "the topic has every line")
    topic.close()
    assert [value.decode() for _, value in topic.records if value is not None] == lines
