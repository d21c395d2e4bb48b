"""The wire's hot paths against kafka-python's codec and asyncio's streams.

    python -m benchmarks.wire [--json]

Both sides write the same content to the same bytes, or read the same bytes, which is checked before anything
is timed. The library encodes messages that were built beforehand, so its time is that of encoding alone; ours
starts from what a broker has at hand. Frames go through one connection on loopback, both ends on one uvloop.
"""

from __future__ import annotations

import asyncio
import struct
import time
from typing import TYPE_CHECKING, Any

from benchmarks.report import Row, best_of, print_rows, wants_json
from restow.runtime.network import SystemNetwork
from restow.wire.fetch import Fetched, encode_fetch_response
from restow.wire.messages import (
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from restow.wire.metadata import PartitionMetadata, TopicMetadata, encode_metadata_response
from restow.wire.primitives import Endpoint
from restow.wire.produce import Produced, encode_produce_response
from restow.wire.reader import reader_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from restow.runtime.protocols import Connection

RUNS = 7
REPEATS = 50
PARTITIONS = 1000
FETCHED = 100
RECORDS = bytes(range(256)) * 40
METADATA_VERSION = 12
FETCH_VERSION = 12
PRODUCE_VERSION = 9
LEADER_AND_ISR_VERSION = 6
NODE = Endpoint(1, "localhost", 9092)
CODEC = "kafka-python 3 codec"
STREAMS = "asyncio streams"
MAX_FRAME = 1024 * 1024
FRAMES = ((100, 50_000, 256), (128 * 1024, 4_000, 16), (1_000_000, 500, 8))
"""The size of a frame, how many of them, and how many may be on the way."""


def main() -> None:
    """Measure and print."""
    as_json = wants_json("The wire's hot paths, ours against kafka-python's and asyncio's.")
    rows = [*writing(), *reading(), *framing()]
    print_rows("Wire", rows, as_json=as_json)


def writing() -> Iterable[Row]:
    """Compare the writing of responses."""
    topic = TopicMetadata("events", partitions=map(partition_metadata, range(PARTITIONS)))
    metadata = metadata_message(topic)
    yield compare(
        f"write Metadata v{METADATA_VERSION}, {PARTITIONS:,} partitions, none changed",
        lambda: joined(metadata_by_hand(topic)),
        lambda: metadata.encode(version=METADATA_VERSION),
        target=0.05,
    )
    yield compare(
        f"write Metadata v{METADATA_VERSION}, {PARTITIONS:,} partitions, one changed",
        lambda: joined(metadata_after_change(topic)),
        lambda: metadata.encode(version=METADATA_VERSION),
        target=0.5,
    )
    fetched = [Fetched(n, 0, 1000, 1000, 0, RECORDS) for n in range(FETCHED)]
    fetch = fetch_message(fetched)
    assert joined(encode_fetch_response(FETCH_VERSION, [("events", fetched)])) == fetch.encode(
        version=FETCH_VERSION
    )
    yield compare(
        f"write Fetch v{FETCH_VERSION}, {FETCHED} partitions × {len(RECORDS):,} bytes, in parts",
        lambda: encode_fetch_response(FETCH_VERSION, [("events", fetched)]),
        lambda: fetch.encode(version=FETCH_VERSION),
        target=0.3,
        same=False,
    )
    produced = [Produced(n, 0, 1000, -1, 0) for n in range(10)]
    produce = produce_message(produced)
    yield compare(
        f"write Produce v{PRODUCE_VERSION}, 10 partitions",
        lambda: joined(encode_produce_response(PRODUCE_VERSION, [("events", produced)])),
        lambda: produce.encode(version=PRODUCE_VERSION),
        target=0.5,
    )


def reading() -> Iterable[Row]:
    """Compare the reading of requests."""
    for name, message, version in requests():
        encoded = bytes(message.encode(version=version))
        kind: Any = type(message)
        read = reader_of(kind, version)
        assert read(encoded, 0)[0] == kind.decode(encoded, version=version)
        ours = microseconds(lambda read=read, encoded=encoded: read(encoded, 0))  # type: ignore[misc]
        peer = microseconds(
            lambda kind=kind, encoded=encoded, version=version: kind.decode(encoded, version=version)  # type: ignore[misc]
        )
        yield Row(name=name, ours=ours, peer=peer, peer_name=CODEC, unit="µs", target=1.0)


def requests() -> Iterable[tuple[str, Any, int]]:
    """Yield requests, each with a name and its version."""
    topic = MetadataRequest.MetadataRequestTopic(name="events")
    yield f"read Metadata v{METADATA_VERSION}, one topic", MetadataRequest(topics=[topic]), METADATA_VERSION
    partitions = [
        FetchRequest.FetchTopic.FetchPartition(
            partition=n, fetch_offset=n * 100, partition_max_bytes=MAX_FRAME
        )
        for n in range(FETCHED)
    ]
    topics = [FetchRequest.FetchTopic(topic="events", partitions=partitions)]
    request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=topics)
    yield f"read Fetch v{FETCH_VERSION}, {FETCHED} partitions", request, FETCH_VERSION
    data = ProduceRequest.TopicProduceData
    records = data.PartitionProduceData(index=0, records=RECORDS)
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[data(name="events", partition_data=[records])]
    )
    yield f"read Produce v{PRODUCE_VERSION}, one batch of {len(RECORDS):,} bytes", request, PRODUCE_VERSION
    state = LeaderAndIsrRequest.LeaderAndIsrTopicState
    states = [
        state.LeaderAndIsrPartitionState(partition_index=n, leader=1, isr=[1, 2, 3], replicas=[1, 2, 3])
        for n in range(500)
    ]
    request = LeaderAndIsrRequest(topic_states=[state(topic_name="events", partition_states=states)])
    yield f"read LeaderAndIsr v{LEADER_AND_ISR_VERSION}, 500 partitions", request, LEADER_AND_ISR_VERSION


