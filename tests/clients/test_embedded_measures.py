"""Offsets and groups from our client, on an embedded cluster with real consumers."""

from __future__ import annotations

import asyncio
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer

from restow.client import (
    BrokerError,
    ConnectionSettings,
    ConsumerGroup,
    NewTopic,
    OffsetRange,
    Unreachable,
    connected,
)
from restow.model import TopicPartition as Partition
from restow.wire.error_codes import ErrorCode
from tests.clients.embedded import WAIT_S, Running, embedded, wait_until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from restow.client import KafkaAdmin

T = TypeVar("T")
PARTITIONS = 6


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(3) as running:
        yield running


@pytest.fixture
def topic(cluster: Running) -> str:
    """Create a topic with ten records per partition, the first three of partition 0 deleted."""
    name = f"t-{uuid4().hex}"
    made = ask(
        cluster,
        lambda admin: admin.create_topics([NewTopic(name=name, partitions=PARTITIONS, replication_factor=3)]),
    )
    assert made == {name: None}
    with closing(KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all")) as producer:
        for number in range(10 * PARTITIONS):
            producer.send(name, b"x", partition=number % PARTITIONS)
        producer.flush()
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    [deleted] = admin.delete_records([TopicPartition(name, 0, 3)]).values()
    deleted.result(WAIT_S)
    return name


def ask(cluster: Running, work: Callable[[KafkaAdmin], Awaitable[T]], timeout_s: float = 30) -> T:
    async def main() -> T:
        settings = ConnectionSettings(bootstrap=cluster.bootstrap, timeout_s=timeout_s)
        async with connected(settings) as admin:
            return await work(admin)

    return asyncio.run(main())


def coordinator_of(cluster: Running, group: str) -> int:
    """Return the one broker that lists the group."""

    async def find(admin: KafkaAdmin) -> list[int]:
        return [
            node.id
            for node in (await admin.describe_cluster()).nodes
            if group in await admin.describe_consumer_groups(node.id)
        ]

    [broker] = ask(cluster, find)
    return broker


@contextmanager
def member(cluster: Running, topic: str, group: str, **options: Any) -> Iterator[Consumer]:
    """Yield a consumer with an assignment."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "client.id": "reader",
            **options,
        }
    )
    try:
        consumer.subscribe([topic])
        wait_until(lambda: consumer.poll(0.2) is not None, "a record")
        yield consumer
    finally:
        consumer.close()


def test_offsets_cover_the_partitions_that_a_broker_leads(cluster: Running, topic: str) -> None:
    everything = [Partition(topic, number) for number in range(PARTITIONS)]
    found: dict[Partition, OffsetRange] = {}
    for broker in range(3):
        answers = ask(cluster, lambda admin, broker=broker: admin.list_offsets(broker, everything))
        assert answers.keys() == set(everything)
        for which, answer in answers.items():
            if cluster.leader_of(topic, which.partition) == broker:
                assert isinstance(answer, OffsetRange)
                found[which] = answer
            else:
                assert isinstance(answer, BrokerError)
                assert answer.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert {which.partition: (each.earliest, each.latest) for which, each in found.items()} == {
        0: (3, 10),
        **dict.fromkeys(range(1, PARTITIONS), (0, 10)),
    }
    assert all(each.leader_epoch is not None and each.leader_epoch >= 0 for each in found.values())


def test_offsets_of_no_partitions_send_no_request(cluster: Running) -> None:
    assert ask(cluster, lambda admin: admin.list_offsets(0, [])) == {}
    assert ask(cluster, lambda admin: admin.list_consumer_group_offsets(0, [])) == {}


def test_offsets_of_a_missing_topic_are_an_error(cluster: Running) -> None:
    which = Partition("nowhere", 0)
    error = ask(cluster, lambda admin: admin.list_offsets(0, [which]))[which]
    assert isinstance(error, BrokerError)
    assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("options", "assignor"),
    [
        ({"partition.assignment.strategy": "roundrobin"}, "roundrobin"),
        ({"group.protocol": "consumer", "group.remote.assignor": "range"}, "range"),
    ],
    ids=["classic", "consumer"],
)
def test_group_has_its_member_and_its_commits(
    cluster: Running, topic: str, options: dict[str, str], assignor: str
) -> None:
    group = f"g-{uuid4().hex}"
    with member(cluster, topic, group, **options, **{"client.rack": "r1"}) as consumer:
        committed = [TopicPartition(topic, number, 5 + number) for number in range(3)]
        consumer.commit(offsets=committed, asynchronous=False)
        broker = coordinator_of(cluster, group)
        found = ask(cluster, lambda admin: admin.describe_consumer_groups(broker))[group]
        assert isinstance(found, ConsumerGroup)
        assert (found.name, found.state, found.assignor) == (group, "Stable", assignor)
        [one] = found.members
        assert (one.client_id, one.topics, one.rack) == ("reader", (topic,), "r1")
        assert one.held == tuple(Partition(topic, number) for number in range(PARTITIONS))
        offsets = ask(cluster, lambda admin: admin.list_consumer_group_offsets(broker, [group]))[group]
        assert offsets == {Partition(topic, number): 5 + number for number in range(3)}

    def is_empty() -> bool:
        """Return whether the group is empty: a leaving consumer does not wait long for the answer."""
        gone = ask(cluster, lambda admin: admin.describe_consumer_groups(broker))[group]
        assert isinstance(gone, ConsumerGroup)
        return (gone.state, gone.members) == ("Empty", ())

    wait_until(is_empty, "that its member has left")
    assert ask(cluster, lambda admin: admin.list_consumer_group_offsets(broker, [group]))[group] == offsets


def test_group_on_the_wrong_broker_is_an_error(cluster: Running, topic: str) -> None:
    group = f"g-{uuid4().hex}"
    with member(cluster, topic, group) as consumer:
        consumer.commit(asynchronous=False)
        wrong = (coordinator_of(cluster, group) + 1) % 3
        error = ask(cluster, lambda admin: admin.list_consumer_group_offsets(wrong, [group]))[group]
        assert isinstance(error, BrokerError)
        assert error.code is ErrorCode.NOT_COORDINATOR


def test_unknown_broker_is_unreachable(cluster: Running) -> None:
    with pytest.raises(Unreachable):
        ask(cluster, lambda admin: admin.describe_consumer_groups(17), timeout_s=1)
