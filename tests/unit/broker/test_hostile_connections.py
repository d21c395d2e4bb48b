"""Misbehaving connections: the broker and its other clients go on."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.embedded import EmbeddedCluster
from restow.wire import messages
from restow.wire.batches import scan
from restow.wire.codec import encode_request
from restow.wire.records import Record, build
from tests.seeds import seeded
from tests.unit.broker.conversations import HOST, Client, run
from tests.unit.broker.harm import MEGABYTE, memory, port_of, still_served, unharmed, until
from tests.unit.broker.test_every_version import TOPIC, prepared

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROPERTIES = {"offsets.topic.num.partitions": "50"}


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def request(api_key: int, version: int, body: Any) -> bytes:
    return framed(b"".join(map(bytes, encode_request(api_key, version, 1, "hostile", body))))


@contextmanager
def callers(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Open that many connections and close them at the end."""
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection((HOST, port))) for _ in range(count)]


def hung_up(connection: socket.socket) -> bool:
    """Return whether the other side has closed; earlier data is skipped."""
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


def test_broker_survives_thousands_of_short_connections(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(seeded(7))
    beginnings = [
        b"",
        b"\0",
        struct.pack(">i", 5000) + b"x",
        request(3, 1, messages.MetadataRequest(topics=[])),
    ]

    async def scenario() -> None:
        async with (
            EmbeddedCluster(data=tmp_path, fsync=False) as cluster,
            unharmed(cluster, caplog) as bystander,
        ):
            for _ in range(30):
                with callers(port_of(cluster), 100) as crowd:
                    for connection in crowd:
                        connection.sendall(chance.choice(beginnings))
                        if chance.random() < 0.3:
                            reset = struct.pack("ii", 1, 0)
                            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                    await asyncio.sleep(0)
                await still_served(bystander)

    run(scenario())


def test_idle_and_incomplete_connections_take_little_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A thousand at once, most of which announce a megabyte or a hundred."""

    async def scenario() -> None:
        async with (
            EmbeddedCluster(data=tmp_path, fsync=False) as cluster,
            unharmed(cluster, caplog) as bystander,
        ):
            before = memory()
            with callers(port_of(cluster), 1000) as crowd:
                for number, connection in enumerate(crowd):
                    if number % 4:
                        announced = MEGABYTE if number % 4 == 1 else 100 * MEGABYTE
                        connection.sendall(struct.pack(">i", announced) + b"x")
                await still_served(bystander)
                await asyncio.sleep(0.1)
                assert memory() - before < 100 * MEGABYTE

    run(scenario())


def test_idle_connections_are_closed_after_configured_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        properties = {"connections.max.idle.ms": "300", "offsets.topic.num.partitions": "1"}
        async with EmbeddedCluster(data=tmp_path, fsync=False, properties=properties) as cluster:
            with callers(port_of(cluster), 20) as crowd:
                for connection in crowd[10:]:
                    connection.sendall(struct.pack(">i", 1000) + b"half a frame")
                await until(lambda: all(map(hung_up, crowd)))
            await still_served(await Client.connect(port_of(cluster)))

    run(scenario())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


LENGTHS = {"negative": -1, "most negative": -(2**31), "one too many": 100_001, "two milliards": 2**31 - 1}


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS.keys())
def test_invalid_frame_length_closes_the_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, length: int
) -> None:
    async def scenario() -> None:
        properties = {"socket.request.max.bytes": "100000"}
        async with (
            EmbeddedCluster(data=tmp_path, fsync=False, properties=properties) as cluster,
            unharmed(cluster, caplog),
        ):
            with callers(port_of(cluster), 1) as (connection,):
                connection.sendall(struct.pack(">i", length))
                await until(lambda: hung_up(connection))

    run(scenario())


def many_names(count: int) -> bytes:
    return struct.pack(">i", count) + b"\0\0" * count


HUGE = {
    "topics": framed(struct.pack(">hhih", 3, 1, 1, -1) + many_names(8_000_000)),
    "groups": framed(struct.pack(">hhih", 15, 0, 1, -1) + many_names(8_000_000)),
    "partitions": framed(
        struct.pack(">hhihhih", 9, 1, 1, -1, 0, 1, 0) + struct.pack(">i", 4_000_000) + bytes(16_000_000 - 64)
    ),
    "announced only": framed(struct.pack(">hhihi", 3, 1, 1, -1, 2**31 - 1)),
    "tags": framed(
        struct.pack(">hhih", 3, 9, 1, -1)
        + b"\x00\x00\x00\x00\x00"
        + b"\xff\xff\xff\x7f"
        + b"\x09\x00" * 999_999
    ),
}


@pytest.mark.parametrize("frame", HUGE.values(), ids=HUGE.keys())
def test_broker_survives_requests_with_millions_of_elements(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, frame: bytes
) -> None:
    async def scenario() -> None:
        async with (
            EmbeddedCluster(data=tmp_path, fsync=False) as cluster,
            unharmed(cluster, caplog, most_grown=100 * MEGABYTE),
        ):
            reader, writer = await asyncio.open_connection(HOST, port_of(cluster))
            writer.write(frame)
            assert await reader.read(1) == b""
            writer.close()

    run(scenario())


def test_other_clients_are_served_while_some_fetch_and_never_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Fifty clients ask for forty megabytes sixty times each. Others still get all of it."""
    fetch = messages.FetchRequest
    topic = fetch.FetchTopic

    def body(offset: int = 0) -> Any:
        partition = topic.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=50 * MEGABYTE)
        return fetch(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=50 * MEGABYTE,
            topics=[topic(topic=TOPIC, partitions=[partition])],
            forgotten_topics_data=[],
            rack_id="",
        )

    async def scenario() -> None:
        async with EmbeddedCluster(data=tmp_path, fsync=False) as cluster:
            client = await prepared(cluster)
            produce = messages.ProduceRequest
            data = produce.TopicProduceData
            batch = build([Record(0, 1, None, bytes(1_000_000))])
            for _ in range(40):
                part = data.PartitionProduceData(index=0, records=batch)
                client.ask(
                    0,
                    8,
                    1,
                    produce(acks=1, timeout_ms=1000, topic_data=[data(name=TOPIC, partition_data=[part])]),
                )
                assert (await client.answer(0, 8)).responses[0].partition_responses[0].error_code == 0
            async with unharmed(cluster, caplog, most_grown=500 * MEGABYTE):
                before = memory()
                with callers(port_of(cluster), 50) as crowd:
                    for connection in crowd:
                        connection.sendall(request(1, 11, body()) * 60)
                    settled = -1
                    while abs((now := memory()) - settled) > MEGABYTE:
                        settled = now
                        await asyncio.sleep(0.3)
                    assert now - before < 500 * MEGABYTE
                    offset = 0
                    while offset < 41:
                        client.ask(1, 11, 5, body(offset))
                        (fetched,) = (await client.answer(1, 11)).responses[0].partitions
                        offset = [header.next_offset for _, header in scan(fetched.records)][-1]

    run(scenario())


def test_listener_closes_while_connections_arrive(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """On the plain loop, too, no connection is lost while it is accepted."""

    async def scenario() -> None:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        async with EmbeddedCluster(data=tmp_path, fsync=False, properties=PROPERTIES) as cluster:
            for _ in range(10):
                with callers(port_of(cluster), 30) as crowd:
                    for connection in crowd:
                        connection.sendall(request(3, 1, messages.MetadataRequest(topics=[])))
                    await cluster.stop_broker(0)
                    while not all(map(hung_up, crowd)):
                        await asyncio.sleep(0.02)
                await cluster.start_broker(0)
            await still_served(await Client.connect(port_of(cluster)))
        assert not reported, reported[0]

    run(scenario())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
