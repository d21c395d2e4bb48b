"""Transactions on an embedded cluster, with the transactional producers of three libraries."""

from __future__ import annotations

import asyncio
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from kafka import KafkaConsumer, KafkaProducer

from restow.cluster.broker.metadata import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from restow.cluster.groups import partition_of_group
from tests.clients.embedded import WAIT_S, Running, embedded, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTITIONS = 3
LIBRDKAFKA, KAFKA_PYTHON, AIOKAFKA = "librdkafka", "kafka-python", "aiokafka"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(3) as running:
        yield running


@pytest.fixture
def topic(cluster: Running) -> str:
    return new_topic(cluster)


def new_topic(cluster: Running, **configs: str) -> str:
    name = f"t-{uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    new = NewTopic(name, PARTITIONS, min(3, len(cluster.cluster.brokers)), config=configs)
    admin.create_topics([new])[name].result(WAIT_S)
    cluster.wait_until_known(name, PARTITIONS)
    return name


def transactional(cluster: Running, name: str | None = None, **settings: object) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": name or f"p-{uuid4().hex}",
            "linger.ms": 0,
            **settings,
        }
    )
    producer.init_transactions(WAIT_S)
    return producer


def committed(cluster: Running, topic: str, count: int) -> list[bytes]:
    """Read that many committed records, and check that there are no others."""
    return read(cluster, topic, count, "read_committed")


def read(cluster: Running, topic: str, count: int, isolation: str) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": f"g-{uuid4().hex}",
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    found: list[bytes] = []
    ended: set[int] = set()
    with closing(consumer):
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        while len(found) < count or len(ended) < PARTITIONS:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"only {len(found)} of {count} records came: {found}"
            if message.error() is None:
                ended.discard(message.partition())
                found.append(message.value())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise KafkaException(message.error())
    return sorted(found)


def test_committed_records_are_read_and_aborted_ones_are_not(cluster: Running, topic: str) -> None:
    producer = transactional(cluster)
    for number in range(6):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(topic, b"%d" % number, partition=partition)
        producer.flush(WAIT_S)
        if number % 2:
            producer.abort_transaction(WAIT_S)
        else:
            producer.commit_transaction(WAIT_S)
    assert committed(cluster, topic, 9) == sorted([b"0", b"2", b"4"] * 3)
    everything = sorted(b"%d" % number for number in range(6) for _ in range(PARTITIONS))
    assert read(cluster, topic, 18, "read_uncommitted") == everything


def test_records_of_an_open_transaction_wait_for_its_end(cluster: Running, topic: str) -> None:
    plain = Producer({"bootstrap.servers": cluster.bootstrap})
    plain.produce(topic, b"before", partition=0)
    plain.flush(WAIT_S)
    producer = transactional(cluster)
    producer.begin_transaction()
    producer.produce(topic, b"within", partition=0)
    producer.flush(WAIT_S)
    plain.produce(topic, b"after", partition=0)
    plain.flush(WAIT_S)
    assert committed(cluster, topic, 1) == [b"before"]
    assert end_of(cluster, topic, "read_committed") == 1
    assert end_of(cluster, topic, "read_uncommitted") == 3
    producer.commit_transaction(WAIT_S)
    assert committed(cluster, topic, 3) == [b"after", b"before", b"within"]
    wait_until(lambda: end_of(cluster, topic, "read_committed") == 4, "the marker is replicated")


def end_of(cluster: Running, topic: str, isolation: str) -> int:
    from confluent_kafka import IsolationLevel

    level = getattr(IsolationLevel, isolation.upper())
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    partition = TopicPartition(topic, 0)
    asked = admin.list_offsets({partition: OffsetSpec.latest()}, isolation_level=level)
    offset: int = asked[partition].result(WAIT_S).offset
    return offset


def test_new_producer_fences_the_one_before_and_aborts_its_transaction(cluster: Running, topic: str) -> None:
    name = f"p-{uuid4().hex}"
    first = transactional(cluster, name)
    first.begin_transaction()
    first.produce(topic, b"lost", partition=0)
    first.flush(WAIT_S)
    second = transactional(cluster, name)
    second.begin_transaction()
    second.produce(topic, b"kept", partition=0)
    second.commit_transaction(WAIT_S)
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(WAIT_S)
    assert refused.value.args[0].code() == KafkaError._FENCED
    assert committed(cluster, topic, 1) == [b"kept"]


def test_transaction_is_aborted_when_its_time_is_up(tmp_path: Any) -> None:
    often = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
    with embedded(1, data=tmp_path, properties=often) as running:
        topic = new_topic(running)
        producer = transactional(running, **{"transaction.timeout.ms": 1000, "message.timeout.ms": 1000})
        producer.begin_transaction()
        producer.produce(topic, b"late", partition=0)
        producer.flush(WAIT_S)
        wait_until(lambda: end_of(running, topic, "read_committed") == 2, "the transaction is aborted")
        with pytest.raises(KafkaException) as refused:
            producer.commit_transaction(WAIT_S)
        assert refused.value.args[0].code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
        assert committed(running, topic, 0) == []


@pytest.mark.parametrize("commits", [True, False])
def test_offsets_of_a_group_count_with_the_transaction(cluster: Running, topic: str, commits: bool) -> None:
    """Consume, transform, produce: what was read is committed with what was made of it."""
    source, target = topic, new_topic(cluster)
    plain = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(10):
        plain.produce(source, b"%d" % number, partition=0)
    plain.flush(WAIT_S)
    group = f"g-{uuid4().hex}"
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    producer = transactional(cluster)
    with closing(consumer):
        consumer.subscribe([source])
        producer.begin_transaction()
        for _ in range(10):
            message = consumer.poll(WAIT_S)
            assert message is not None
            assert message.error() is None, message.error()
            producer.produce(target, b"<%b>" % message.value(), partition=1)
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), WAIT_S
        )
        if commits:
            producer.commit_transaction(WAIT_S)
        else:
            producer.abort_transaction(WAIT_S)
        wanted = sorted(b"<%d>" % number for number in range(10)) if commits else []
        assert committed(cluster, target, len(wanted)) == wanted
        wait_until(
            lambda: offset_of(cluster, group, source) == (10 if commits else None), "the offsets have settled"
        )


