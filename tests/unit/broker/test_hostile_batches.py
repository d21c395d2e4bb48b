"""Truncated, damaged or lying batches: refused with the protocol's error, and not stored.

A broker stores payloads unopened as long as later work on the batch is safe: offset lookups by time,
compaction, and the loading of groups.
"""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.broker.metadata import GROUP_OFFSETS_TOPIC
from restow.cluster.embedded import EmbeddedCluster
from restow.wire import messages
from restow.wire.batches import HEADER_BYTES, crc_of
from restow.wire.codec import encode_request
from restow.wire.compression import GZIP, LZ4, SNAPPY, ZSTD, compress
from restow.wire.error_codes import ErrorCode
from restow.wire.records import MOST_RECORDS, Record, build
from tests.often import often
from tests.unit.broker.conversations import Client, run
from tests.unit.broker.harm import MEGABYTE, memory, port_of, unharmed
from tests.unit.broker.test_every_version import TOPIC, prepared

if TYPE_CHECKING:
    from pathlib import Path

GOOD = build([Record(number, 1_000, b"key", b"value") for number in range(3)])
LENGTH_AT, MAGIC_AT, CRC_AT, ATTRIBUTES_AT, LAST_DELTA_AT, PRODUCER_AT, COUNT_AT = 8, 16, 17, 21, 23, 43, 57


def with_fields(batch: bytes, *fields: tuple[int, str, int]) -> bytes:
    """Return the batch with these numbers at these positions, and a matching CRC."""
    changed = bytearray(batch)
    for at, layout, value in fields:
        struct.pack_into(f">{layout}", changed, at, value)
    struct.pack_into(">I", changed, CRC_AT, crc_of(bytes(changed), 0, len(changed)))
    return bytes(changed)


def holding(payload: bytes, count: int, compression: int) -> bytes:
    """Return a batch with an arbitrary payload and record count."""
    head = bytearray(GOOD[:HEADER_BYTES])
    struct.pack_into(">i", head, LENGTH_AT, HEADER_BYTES - 12 + len(payload))
    fields = ((ATTRIBUTES_AT, "h", compression), (LAST_DELTA_AT, "i", count - 1), (COUNT_AT, "i", count))
    return with_fields(bytes(head) + payload, *fields)


CORRUPT, INVALID = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD
BAD = {
    "cut off in the header": (GOOD[:40], INVALID),
    "cut off in the records": (GOOD[:-1], INVALID),
    "something behind it": (GOOD + b"\0", INVALID),
    "a second one that is cut off": (GOOD + GOOD[:-5], INVALID),
    "a wrong CRC": (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), CORRUPT),
    "magic 0": (with_fields(GOOD, (MAGIC_AT, "b", 0)), INVALID),
    "magic 1": (with_fields(GOOD, (MAGIC_AT, "b", 1)), INVALID),
    "magic 3": (with_fields(GOOD, (MAGIC_AT, "b", 3)), INVALID),
    "magic -1": (with_fields(GOOD, (MAGIC_AT, "b", -1)), INVALID),
    "a length of nothing": (with_fields(GOOD, (LENGTH_AT, "i", 0)), CORRUPT),
    "a negative length": (with_fields(GOOD, (LENGTH_AT, "i", -1)), CORRUPT),
    "a length of two milliards": (with_fields(GOOD, (LENGTH_AT, "i", 2**31 - 1)), INVALID),
    "a negative count": (with_fields(GOOD, (COUNT_AT, "i", -1)), CORRUPT),
    "no records": (with_fields(GOOD, (COUNT_AT, "i", 0)), INVALID),
    "fewer than offsets": (with_fields(GOOD, (COUNT_AT, "i", 2)), INVALID),
    "more than offsets": (with_fields(GOOD, (COUNT_AT, "i", 4)), INVALID),
    "more than fit": (with_fields(GOOD, (COUNT_AT, "i", 9**9), (LAST_DELTA_AT, "i", 9**9 - 1)), INVALID),
    "more compressed ones than are ever opened": (holding(b"anything", MOST_RECORDS + 1, ZSTD), INVALID),
    "compression 5": (with_fields(GOOD, (ATTRIBUTES_AT, "h", 5)), INVALID),
    "compression 7": (with_fields(GOOD, (ATTRIBUTES_AT, "h", 7)), INVALID),
    "a control batch": (with_fields(GOOD, (ATTRIBUTES_AT, "h", 0x20)), INVALID),
    "a producer without a sequence": (with_fields(GOOD, (PRODUCER_AT, "q", 5)), INVALID),
    "nothing": (b"", INVALID),
    "noise": (bytes(range(256)) * 4, INVALID),
    "zeros": (bytes(1000), INVALID),
    "larger than messages may be": (
        build([Record(0, 1, None, bytes(2 * MEGABYTE))]),
        ErrorCode.MESSAGE_TOO_LARGE,
    ),
}


def produce(batch: bytes, topic: str = TOPIC, partition: int = 0, acks: int = -1) -> Any:
    request = messages.ProduceRequest
    data = request.TopicProduceData
    part = data.PartitionProduceData(index=partition, records=batch)
    return request(acks=acks, timeout_ms=5000, topic_data=[data(name=topic, partition_data=[part])])


async def error_of(client: Client, body: Any) -> int:
    client.ask(0, 8, 1, body)
    return int((await client.answer(0, 8)).responses[0].partition_responses[0].error_code)


async def offset_at(client: Client, timestamp: int) -> int:
    request = messages.ListOffsetsRequest
    topic = request.ListOffsetsTopic
    asked = topic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    client.ask(2, 5, 1, request(topics=[topic(name=TOPIC, partitions=[asked])]))
    (found,) = (await client.answer(2, 5)).topics[0].partitions
    assert found.error_code == 0
    return int(found.offset)