def framing() -> Iterable[Row]:
    """Send frames that the server acknowledges, with at most a window of them on the way."""
    import uvloop

    for size, count, window in FRAMES:
        ours = min(uvloop.run(through_network(size, count, window)) for _ in range(3))
        peer = min(uvloop.run(through_streams(size, count, window)) for _ in range(3))
        rate = f"{1e6 / ours:,.0f} frames/s, {size / ours:,.0f} MB/s"
        name = f"frames of {size:,} bytes on loopback ({rate})"
        yield Row(name=name, ours=ours, peer=peer, peer_name=STREAMS, unit="µs", target=1.0)


def compare(
    name: str, ours: Callable[[], Any], peer: Callable[[], Any], *, target: float, same: bool = True
) -> Row:
    """Return the best time of each side for the same bytes."""
    if same and ours() != peer():
        raise SystemExit(f"{name}: the bytes differ, so the times would say nothing")
    return Row(
        name=name,
        ours=microseconds(ours),
        peer=microseconds(peer),
        peer_name=CODEC,
        unit="µs",
        target=target,
    )


def microseconds(work: Callable[[], Any]) -> float:
    """Return the best time of one call."""

    def repeat() -> None:
        for _ in range(REPEATS):
            work()

    return best_of(RUNS, repeat) * 1000 / REPEATS


def joined(parts: tuple[Any, ...]) -> bytes:
    """Return a body in one piece."""
    return b"".join(parts)


def partition_metadata(partition: int, leader_epoch: int = 7) -> PartitionMetadata:
    """Return a partition with three replicas, all in sync."""
    return PartitionMetadata(partition, 1, leader_epoch, (1, 2, 3), (1, 2, 3))


def metadata_by_hand(topic: TopicMetadata) -> tuple[bytes, ...]:
    """Return our response about one topic."""
    return encode_metadata_response(
        METADATA_VERSION,
        brokers=(NODE,),
        cluster_id="bench",
        controller_id=1,
        topics=[topic.encode(METADATA_VERSION)],
    )


def metadata_after_change(topic: TopicMetadata) -> tuple[bytes, ...]:
    """Return the same response after one partition has changed."""
    topic.remove(0)
    topic.put(partition_metadata(0))
    return metadata_by_hand(topic)