def offset_of(cluster: Running, group: str, topic: str) -> int | None:
    """Return the group's committed offset; -2 while a transaction is open that may change it."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    request = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
    asked = admin.list_consumer_group_offsets([request], require_stable=True)
    found = asked[group].result(WAIT_S).topic_partitions[0]
    if found.error is not None:
        assert found.error.code() == KafkaError.UNSTABLE_OFFSET_COMMIT
        return -2
    return found.offset if found.offset >= 0 else None


def test_offsets_are_unstable_while_the_transaction_is_open(cluster: Running, topic: str) -> None:
    group = f"g-{uuid4().hex}"
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    producer = transactional(cluster)
    with closing(consumer):
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            [TopicPartition(topic, 0, 7)], consumer.consumer_group_metadata(), WAIT_S
        )
        assert offset_of(cluster, group, topic) == -2
        producer.commit_transaction(WAIT_S)
        wait_until(lambda: offset_of(cluster, group, topic) == 7, "the offset counts")


@pytest.mark.parametrize("library", [KAFKA_PYTHON, AIOKAFKA])
def test_other_libraries_commit_and_abort(cluster: Running, topic: str, library: str) -> None:
    if library == KAFKA_PYTHON:
        with_kafka_python(cluster, topic)
    else:
        asyncio.run(with_aiokafka(cluster, topic))


def with_kafka_python(cluster: Running, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id=f"p-{uuid4().hex}")
    with closing(producer):
        producer.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number, partition=0)
            producer.flush(WAIT_S)
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        consumer_timeout_ms=WAIT_S * 1000,
    )
    with closing(consumer):
        from kafka import TopicPartition as Partition

        consumer.assign([Partition(topic, 0)])
        assert [next(consumer).value for _ in range(2)] == [b"0", b"2"]


async def with_aiokafka(cluster: Running, topic: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id=f"p-{uuid4().hex}")
    await producer.start()
    try:
        for number in range(4):
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"%d" % number, partition=0)
            if number % 2:
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
    finally:
        await producer.stop()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=cluster.bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        from aiokafka import TopicPartition as Partition

        consumer.assign([Partition(topic, 0)])
        found = [await asyncio.wait_for(consumer.getone(), WAIT_S) for _ in range(2)]
        assert [each.value for each in found] == [b"0", b"2"]
    finally:
        await consumer.stop()


def test_transaction_goes_on_while_leaders_and_its_coordinator_change() -> None:
    """In mid-transaction, kill its coordinator, then a partition's leader, then the group's coordinator.

    The group's coordinator dies last, because librdkafka remembers it: a producer waits for minutes for a
    coordinator that was away before (librdkafka's issue 5511).
    """
    with embedded(4, properties={"replica.lag.time.max.ms": "2000"}) as running:
        topic = new_topic(running)
        offset_of(running, "any", topic)  # makes the topic of offsets
        transactional(running)  # and that of transactions
        replicas = running.replicas_of(topic, 0)
        name = name_led_by(running, TRANSACTION_STATE_TOPIC, replicas)
        group = name_led_by(running, GROUP_OFFSETS_TOPIC, set(running.cluster.brokers) - replicas)
        producer = transactional(running, name, **{"transaction.timeout.ms": 900_000})
        consumer = Consumer({"bootstrap.servers": running.bootstrap, "group.id": group})
        rounds = 0
        with closing(consumer):
            for victim in (
                lambda: leader(running, TRANSACTION_STATE_TOPIC, name),
                lambda: running.leader_of(topic, 0),
                lambda: leader(running, GROUP_OFFSETS_TOPIC, group),
            ):
                producer.begin_transaction()
                producer.produce(topic, b"%d" % rounds, partition=0)
                producer.flush(WAIT_S)
                producer.send_offsets_to_transaction(
                    [TopicPartition(topic, 0, rounds)], consumer.consumer_group_metadata(), WAIT_S
                )
                broker_id = victim()
                running.kill(broker_id)
                producer.produce(topic, b"%d again" % rounds, partition=1)
                again(lambda: producer.commit_transaction(WAIT_S))
                running.start(broker_id)
                wait_until(
                    lambda: all(running.leader_of(topic, each) >= 0 for each in range(PARTITIONS)),
                    "all partitions are led",
                )
                rounds += 1
            wanted = sorted(b"%d%b" % (number, what) for number in range(rounds) for what in (b"", b" again"))
            assert committed(running, topic, len(wanted)) == wanted
            wait_until(lambda: offset_of(running, group, topic) == rounds - 1, "the last offset counts")


def again(work: Any) -> None:
    """Repeat what the library says may be repeated."""
    while True:
        try:
            work()
            return
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


def name_led_by(running: Running, internal_topic: str, brokers: set[int]) -> str:
    """Return a name whose coordinator is one of these brokers."""
    wait_until(lambda: leader(running, internal_topic, "any") >= 0, f"{internal_topic} is led")
    names = (f"name-{number}" for number in count())
    return next(each for each in names if leader(running, internal_topic, each) in brokers)


def leader(running: Running, internal_topic: str, key: str) -> int:
    metadata = next(iter(running.cluster.brokers.values())).services.metadata
    count = metadata.partition_count(internal_topic)
    return running.leader_of(internal_topic, partition_of_group(key, count))