def test_produce_refuses_bad_batches_and_stores_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(data=tmp_path, fsync=False) as cluster:
            client = await prepared(cluster)
            end = await offset_at(client, -1)
            async with unharmed(cluster, caplog):
                told = {
                    name: ErrorCode.of(await error_of(client, produce(batch)))
                    for name, (batch, _) in BAD.items()
                }
                assert told == {name: code for name, (_, code) in BAD.items()}
                assert await offset_at(client, -1) == end
            assert await error_of(client, produce(GOOD)) == 0
            assert await offset_at(client, -1) == end + 3

    run(scenario())


@pytest.mark.parametrize("name", ["a wrong CRC", "magic 1", "more than fit", "cut off in the header"])
def test_bad_batch_with_acks_0_closes_the_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(data=tmp_path, fsync=False) as cluster:
            client = await prepared(cluster)
            async with unharmed(cluster, caplog):
                reader, writer = await asyncio.open_connection("127.0.0.1", port_of(cluster))
                frame = b"".join(map(bytes, encode_request(0, 8, 1, "x", produce(BAD[name][0], acks=0))))
                writer.write(struct.pack(">i", len(frame)) + frame)
                assert await reader.read() == b""
                writer.close()
            assert await error_of(client, produce(GOOD)) == 0

    run(scenario())


@pytest.mark.parametrize("compression", often([GZIP, SNAPPY, LZ4, ZSTD], SNAPPY, ZSTD))
def test_offset_lookup_survives_bombs_and_lies_in_compressed_batches(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, compression: int
) -> None:
    """A lookup by time opens the batch."""
    empty_record = bytes([12, 0, 0, 0, 1, 1, 0])
    inside = {
        "much more than was sent": (compress(bytes(15 * MEGABYTE), compression), 3),
        "not compressed at all": (b"anything" * 10, 3),
        "more records than a broker opens": (compress(empty_record * 1000, compression), MOST_RECORDS + 1),
        "fewer records than it says": (compress(empty_record, compression), 1000),
    }
    if compression in (GZIP, ZSTD):
        inside["a bomb"] = (compress(bytes(800 * MEGABYTE), compression), 3)

    async def scenario() -> None:
        async with EmbeddedCluster(data=tmp_path, fsync=False) as cluster:
            client = await prepared(cluster)
            async with unharmed(cluster, caplog, most_grown=256 * MEGABYTE):
                for payload, count in inside.values():
                    batch = with_fields(
                        holding(payload, count, compression), (35, "q", 9_000), (27, "q", 9_000)
                    )
                    error = await error_of(client, produce(batch))
                    assert error in (0, INVALID, ErrorCode.MESSAGE_TOO_LARGE)
                    held = memory()
                    assert await offset_at(client, 5_000) >= 0
                    assert memory() - held < 200 * MEGABYTE

    run(scenario())


def test_groups_load_despite_invalid_batches_in_consumer_offsets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Admin clients may write there. The other groups are loaded when the broker restarts."""
    junk = [
        build([Record(0, 1, None, b"no key")]),
        build([Record(0, 1, b"\xff\xff", b"an unknown kind")]),
        build([Record(0, 1, b"\0\1", b"cut off")]),
        build([Record(0, 1, b"\0\2\0\1g", b"\0\3\xff")]),
        holding(b"not compressed", 3, ZSTD),
        holding(b"\x0e\0\0\0\1\1\0", 1, 0),
        holding(compress(bytes(70 * MEGABYTE), ZSTD), 3, ZSTD),
    ]

    async def scenario() -> None:
        async with EmbeddedCluster(
            data=tmp_path, fsync=False, properties={"offsets.topic.num.partitions": "1"}
        ) as cluster:
            services = cluster.brokers[0].services
            assert services.creation.create_in_passing(GROUP_OFFSETS_TOPIC)
            known = services.metadata
            assert services.creation.create_in_passing(TOPIC)
            assert await known.until(lambda: known.partition_count(GROUP_OFFSETS_TOPIC) == 1, 120)
            assert await known.until(lambda: known.partition_count(TOPIC) == 1, 120)
            client = await Client.connect(port_of(cluster))
            assert await committed(client, 41) == 0
            for batch in junk:
                client.connection.send(
                    *encode_request(0, 8, 1, "__admin_client", produce(batch, GROUP_OFFSETS_TOPIC))
                )
                answer = await client.answer(0, 8)
                assert answer.responses[0].partition_responses[0].error_code in (0, INVALID)
            assert await committed(client, 42) == 0
            await cluster.stop_broker(0)
            await cluster.start_broker(0)
            client = await Client.connect(port_of(cluster))
            assert await offset_of(client) == 42

    run(scenario())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def committed(client: Client, offset: int) -> int:
    request = messages.OffsetCommitRequest
    topic = request.OffsetCommitRequestTopic
    told = topic.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    while True:
        client.ask(
            8,
            2,
            1,
            request(
                group_id="g",
                generation_id_or_member_epoch=-1,
                member_id="",
                topics=[topic(name=TOPIC, partitions=[told])],
            ),
        )
        code = int((await client.answer(8, 2)).topics[0].partitions[0].error_code)
        if code not in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
            return code
        await asyncio.sleep(0.02)


async def offset_of(client: Client) -> int:
    request = messages.OffsetFetchRequest
    while True:
        client.ask(
            9,
            5,
            1,
            request(
                group_id="g", topics=[request.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])]
            ),
        )
        answer = await client.answer(9, 5)
        if answer.error_code == 0:
            return int(answer.topics[0].partitions[0].committed_offset)
        await asyncio.sleep(0.02)
