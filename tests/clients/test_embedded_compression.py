"""Every client writes in every compression, and every client reads it, even after compaction."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition

from harness.kcat import Kcat, kcat
from harness.tools import Tools
from restow.model import TopicPartition as OurPartition
from restow.wire.batches import scan
from restow.wire.compression import NAMES
from tests.clients.embedded import WAIT_S, Running, embedded, wait_until
from tests.conftest import needs_kafka
from tests.often import often

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from py4j.java_gateway import JavaGateway

pytestmark = pytest.mark.jvm

RECORDS = 120
KEYS = 10
SERIALIZER = "org.apache.kafka.common.serialization.StringSerializer"
DESERIALIZER = "org.apache.kafka.common.serialization.StringDeserializer"


class Written(NamedTuple):
    key: bytes
    value: bytes
    header: bytes


@dataclass(frozen=True)
class Place:
    """A topic of one partition, and the clients' way to it."""

    bootstrap: str
    topic: str
    gateway: JavaGateway
    kcat: Kcat


Writer = Callable[[Place, str, "Sequence[Written]"], None]
Reader = Callable[[Place, int], "list[Written]"]


def confluent_writes(place: Place, compression: str, records: Sequence[Written]) -> None:
    producer = Producer(
        {"bootstrap.servers": place.bootstrap, "compression.type": compression, "linger.ms": 50}
    )
    for key, value, header in records:
        producer.produce(place.topic, value, key, partition=0, headers=[("by", header)])
    assert producer.flush(WAIT_S) == 0


def confluent_reads(place: Place, count: int) -> list[Written]:
    consumer = Consumer({"bootstrap.servers": place.bootstrap, "group.id": "nobody"})
    consumer.assign([TopicPartition(place.topic, 0, 0)])
    found: list[Written] = []

    def enough() -> bool:
        for message in consumer.consume(count, 0.2):
            assert message.error() is None, message.error()
            found.append(Written(message.key(), message.value(), message.headers()[0][1]))
        return len(found) >= count

    try:
        wait_until(enough, f"{count} records")
    finally:
        consumer.close()
    return found


def kafka_python_writes(place: Place, compression: str, records: Sequence[Written]) -> None:
    kind = None if compression == "none" else compression
    with closing(
        KafkaProducer(bootstrap_servers=place.bootstrap, compression_type=kind, linger_ms=50)
    ) as producer:
        for key, value, header in records:
            producer.send(place.topic, value, key, partition=0, headers=[("by", header)])
        producer.flush()


def kafka_python_reads(place: Place, count: int) -> list[Written]:
    with closing(KafkaConsumer(bootstrap_servers=place.bootstrap)) as consumer:
        consumer.assign([PythonPartition(place.topic, 0)])
        consumer.seek_to_beginning()
        found: list[Written] = []

        def enough() -> bool:
            for records in consumer.poll(timeout_ms=200).values():
                found.extend(Written(each.key, each.value, each.headers[0][1]) for each in records)
            return len(found) >= count

        wait_until(enough, f"{count} records")
        return found


def aiokafka_writes(place: Place, compression: str, records: Sequence[Written]) -> None:
    async def write() -> None:
        kind = None if compression == "none" else compression
        async with AIOKafkaProducer(
            bootstrap_servers=place.bootstrap, compression_type=kind, linger_ms=50
        ) as producer:
            for key, value, header in records:
                await producer.send(place.topic, value, key, partition=0, headers=[("by", header)])
            await producer.flush()

    asyncio.run(asyncio.wait_for(write(), WAIT_S))


def aiokafka_reads(place: Place, count: int) -> list[Written]:
    async def read() -> list[Written]:
        found: list[Written] = []
        async with AIOKafkaConsumer(bootstrap_servers=place.bootstrap) as consumer:
            partition = AioPartition(place.topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            while len(found) < count:
                records = (await consumer.getmany(timeout_ms=200)).get(partition, [])
                found += [Written(each.key, each.value, each.headers[0][1]) for each in records]
        return found

    return asyncio.run(asyncio.wait_for(read(), WAIT_S))


def kcat_writes(place: Place, compression: str, records: Sequence[Written]) -> None:
    """Write with kcat, whose headers are the same for all records of a call."""
    (header,) = {record.header.decode() for record in records}
    lines = b"".join(b"%s:%s\n" % (record.key, record.value) for record in records)
    to = ("-P", "-b", place.bootstrap, "-t", place.topic, "-p", "0", "-K", ":", "-H", f"by={header}")
    place.kcat.run(*to, "-z", compression, "-X", "linger.ms=50", given=lines)


def kcat_reads(place: Place, count: int) -> list[Written]:
    of = ("-C", "-b", place.bootstrap, "-t", place.topic, "-p", "0", "-c", str(count), "-q")
    lines = place.kcat.run(*of, "-f", r"%k:%s:%h\n").splitlines()
    return [Written(key, value, header[3:]) for key, value, header in (line.split(b":") for line in lines)]


def java_writes(place: Place, compression: str, records: Sequence[Written]) -> None:
    jvm = place.gateway.jvm
    settings = {"key.serializer": SERIALIZER, "value.serializer": SERIALIZER, "linger.ms": "50"}
    settings |= {"bootstrap.servers": place.bootstrap, "compression.type": compression}
    producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(settings)
    for key, value, header in records:
        record = jvm.org.apache.kafka.clients.producer.ProducerRecord(
            place.topic, 0, key.decode(), value.decode()
        )
        record.headers().add("by", header)
        producer.send(record)
    producer.close()


def java_reads(place: Place, count: int) -> list[Written]:
    jvm = place.gateway.jvm
    settings = {"key.deserializer": DESERIALIZER, "value.deserializer": DESERIALIZER}
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
        {**settings, "bootstrap.servers": place.bootstrap}
    )
    partition = jvm.org.apache.kafka.common.TopicPartition(place.topic, 0)
    found: list[Written] = []

    def enough() -> bool:
        for each in consumer.poll(jvm.java.time.Duration.ofMillis(200)).records(partition):
            header = bytes(each.headers().lastHeader("by").value())
            found.append(Written(each.key().encode(), each.value().encode(), header))
        return len(found) >= count

    try:
        consumer.assign([partition])
        consumer.seekToBeginning([partition])
        wait_until(enough, f"{count} records")
    finally:
        consumer.close()
    return found


