"""Quotas of clients, set and asked for at a real Kafka 3.9 with ZooKeeper and at an embedded cluster."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from harness.apache import apache_kafka
from harness.zookeeper import zookeeper
from restow.cluster.store.zookeeper import ZooKeeperStore
from restow.wire.messages import CreateTopicsRequest, ProduceRequest
from restow.wire.records import Record, build
from tests.apache.raw_client import RawClient
from tests.apache.test_znodes_of_kafka import tree
from tests.clients.embedded import Running, embedded
from tests.conftest import needs_kafka
from tests.quota_requests import ANY, DEFAULT, EXACT, alteration, question, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.apache

RATE, FETCHES, PERCENT, MUTATIONS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
ALTERATIONS = {
    "user": alteration(({"user": "alice"}, {RATE: 1e6, PERCENT: 50.0})),
    "default user": alteration(({"user": None}, {FETCHES: 2e6})),
    "client": alteration(({"client-id": "app"}, {RATE: 5e5, MUTATIONS: 2.5})),
    "default client": alteration(({"client-id": None}, {RATE: 7e5})),
    "both": alteration(({"user": "alice", "client-id": "app"}, {RATE: 3e5})),
    "both, new user": alteration(({"user": "carol", "client-id": "app"}, {RATE: 3e5})),
    "both default": alteration(({"user": None, "client-id": None}, {RATE: 4e5})),
    "address": alteration(({"ip": "127.0.0.9"}, {"connection_creation_rate": 9.0})),
    "odd names": alteration(({"user": "CN=a b,O=ü/*~", "client-id": "<default>"}, {RATE: 1e5})),
    "only checked": alteration(({"user": "bob"}, {RATE: 1e6}), only_check=True),
    "changed, removed": alteration(({"user": "alice"}, {RATE: 2e6, PERCENT: None})),
    "last one": alteration(({"user": "carol", "client-id": "app"}, {RATE: None})),
    "not set": alteration(({"user": "nobody"}, {RATE: None})),
    "unknown quota": alteration(({"user": "bob"}, {"no_such_rate": 1.0})),
    "quota of another entity": alteration(({"ip": "127.0.0.1"}, {RATE: 1.0})),
    "not whole": alteration(({"user": "bob"}, {RATE: 1.5})),
    "one is wrong": alteration(({"user": "bob"}, {RATE: 1.0, FETCHES: 1.5})),
    "unknown type": alteration(({"group": "bob"}, {RATE: 1.0})),
    "no type": alteration(({}, {RATE: 1.0})),
    "empty name": alteration(({"user": ""}, {RATE: 1.0})),
    "address and user": alteration(({"ip": "127.0.0.1", "user": "bob"}, {RATE: 1.0})),
    "no address": alteration(({"ip": "1.2.3.4.5"}, {"connection_creation_rate": 1.0})),
    "several": alteration(({"user": "dora"}, {RATE: 1.0}), ({"user": ""}, {RATE: 1.0})),
}
QUESTIONS = {
    "all": question(),
    "strictly nothing": question(strict=True),
    "users": question(("user", ANY, None)),
    "users alone": question(("user", ANY, None), strict=True),
    "alice": question(("user", EXACT, "alice")),
    "default user": question(("user", DEFAULT, None)),
    "alice's clients": question(("user", EXACT, "alice"), ("client-id", ANY, None)),
    "app": question(("client-id", EXACT, "app"), strict=True),
    "odd": question(("client-id", EXACT, "<default>")),
    "addresses": question(("ip", ANY, None)),
    "nobody": question(("user", EXACT, "nobody")),
    "twice": question(("user", ANY, None), ("user", ANY, None)),
    "empty type": question(("", ANY, None)),
    "unknown type": question(("group", ANY, None)),
    "mixed": question(("ip", ANY, None), ("user", ANY, None)),
}


class Both(NamedTuple):
    apache: str
    zookeeper: str
    ours: Running
    bursts_ms: tuple[int, int]
    """For how long each has throttled a first burst."""


@pytest.fixture(scope="module")
def both(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("quota-answers")
    with ExitStack() as stack:
        with needs_kafka():
            server = stack.enter_context(zookeeper(folder / "zookeeper", fsync=False))
            theirs = stack.enter_context(apache_kafka(folder / "kafka", zookeeper=server.address))
        ours = stack.enter_context(embedded(1))
        # Before any quota is set nothing is counted, so this comes first.
        bursts_ms = throttled_ms(theirs.bootstrap), throttled_ms(ours.bootstrap)
        yield Both(theirs.bootstrap, server.address, ours, bursts_ms)


async def entities(store: Any) -> dict[str, bytes]:
    found = await tree(store, "/config")
    return {path: data for path, data in found.items() if not path.startswith("/config/changes/")}


async def entities_of_apache(address: str) -> dict[str, bytes]:
    store = await ZooKeeperStore.connect(address)
    try:
        return await entities(store)
    finally:
        await store.close()


def test_quotas_are_set_stored_and_shown_as_by_kafka(both: Both) -> None:
    with RawClient(both.apache) as theirs, RawClient(both.ours.bootstrap) as ours:
        for name, request in ALTERATIONS.items():
            expected, found = (
                [each.error_code for each in side.ask(1, request).entries] for side in (theirs, ours)
            )
            assert found == expected, name
        for name, request in QUESTIONS.items():
            for version in (0, 1):
                expected, found = theirs.ask(version, request), ours.ask(version, request)
                assert found.error_code == expected.error_code, name
                assert (found.entries is None) == (expected.entries is None), name
                assert shown(found) == shown(expected), name
        assert shown(ours.ask(1, QUESTIONS["all"])), "there is something to compare"
    kept = asyncio.run(entities_of_apache(both.zookeeper))
    services = both.ours.cluster.brokers[0].services
    assert both.ours.do(entities(services.store)) == kept


def write(size: int) -> Any:
    topic = ProduceRequest.TopicProduceData
    data = topic.PartitionProduceData(index=0, records=build([Record(0, 1_000, None, b"x" * size)]))
    return ProduceRequest(
        acks=1, timeout_ms=30_000, transactional_id=None, topic_data=[topic(name="t", partition_data=[data])]
    )


def throttled_ms(bootstrap: str) -> int:
    """Return for how long a producer is throttled that writes 20 s of its quota at once."""
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    found = 0
    with RawClient(bootstrap) as client:
        client.ask(5, CreateTopicsRequest(topics=[topic], timeout_ms=60_000))
        changed = client.ask(1, alteration(({"client-id": "raw"}, {RATE: 10_000.0})))
        assert not changed.entries[0].error_code
        deadline_s = time.monotonic() + 120
        while not found:
            # A broker obeys a moment later, and until then it counts nothing.
            assert time.monotonic() < deadline_s
            answer = client.ask(9, write(200_000))
            found = answer.throttle_time_ms
    with RawClient(bootstrap) as client:
        client.ask(1, alteration(({"client-id": "raw"}, {RATE: None})))
    return found


def test_first_burst_is_throttled_for_as_long_as_by_kafka(both: Both) -> None:
    """A window without its last sample is free."""
    expected, found = both.bursts_ms
    assert found == expected
    assert expected > 0
