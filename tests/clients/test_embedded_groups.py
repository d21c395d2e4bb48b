"""Groups on an embedded cluster: real consumers with our drop-ins, commits, and failing coordinators."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaProducer
from kafka.coordinator.assignors.range import RangePartitionAssignor

from restow.cluster.broker.metadata import GROUP_OFFSETS_TOPIC
from restow.cluster.groups import partition_of_group
from tests.clients.consumers import KafkaPython, Librdkafka, wait_until_shared_evenly
from tests.clients.embedded import WAIT_S, Running, embedded, wait_until
from tests.clients.test_groups import AIOKAFKA, KAFKA_PYTHON, live_together, of_aiokafka, of_kafka_python
from tests.often import often

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.topics import Topics

SESSION_MS = 45_000
"""Longer than a busy machine stalls: a member that is removed reads its records again."""
ASK_ELSEWHERE = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._WAIT_COORD,
    KafkaError._TRANSPORT,
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(3) as running:
        yield running


@pytest.fixture(scope="module")
def bootstrap(cluster: Running) -> str:
    """Override the real Kafka's address for the fixture `topics`."""
    return cluster.bootstrap


@pytest.mark.parametrize("name", often(KAFKA_PYTHON, "range", "cooperative-sticky"))
def test_kafka_python_consumers_share_topics(topics: Topics, name: str) -> None:
    live_together(topics, name, [of_kafka_python] * 3)


@pytest.mark.parametrize("name", often(AIOKAFKA, "sticky"))
def test_both_clients_share_one_group(topics: Topics, name: str) -> None:
    live_together(topics, name, [of_kafka_python, of_aiokafka, of_kafka_python])


def write(bootstrap: str, topic: str, numbers: range) -> None:
    with closing(KafkaProducer(bootstrap_servers=bootstrap, acks="all")) as producer:
        for number in numbers:
            producer.send(topic, b"%d" % number, partition=0)
        producer.flush()


def read(consumer: Consumer, count: int) -> list[int]:
    found: list[int] = []

    def enough() -> bool:
        for message in consumer.consume(count - len(found), 0.2):
            assert message.error() is None, message.error()
            found.append(int(message.value()))
        return len(found) >= count

    wait_until(enough, f"{count} records")
    return found


def consumer_of(bootstrap: str, group: str, topic: str, **more: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": SESSION_MS,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )
    consumer.subscribe([topic])
    return consumer


def commit(consumer: Consumer) -> None:
    """Commit; retry without a coordinator, because librdkafka looks for another only once."""

    def done() -> bool:
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in ASK_ELSEWHERE:
                raise
            return False
        return True

    wait_until(done, "a commit")


@pytest.mark.parametrize("end", [Running.stop, Running.kill], ids=["stop", "kill"])
def test_commits_outlive_their_coordinator(end: object) -> None:
    with embedded(3) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic("t", 1, 3)])["t"].result(WAIT_S)
        write(running.bootstrap, "t", range(100))
        first = consumer_of(running.bootstrap, "g", "t")
        assert read(first, 40) == list(range(40))
        commit(first)
        running.wait_until_known(GROUP_OFFSETS_TOPIC, 50)
        coordinator = running.leader_of(GROUP_OFFSETS_TOPIC, partition_of_group("g", 50))
        end(running, coordinator)  # type: ignore[operator]
        assert read(first, 30) == list(range(40, 70))
        commit(first)
        first.close()
        second = consumer_of(running.bootstrap, "g", "t")
        assert read(second, 30) == list(range(70, 100))
        second.close()
        running.start(coordinator)


def test_operators_see_and_remove_groups(cluster: Running) -> None:
    bootstrap, group, topic = cluster.bootstrap, "seen", "seen-topic"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 3)])[topic].result(WAIT_S)
    write(bootstrap, topic, range(10))
    consumer = consumer_of(bootstrap, group, topic, group_instance_id="static-one", client_id="me")
    assert read(consumer, 10) == list(range(10))
    commit(consumer)

    listed = {each.group_id: each for each in admin.list_consumer_groups().result(WAIT_S).valid}
    assert listed[group].state.name == "STABLE"
    described = admin.describe_consumer_groups([group])[group].result(WAIT_S)
    (member,) = described.members
    assert (member.client_id, member.group_instance_id, member.host) == ("me", "static-one", "/127.0.0.1")
    assert {each.partition for each in member.assignment.topic_partitions} == {0, 1}
    assert described.coordinator.id == cluster.leader_of(GROUP_OFFSETS_TOPIC, partition_of_group(group, 50))
    with pytest.raises(Exception, match=r"NON_EMPTY_GROUP|not empty"):
        admin.delete_consumer_groups([group])[group].result(WAIT_S)
    consumer.close()
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0), TopicPartition(topic, 1)])
    offsets = admin.list_consumer_group_offsets([wanted])[group].result(WAIT_S)
    assert {each.partition: each.offset for each in offsets.topic_partitions}[0] == 10


def test_offsets_and_empty_groups_are_deleted(cluster: Running) -> None:
    bootstrap, group, topic = cluster.bootstrap, "gone", "gone-topic"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(WAIT_S)
    write(bootstrap, topic, range(5))
    consumer = consumer_of(bootstrap, group, topic)
    read(consumer, 5)
    commit(consumer)
    consumer.close()
    admin.delete_consumer_groups([group])[group].result(WAIT_S)
    assert group not in {each.group_id for each in admin.list_consumer_groups().result(WAIT_S).valid}
    again = consumer_of(bootstrap, group, topic)
    assert read(again, 5) == list(range(5))
    again.close()


def test_members_of_three_clients_share_a_topic(cluster: Running, topics: Topics) -> None:
    """librdkafka, kafka-python and our drop-in agree on range; together they read everything once."""
    for name in topics.names:
        cluster.wait_until_known(name, topics.partitions_each)
    with ExitStack() as stack:
        members = [
            stack.enter_context(member)
            for member in (
                Librdkafka(topics, "range"),
                KafkaPython(topics, RangePartitionAssignor),
                KafkaPython(topics, KAFKA_PYTHON["range"]),
            )
        ]
        wait_until_shared_evenly(topics, members)
        places = sorted(topics.everything)
        wanted = {b"%d" % number for number in range(600)}
        producer = Producer({"bootstrap.servers": topics.bootstrap})
        for number in range(600):
            topic, partition = places[number % len(places)]
            producer.produce(topic, b"%d" % number, partition=partition)
        producer.flush(WAIT_S)

        def all_read() -> bool:
            return wanted <= {value for member in members for value in member.read}

        wait_until(all_read, "600 records")
        found = [value for member in members for value in member.read if value in wanted]
        assert len(found) == len(wanted)
