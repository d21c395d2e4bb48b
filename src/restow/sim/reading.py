"""Read a partition from its beginning to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.wire.batches import LENGTH_ENDS, scan
from restow.wire.codec import FETCH
from restow.wire.fetch import REQUEST_VERSION, encode_fetch_request
from restow.wire.messages import MetadataRequest
from restow.wire.records import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.sim.client import SimClient
    from restow.wire.messages import Message

_MOST_BYTES = 1024 * 1024
_TRIES = 20


async def read_all(
    client: SimClient, brokers: Iterable[int], topic: str, partition: int
) -> list[bytes] | None:
    """Return the values of its records, or None if it cannot be read."""
    values: list[bytes] = []
    offset = 0
    for _ in range(_TRIES):
        leader = await _leader(client, brokers, topic, partition)
        try:
            while (batches := await _fetch(client, leader, topic, partition, offset)) is not None:
                if not batches:
                    return values
                for position, header in scan(batches):
                    end = position + LENGTH_ENDS + header.length
                    records = parse(batches[position:end])
                    values.extend(each.value or b"" for each in records if each.offset >= offset)
                    offset = header.base_offset + header.last_offset_delta + 1
        except (ConnectionError, TimeoutError):
            pass
        await client.clock.sleep(1.0)
    return None


async def _leader(client: SimClient, brokers: Iterable[int], topic: str, partition: int) -> int:
    for broker in brokers:
        try:
            answer = await client.ask(MetadataRequest(topics=None), broker)
        except (ConnectionError, TimeoutError):
            continue
        for each in answer.topics:
            if each.name == topic:
                return {p.partition_index: int(p.leader_id) for p in each.partitions}[partition]
    return -1


async def _fetch(client: SimClient, leader: int, topic: str, partition: int, offset: int) -> bytes | None:
    if leader < 0:
        return None
    answer = await fetch(client, leader, topic, {partition: offset})
    found = answer.responses[0].partitions[0]
    return None if found.error_code else bytes(found.records or b"")


async def fetch(
    client: SimClient, broker: int, topic: str, offsets: Mapping[int, int], timeout_s: float = 30.0
) -> Message:
    """Fetch as a consumer without a session: partitions of a topic from these offsets on."""
    request = encode_fetch_request(
        [((topic, partition), (offset, _MOST_BYTES, -1, -1, -1)) for partition, offset in offsets.items()],
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=_MOST_BYTES,
        session_id=0,
        session_epoch=-1,
    )
    return await client.send(FETCH, REQUEST_VERSION, request, broker, timeout_s)
