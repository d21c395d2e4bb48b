"""Injected faults, as kafka-python, aiokafka and confluent-kafka meet them on one shared cluster."""

from __future__ import annotations

from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPartition

from restow.client import NewTopic
from restow.cluster import ErrorCode, ThreadedCluster
from restow.connection import connect
from restow.model import TopicPartition
from tests.clients.embedded import wait_until
from tests.clients.fault_clients import CLIENTS, PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.cluster import ThreadedFaults
    from tests.clients.fault_clients import FaultClient

BROKERS = (0, 1, 2)
VALUES = [f"{number}".encode() for number in range(50)]
TIMEOUT_MS = 500
"""Of requests that get no answer. Others that take as long are sent again, and are not written twice."""
NUMBERS = count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThreadedCluster]:
    properties = {"offsets.topic.num.partitions": "3"}
    with ThreadedCluster(len(BROKERS), log_dirs=2, properties=properties, fsync=False) as running:
        yield running


@pytest.fixture
def faults(cluster: ThreadedCluster) -> Iterator[ThreadedFaults]:
    yield cluster.faults
    cluster.faults.end()


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> FaultClient:
    return CLIENTS[request.param]


@pytest.fixture
def topic(cluster: ThreadedCluster) -> str:
    """Return a new topic of one partition, with replicas on all brokers and broker 0 as leader."""
    name = f"t{next(NUMBERS)}"
    with connect(cluster.bootstrap) as admin:
        wanted = NewTopic(name=name, by_hand={0: BROKERS})
        assert admin.ask(lambda ask: ask.create_topics([wanted])) == {name: None}
    wait_until(lambda: leader_of(cluster, name) == 0, f"all brokers know {name}")
    return name


def leader_of(cluster: ThreadedCluster, topic: str) -> int:
    """Return the leader on which all running brokers agree, or -1."""
    running = [each for each in cluster._cluster.brokers.values() if each.is_running]
    known = [each.services.metadata.partition(TopicPartition(topic, 0)) for each in running]
    leaders = {-1 if each is None else each.leader_id for each in known}
    return leaders.pop() if len(leaders) == 1 else -1


def lead_elsewhere(cluster: ThreadedCluster, topic: str) -> None:
    """Let broker 1 lead the partition."""
    partition = TopicPartition(topic, 0)
    with connect(cluster.bootstrap) as admin:
        admin.ask(lambda ask: ask.alter_partition_reassignments({partition: (1, 2, 0)}))
        wait_until(
            lambda: not admin.ask(lambda ask: ask.list_partition_reassignments()), "the new order of replicas"
        )
        admin.ask(lambda ask: ask.elect_leaders([partition]))
    wait_until(lambda: leader_of(cluster, topic) == 1, "the new leader")


def log_dir_of(cluster: ThreadedCluster, broker: int, topic: str) -> str:
    logs = cluster._cluster.brokers[broker].services.logs
    return logs.directory_of(TopicPartition(topic, 0)).path


def read_back(cluster: ThreadedCluster, topic: str) -> list[bytes]:
    """Return all records of the topic, read without a group."""
    partition = KafkaPartition(topic, 0)
    found: list[bytes] = []
    with closing(KafkaConsumer(bootstrap_servers=cluster.bootstrap, metadata_max_age_ms=1000)) as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        end = consumer.end_offsets([partition])[partition]
        while consumer.position(partition) < end:
            for records in consumer.poll(timeout_ms=500).values():
                found += [record.value for record in records]
    return found


def test_producer_retries_through_errors_without_loss_or_doubles(
    cluster: ThreadedCluster, faults: ThreadedFaults, topic: str, client: FaultClient
) -> None:
    with faults.error("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=3, topic=topic) as fault:
        client.send(cluster.bootstrap, topic, VALUES)
    assert fault.hits == 3
    assert read_back(cluster, topic) == VALUES


def test_producer_does_not_write_twice_what_it_cannot_know_to_be_written(
    cluster: ThreadedCluster, faults: ThreadedFaults, topic: str, client: FaultClient
) -> None:
    with faults.disconnect("Produce", handled=True, times=2, topic=topic) as fault:
        client.send(cluster.bootstrap, topic, VALUES)
    assert fault.hits == 2
    assert read_back(cluster, topic) == VALUES


def test_consumer_survives_a_disconnect_and_a_coordinator_that_moved(
    cluster: ThreadedCluster, faults: ThreadedFaults, topic: str, client: FaultClient
) -> None:
    client.send(cluster.bootstrap, topic, VALUES)
    moved = faults.error("OffsetCommit", "NOT_COORDINATOR", times=1, client_id="tester")
    cut = faults.disconnect("Fetch", times=1, client_id="tester", topic=topic)
    assert client.read(cluster.bootstrap, topic, f"g-{topic}", len(VALUES)) == VALUES
    assert (moved.hits, cut.hits) == (1, 1)


def test_producer_times_out_and_tries_again_when_an_answer_is_late(
    cluster: ThreadedCluster, faults: ThreadedFaults, topic: str, client: FaultClient
) -> None:
    """The answer comes later than the test has patience, so only the client's own timeout helps."""
    fault = faults.delay("Produce", by_s=10 * PATIENCE_S, times=1, topic=topic)
    client.send(cluster.bootstrap, topic, VALUES, timeout_ms=TIMEOUT_MS)
    assert fault.hits == 1
    assert read_back(cluster, topic) == VALUES


def test_producer_goes_to_the_new_leader_when_the_old_one_is_a_black_hole(
    cluster: ThreadedCluster, faults: ThreadedFaults, topic: str, client: FaultClient
) -> None:
    held: list[int] = []

    def cut_off_the_leader() -> None:
        held.append(faults.cut_clients(broker=0, client_id="tester").hits)
        lead_elsewhere(cluster, topic)

    client.send(cluster.bootstrap, topic, VALUES, timeout_ms=TIMEOUT_MS, after_first=cut_off_the_leader)
    assert held[0] >= 1, "the client had a connection to the leader"
    faults.end()
    assert read_back(cluster, topic) == VALUES


def test_producer_goes_on_when_the_log_dir_of_the_leader_is_full(
    cluster: ThreadedCluster, faults: ThreadedFaults, topic: str, client: FaultClient
) -> None:
    path = log_dir_of(cluster, 0, topic)
    with faults.fill_log_dir(0, path) as fault:
        client.send(cluster.bootstrap, topic, VALUES)
        assert fault.hits >= 1
        assert cluster._cluster.brokers[0].services.logs.offline == (path,)
        assert leader_of(cluster, topic) in (1, 2)
    assert cluster._cluster.brokers[0].services.logs.offline == (), "the broker has started again"
    assert read_back(cluster, topic) == VALUES


def test_producer_goes_on_when_the_session_of_the_leader_expires(
    cluster: ThreadedCluster, faults: ThreadedFaults, topic: str, client: FaultClient
) -> None:
    def expire() -> None:
        with faults.expire_session(0):
            wait_until(lambda: leader_of(cluster, topic) in (1, 2), "another leader")

    client.send(cluster.bootstrap, topic, VALUES, after_first=expire)
    assert leader_of(cluster, topic) in (1, 2)
    assert read_back(cluster, topic) == VALUES
