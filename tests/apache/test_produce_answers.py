"""Produce at a real Apache Kafka 3.9 and at an embedded cluster: what is refused, and what is stored."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from harness.apache import apache_kafka
from restow.wire.batches import scan
from restow.wire.compression import NAMES
from restow.wire.messages import CreateTopicsRequest, FetchRequest, MetadataRequest, ProduceRequest
from restow.wire.records import Record, build, parse
from tests.apache.raw_client import RawClient
from tests.clients.embedded import embedded, wait_until
from tests.conftest import needs_kafka
from tests.old_messages import message_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.apache

KEYED = [Record(0, 1_000, b"k", b"v"), Record(1, 1_001, b"l", None)]
KEYLESS = [Record(0, 1_000, b"k", b"v"), Record(1, 1_001, None, b"w"), Record(2, 1_002, None, None)]
REFUSED: Mapping[str, tuple[int, bytes]] = {
    "no key": (7, build(KEYLESS)),
    "no key, with the reasons": (8, build(KEYLESS)),
    "no key, compressed": (11, build(KEYLESS, compression=1)),
    "keys": (8, build(KEYED)),
    "two batches": (8, build(KEYED) + build(KEYED)),
    "two idempotent batches": (8, 2 * build(KEYED, producer_id=7, producer_epoch=0, base_sequence=0)),
    "zstd in an old version": (6, build(KEYED, compression=4)),
    "zstd": (7, build(KEYED, compression=4)),
    "magic 1 in a new version": (8, b""),
    "cut off": (8, build(KEYED)[:-1]),
}
OLD = ((b"k", b"v" * 50), (None, b"w" * 50), (b"l", None))
COMPRESSION_TYPES = ("producer", "uncompressed", *NAMES[1:])


class Sides(NamedTuple):
    theirs: RawClient
    ours: RawClient


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    with ExitStack() as stack:
        with needs_kafka():
            theirs = stack.enter_context(apache_kafka(tmp_path_factory.mktemp("apache")))
        ours = stack.enter_context(embedded(1))
        clients = (stack.enter_context(RawClient(each.bootstrap)) for each in (theirs, ours))
        yield Sides(*clients)


def create(client: RawClient, name: str, configs: Mapping[str, str]) -> None:
    kind = CreateTopicsRequest.CreatableTopic
    settings = [kind.CreatableTopicConfig(name=each, value=value) for each, value in configs.items()]
    topic = kind(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=settings)
    answer = client.ask(2, CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=False))
    assert [each.error_code for each in answer.topics] == [0], answer
    asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)])
    wait_until(lambda: led(client.ask(4, asked)), f"{name} has a leader")
    wait_until(lambda: fetched(client, name).error_code == 0, f"the leader of {name} knows that it is")


def led(answer: Any) -> bool:
    return bool(answer.topics[0].partitions) and answer.topics[0].partitions[0].leader_id >= 0


def produce(client: RawClient, topic: str, records: bytes, version: int) -> Any:
    kind = ProduceRequest.TopicProduceData
    data = [kind.PartitionProduceData(index=0, records=records)]
    request = ProduceRequest(
        transactional_id=None, acks=1, timeout_ms=30_000, topic_data=[kind(name=topic, partition_data=data)]
    )
    (answer,) = client.ask(version, request).responses[0].partition_responses
    return answer


def fetched(client: RawClient, topic: str) -> Any:
    """Return what the leader answers to a fetch of everything in the topic."""
    kind = FetchRequest.FetchTopic
    part = kind.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        topics=[kind(topic=topic, partitions=[part])],
    )
    (found,) = client.ask(10, request).responses[0].partitions
    return found


def stored(client: RawClient, topic: str) -> list[tuple[Any, ...]]:
    """Return everything in the topic: of each batch its compression, times and records."""
    found = fetched(client, topic)
    assert found.error_code == 0
    batches = bytes(found.records or b"")
    told = []
    for position, header in scan(batches):
        batch = batches[position : position + header.size]
        times = (header.first_timestamp, header.max_timestamp)
        told.append((header.base_offset, header.compression, header.timestamp_type, times, parse(batch)))
    return told


def test_produce_is_refused_as_by_kafka(sides: Sides) -> None:
    for client in sides:
        create(client, "compacted", {"cleanup.policy": "compact"})
    for name, (version, records) in REFUSED.items():
        given = records or message_set(OLD, 1, 0)
        answers = [produce(client, "compacted", given, version) for client in sides]
        found = [
            (each.error_code, [it.batch_index for it in each.record_errors or ()] if version >= 8 else None)
            for each in answers
        ]
        assert found[1] == found[0], (name, answers[0])


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_sets_are_stored_as_by_kafka(sides: Sides, magic: int) -> None:
    for compression, version in product((0, 1, 2, 3), (0, 1, 2)):
        topic = f"old-{magic}-{compression}-{version}"
        told = []
        for client in sides:
            create(client, topic, {})
            assert produce(client, topic, message_set(OLD, magic, compression), version).error_code == 0
            told.append(stored(client, topic))
        assert told[1] == told[0], topic
        assert len(told[0][0][-1]) == 3


@pytest.mark.parametrize("wanted", COMPRESSION_TYPES)
def test_topics_compression_is_that_of_kafka(sides: Sides, wanted: str) -> None:
    configs = {"compression.type": wanted}
    for stamped in (False, True):
        topic = f"compressed-{wanted}-{stamped}"
        for client in sides:
            create(
                client, topic, {**configs, "message.timestamp.type": "LogAppendTime"} if stamped else configs
            )
            for compression in range(len(NAMES)):
                answer = produce(client, topic, build(KEYLESS, compression=compression), 7)
                assert answer.error_code == 0
            produce(client, topic, message_set(OLD, 1, 1), 2)
        theirs, ours = (stored(client, topic) for client in sides)
        if stamped:
            theirs, ours = ([(*each[:3], len(each[-1])) for each in told] for told in (theirs, ours))
        assert ours == theirs
        assert len(theirs) == len(NAMES) + 1
