"""Brokers stop, die and come back; no acknowledged record is lost, and clients continue."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from kafka.admin import KafkaAdminClient, NewTopic

from restow.cluster.broker.metadata import GROUP_OFFSETS_TOPIC
from tests.clients.embedded import WAIT_S, Running, embedded, wait_until
from tests.clients.test_embedded_basics import read_with_confluent, read_with_kafka_python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from restow.cluster.broker.services import Services

SAFE = {"min.insync.replicas": "2"}


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Running]:
    """Start three brokers with the offsets topic, which cannot be created while one is away."""
    with embedded(3, data=tmp_path, racks=("a", "b", "c")) as running:
        services = running.cluster.brokers[0].services
        running.do(create_offsets_topic(services))
        yield running


async def create_offsets_topic(services: Services) -> None:
    assert services.creation.create_in_passing(GROUP_OFFSETS_TOPIC)
    metadata = services.metadata
    assert await metadata.until(lambda: metadata.partition_count(GROUP_OFFSETS_TOPIC) == 50, WAIT_S)


def create(running: Running, topic: str, partitions: int = 1, replication_factor: int = 3) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=running.bootstrap)) as admin:
        admin.create_topics(
            [
                NewTopic(
                    topic,
                    num_partitions=partitions,
                    replication_factor=replication_factor,
                    topic_configs=SAFE,
                )
            ]
        )
    running.wait_until_known(topic, partitions)


def write(running: Running, topic: str, values: list[bytes], meanwhile: Callable[[], None]) -> list[bytes]:
    """Write half, call `meanwhile`, write the rest; return the acknowledged records."""
    acknowledged: list[bytes] = []
    producer = Producer(
        {
            "bootstrap.servers": running.bootstrap,
            "enable.idempotence": True,
            "message.timeout.ms": WAIT_S * 1000,
            "linger.ms": 1,
        }
    )

    def delivered(error: object, message: object) -> None:
        assert error is None, error
        acknowledged.append(message.value())  # type: ignore[attr-defined]

    half = len(values) // 2
    for value in values[:half]:
        producer.produce(topic, value, on_delivery=delivered)
        producer.poll(0)
    producer.flush(WAIT_S)
    for value in values[half : half + half // 2]:
        producer.produce(topic, value, on_delivery=delivered)
    meanwhile()
    for value in values[half + half // 2 :]:
        producer.produce(topic, value, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0
    return acknowledged


@pytest.mark.parametrize("end", [Running.stop, Running.kill], ids=["stop", "kill"])
@pytest.mark.parametrize("who", ["leader", "controller", "follower"])
def test_broker_stops_and_comes_back(three: Running, who: str, end: Callable[[Running, int], None]) -> None:
    create(three, "t")
    leader = three.leader_of("t")
    controller = three.cluster.brokers[0].services.metadata.controller_id
    victim = {
        "leader": leader,
        "controller": controller,
        "follower": next(each for each in range(3) if each != leader),
    }[who]
    values = [f"{number}".encode() for number in range(2000)]
    acknowledged = write(three, "t", values, lambda: end(three, victim))
    assert sorted(acknowledged) == sorted(values)
    assert read_with_confluent(three.bootstrap, "t", count=len(values)) == values
    wait_until(lambda: three.leader_of("t") not in (victim, -1), "another leader")
    wait_until(lambda: three.in_sync("t") == {0, 1, 2} - {victim}, "the others are in sync")
    three.start(victim)
    wait_until(lambda: three.in_sync("t") == {0, 1, 2}, "all replicas in sync again")
    assert read_with_kafka_python(three.bootstrap, "t", count=len(values)) == values


def test_rolling_restart_loses_nothing(three: Running) -> None:
    """A producer keeps writing meanwhile."""
    create(three, "rolled", partitions=3)

    def roll() -> None:
        for broker in range(3):
            three.stop(broker)
            three.start(broker)
            wait_until(
                lambda: all(three.in_sync("rolled", number) == {0, 1, 2} for number in range(3)),
                f"all replicas in sync after broker {broker} came back",
            )

    values = [f"{number}".encode() for number in range(3000)]
    assert sorted(write(three, "rolled", values, roll)) == sorted(values)
    assert sorted(read_with_confluent(three.bootstrap, "rolled", count=len(values))) == sorted(values)


def test_nothing_is_acknowledged_below_min_insync_replicas(three: Running) -> None:
    create(three, "t")
    leader = three.leader_of("t")
    others = [each for each in range(3) if each != leader]
    for broker in others:
        three.kill(broker)
    wait_until(lambda: three.in_sync("t") == {leader}, "only the leader in sync")
    producer = Producer({"bootstrap.servers": three.bootstrap, "acks": "all", "message.timeout.ms": 1500})
    errors: list[object] = []
    producer.produce("t", b"too few", on_delivery=lambda error, _: errors.append(error))
    producer.flush(WAIT_S)
    assert errors[0] is not None
    three.start(others[0])
    wait_until(lambda: others[0] in three.in_sync("t"), "the one that came back is in sync")
    assert three.in_sync("t") == {leader, others[0]}
    acknowledged: list[object] = []
    producer = Producer({"bootstrap.servers": three.bootstrap, "acks": "all"})
    producer.produce("t", b"enough", on_delivery=lambda error, _: acknowledged.append(error))
    producer.flush(WAIT_S)
    assert acknowledged == [None]


def test_killed_cluster_comes_back_with_all_acknowledged_records(tmp_path: Path) -> None:
    values = [f"{number}".encode() for number in range(1000)]
    with embedded(3, data=tmp_path) as running:
        create(running, "t")
        write(running, "t", values, lambda: None)
        for broker in range(3):
            running.kill(broker)
        for broker in range(3):
            running.start(broker)
        wait_until(lambda: running.in_sync("t") == {0, 1, 2}, "all in sync")
        assert read_with_kafka_python(running.bootstrap, "t", count=len(values)) == values