WRITERS: dict[str, Writer] = {
    "librdkafka": confluent_writes,
    "kafka-python": kafka_python_writes,
    "aiokafka": aiokafka_writes,
    "kcat": kcat_writes,
    "java": java_writes,
}
READERS: dict[str, Reader] = {
    "librdkafka": confluent_reads,
    "kafka-python": kafka_python_reads,
    "aiokafka": aiokafka_reads,
    "kcat": kcat_reads,
    "java": java_reads,
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def cluster(data: Path) -> Iterator[Running]:
    with embedded(1, data=data) as running:
        yield running


@pytest.fixture(scope="module")
def place(cluster: Running, gateway: JavaGateway) -> Callable[..., Place]:
    """Return a function that creates a topic, given its name and configs."""
    with needs_kafka():
        program = kcat()

    def make(topic: str, **configs: str) -> Place:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        config = {name.replace("_", "."): value for name, value in configs.items()}
        admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(WAIT_S)
        return Place(cluster.bootstrap, topic, gateway, program)

    return make


def stored(data: Path, topic: str) -> set[str]:
    """Return the compressions of all batches on disk."""
    segments = [path.read_bytes() for path in data.glob(f"broker-0/*/{topic}-0/*.log")]
    return {NAMES[header.compression] for segment in segments for _, header in scan(segment)}


@pytest.mark.parametrize("compression", NAMES)
def test_every_client_reads_what_every_client_wrote(
    place: Callable[..., Place], data: Path, compression: str
) -> None:
    here = place(f"all-{compression}")
    sent: list[Written] = []
    for name, write in WRITERS.items():
        records = [
            Written(b"%d" % n, f"{n} {'written ' * 20}{name}".encode(), name.encode()) for n in range(RECORDS)
        ]
        write(here, compression, records)
        sent += records
    assert stored(data, here.topic) == {compression}
    for name, read in READERS.items():
        assert read(here, len(sent)) == sent, name


def records_of(cluster: Running, topic: str) -> list[int]:
    """Return the number of records of each segment, counted while nothing changes."""

    async def count() -> list[int]:
        replica = cluster.cluster.brokers[0].services.replicas.partition(OurPartition(topic, 0))
        assert replica is not None
        return [sum(header.count for _, header in segment.headers()) for segment in replica.log.segments]

    return cluster.do(count())


@pytest.mark.parametrize("compression", often(NAMES, "none", "lz4", "zstd"))
def test_compacted_topics_stay_readable(
    place: Callable[..., Place], cluster: Running, data: Path, compression: str
) -> None:
    """Written by librdkafka and by Java. Logs are cleaned whenever they are due to be flushed."""
    here = place(
        f"compact-{compression}",
        cleanup_policy="compact",
        segment_bytes="1000",
        min_cleanable_dirty_ratio="0.01",
        flush_ms="200",
    )
    sent: list[Written] = []
    for turn in range(6):
        name, write = list(WRITERS.items())[0 if turn % 2 else -1]
        records = [
            Written(b"key %d" % (n % KEYS + turn % 3), _value(turn, n), name.encode()) for n in range(RECORDS)
        ]
        write(here, compression, records)
        sent += records
    keys = {record.key for record in sent}
    wait_until(
        lambda: sum(records_of(cluster, here.topic)[:-1]) <= len(keys), "compaction of all but the last"
    )
    assert stored(data, here.topic) <= {compression, "none"}
    for read in (kafka_python_reads, confluent_reads, java_reads):
        latest = {record.key: record for record in read(here, sum(records_of(cluster, here.topic)))}
        assert latest == {record.key: record for record in sent}
    folder = next(data.glob(f"broker-0/*/{here.topic}-0"))
    with needs_kafka():
        said = Tools().run(
            *("kafka-dump-log", "--deep-iteration", "--files"),
            ",".join(str(path) for path in sorted(folder.glob("*.log"))),
        )
    assert not re.search(r"isvalid: false|mismatch|corrupt|Found", said, re.IGNORECASE), said


def _value(turn: int, number: int) -> bytes:
    return f"{turn} {number} {'value ' * (number % 7)}".encode()