def metadata_message(topic: TopicMetadata) -> Any:
    """Return the library's message of the same content."""
    kind = MetadataResponse.MetadataResponseTopic
    partitions = [
        kind.MetadataResponsePartition(
            version=METADATA_VERSION,
            error_code=0,
            partition_index=it.partition,
            leader_id=it.leader_id,
            leader_epoch=it.leader_epoch,
            replica_nodes=list(it.replicas),
            isr_nodes=list(it.isr),
            offline_replicas=[],
        )
        for it in topic.partitions
    ]
    return MetadataResponse(
        version=METADATA_VERSION,
        brokers=[MetadataResponse.MetadataResponseBroker(version=METADATA_VERSION, **NODE._asdict())],
        cluster_id="bench",
        controller_id=1,
        topics=[kind(version=METADATA_VERSION, error_code=0, name=topic.name, partitions=partitions)],
    )


def fetch_message(fetched: list[Fetched]) -> Any:
    """Return the library's message of the same content."""
    kind = FetchResponse.FetchableTopicResponse
    partitions = [
        kind.PartitionData(
            version=FETCH_VERSION,
            partition_index=it.partition,
            high_watermark=it.high_watermark,
            last_stable_offset=it.last_stable_offset,
            log_start_offset=it.log_start_offset,
            aborted_transactions=None,
            records=it.records,
        )
        for it in fetched
    ]
    topic = kind(version=FETCH_VERSION, topic="events", partitions=partitions)
    return FetchResponse(version=FETCH_VERSION, responses=[topic])


def produce_message(produced: list[Produced]) -> Any:
    """Return the library's message of the same content."""
    kind = ProduceResponse.TopicProduceResponse
    partitions = [
        kind.PartitionProduceResponse(
            version=PRODUCE_VERSION,
            index=it.partition,
            error_code=it.error_code,
            base_offset=it.base_offset,
            log_append_time_ms=it.log_append_time_ms,
            log_start_offset=it.log_start_offset,
        )
        for it in produced
    ]
    topic = kind(version=PRODUCE_VERSION, name="events", partition_responses=partitions)
    return ProduceResponse(version=PRODUCE_VERSION, responses=[topic])


class Acknowledge:
    """The server: it answers every frame with a short one."""

    def opened(self, connection: Connection) -> None:
        self._connection = connection

    def frame(self, payload: bytes) -> None:
        self._connection.send(struct.pack(">i", len(payload)))

    def closed(self, _: Exception | None) -> None:
        del self._connection


class Pusher:
    """The client: it sends another frame after each answer, until all are answered."""

    def __init__(self, payload: bytes, count: int) -> None:
        self._payload = payload
        self._unsent = count
        self._unanswered = count
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def opened(self, connection: Connection) -> None:
        self._connection = connection

    def push(self) -> None:
        """Send one more frame, if one is left."""
        if self._unsent:
            self._unsent -= 1
            self._connection.send(self._payload)

    def frame(self, payload: bytes) -> None:
        assert payload == struct.pack(">i", len(self._payload))
        self._unanswered -= 1
        if self._unanswered:
            self.push()
        else:
            self.done.set_result(None)

    def closed(self, reason: Exception | None) -> None:
        assert self.done.done(), reason


async def through_network(size: int, count: int, window: int) -> float:
    """Return the microseconds that a frame takes with SystemNetwork."""
    network = SystemNetwork()
    listener = await network.listen("127.0.0.1", 0, Acknowledge, MAX_FRAME)
    pusher = Pusher(bytes(size), count)
    connection = await network.connect("127.0.0.1", listener.port, pusher, 10)
    started = time.perf_counter()
    for _ in range(window):
        pusher.push()
    await pusher.done
    took_s = time.perf_counter() - started
    connection.close()
    await listener.close()
    return took_s / count * 1e6


async def through_streams(size: int, count: int, window: int) -> float:
    """Return the microseconds that a frame takes with asyncio's streams."""

    async def acknowledge(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(count):
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            payload = await reader.readexactly(length)
            writer.write(struct.pack(">ii", 4, len(payload)))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(acknowledge, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
    frame = struct.pack(">i", size) + bytes(size)
    started = time.perf_counter()
    for _ in range(window):
        writer.write(frame)
    for answered in range(count):
        await reader.readexactly(8)
        if answered + window < count:
            writer.write(frame)
    took_s = time.perf_counter() - started
    writer.close()
    server.close()
    await server.wait_closed()
    return took_s / count * 1e6


if __name__ == "__main__":
    main()
