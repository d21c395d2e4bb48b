"""Reading from followers (KIP-392) on the embedded cluster: by hand, and with `client.rack` of a client."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from restow.cluster.config.table import InvalidConfig
from restow.cluster.replication.replica_selection import RACK_AWARE_SELECTOR
from restow.wire import messages
from tests.apache.raw_client import RawClient
from tests.clients.embedded import Running, embedded, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RECORDS = 50
RACKS = ("a", "b", "c")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    data: Path = tmp_path_factory.mktemp("racks")
    properties = {"replica.selector.class": RACK_AWARE_SELECTOR}
    with embedded(3, data=data, racks=RACKS, properties=properties) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for made in admin.create_topics([NewTopic("t", 1, 3)]).values():
            made.result()
        cluster.wait_until_known("t", 1)
        produce(cluster, 0)
        yield cluster


def produce(running: Running, first: int) -> list[bytes]:
    values = [str(number).encode() for number in range(first, first + RECORDS)]
    producer = Producer({"bootstrap.servers": running.bootstrap, "acks": "all"})
    for value in values:
        producer.produce("t", value, partition=0)
    assert producer.flush(60) == 0
    return values


def address_of(running: Running, broker: int) -> str:
    nodes = AdminClient({"bootstrap.servers": running.bootstrap}).list_topics(timeout=120).brokers
    return f"{nodes[broker].host}:{nodes[broker].port}"


def fetched(address: str, rack: str, offset: int = 0, version: int = 12) -> Any:
    """Fetch once from a broker; return the partition's answer."""
    request = messages.FetchRequest
    wanted = request.FetchTopic.FetchPartition(
        partition=0,
        current_leader_epoch=-1,
        fetch_offset=offset,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=1 << 20,
    )
    body = request(
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[request.FetchTopic(topic="t", partitions=[wanted])],
        forgotten_topics_data=[],
        rack_id=rack,
    )
    with RawClient(address) as client:
        (topic,) = client.ask(version, body).responses
    return topic.partitions[0]


def test_leader_sends_consumers_to_the_replica_in_their_rack(running: Running) -> None:
    leader = running.leader_of("t", 0)
    near = {rack: broker for broker, rack in enumerate(RACKS)}
    for rack, broker in near.items():
        if broker == leader:
            continue
        wait_until(
            lambda rack=rack, broker=broker: (
                fetched(address_of(running, leader), rack).preferred_read_replica == broker
            ),
            f"the consumer of rack {rack} is sent to broker {broker}",
        )
        sent = fetched(address_of(running, leader), rack)
        assert (sent.error_code, bytes(sent.records or b"")) == (0, b"")
        served = fetched(address_of(running, broker), rack)
        assert (served.error_code, served.preferred_read_replica) == (0, -1)
        wait_until(
            lambda rack=rack, broker=broker: bool(fetched(address_of(running, broker), rack).records),
            "the follower has heard of the high watermark, and serves records",
        )
    for rack in (RACKS[leader], "elsewhere", ""):
        stays = fetched(address_of(running, leader), rack)
        assert (stays.preferred_read_replica, bool(stays.records)) == (-1, True)


def test_followers_refuse_consumers_that_know_no_racks(running: Running) -> None:
    follower = next(broker for broker in range(3) if broker != running.leader_of("t", 0))
    refused = fetched(address_of(running, follower), "", version=10)
    assert refused.error_code == 6  # NOT_LEADER_OR_FOLLOWER


def test_offset_that_no_follower_has_is_read_from_the_leader(running: Running) -> None:
    leader = running.leader_of("t", 0)
    other = next(rack for broker, rack in enumerate(RACKS) if broker != leader)
    beyond = fetched(address_of(running, leader), other, offset=10**6)
    assert (beyond.error_code, beyond.preferred_read_replica) == (1, -1)  # OFFSET_OUT_OF_RANGE


def test_confluent_consumer_reads_from_its_rack_while_records_come(running: Running) -> None:
    leader = running.leader_of("t", 0)
    near = next(broker for broker in range(3) if broker != leader)
    reads_from: set[int] = set()

    def told(text: str) -> None:
        partition = json.loads(text)["topics"].get("t", {}).get("partitions", {}).get("0", {})
        reads_from.add(partition.get("broker", -1))

    consumer = Consumer(
        {
            "bootstrap.servers": running.bootstrap,
            "group.id": "near",
            "client.rack": RACKS[near],
            "auto.offset.reset": "earliest",
            "statistics.interval.ms": 100,
            "stats_cb": told,
        }
    )
    read: list[bytes] = []

    def has_read(count: int) -> bool:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            read.append(message.value())
        return len(read) >= count and near in reads_from

    with closing(consumer):
        consumer.subscribe(["t"])
        wait_until(lambda: has_read(RECORDS), "the records are read from the rack's replica")
        produce(running, RECORDS)
        wait_until(lambda: has_read(2 * RECORDS), "later records are read, too")
    assert read == [str(number).encode() for number in range(2 * RECORDS)]


def test_unknown_selector_is_refused(tmp_path: Path) -> None:
    properties = {"replica.selector.class": "my.own.Selector"}
    with (
        pytest.raises(InvalidConfig, match=r"replica\.selector\.class must be"),
        embedded(1, data=tmp_path, properties=properties),
    ):
        pass
