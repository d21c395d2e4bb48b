"""Read partitions from their beginnings to their ends."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from restow.wire.batches import scan
from restow.wire.codec import FETCH
from restow.wire.fetch import REQUEST_VERSION, encode_fetch_request
from restow.wire.messages import MetadataRequest
from restow.wire.records import Record, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.sim.client import SimClient
    from restow.wire.messages import Message

_MOST_BYTES = 1024 * 1024
_TRIES = 20
_DONE = -1
"""Instead of an offset: all records up to the high watermark are read."""


async def read_all(
    client: SimClient, brokers: Iterable[int], topic: str, partitions: Iterable[int]
) -> dict[int, list[bytes]]:
    """Return the values of all records of these partitions, without those that cannot be read."""
    brokers = tuple(brokers)
    offsets = dict.fromkeys(partitions, 0)
    values: dict[int, list[bytes]] = {each: [] for each in offsets}
    for _ in range(_TRIES):
        leaders = await leaders_of(client, brokers, topic)
        for leader in sorted(set(leaders.values()) - {-1}):
            led = {each: at for each, at in offsets.items() if leaders.get(each) == leader}
            with suppress(ConnectionError, TimeoutError):
                await _read_from(client, leader, topic, led, values)
            offsets = {each: at for each, at in (offsets | led).items() if at != _DONE}
        if not offsets:
            break
        await client.clock.sleep(1.0)
    return {each: found for each, found in values.items() if each not in offsets}


async def _read_from(
    client: SimClient, leader: int, topic: str, offsets: dict[int, int], values: dict[int, list[bytes]]
) -> None:
    """Read partitions until all are done or refused, or nothing more comes, and move their offsets on."""
    left, has_come = dict(offsets), True
    while left and has_come:
        answer = await fetch(client, leader, topic, left)
        has_come = False
        for found in answer.responses[0].partitions if answer.responses else ():
            partition, offset = found.partition_index, left[found.partition_index]
            batches = bytes(found.records or b"")
            for position, header in scan(batches):
                records = records_in(batches[position : position + header.size])
                values[partition].extend(each.value or b"" for each in records if each.offset >= offset)
                offset = header.next_offset
                has_come = True
            left[partition] = offsets[partition] = offset
            if found.error_code:
                del left[partition]
            elif offset >= found.high_watermark:
                offsets[partition] = _DONE
                del left[partition]


@lru_cache(maxsize=16_384)
def records_in(batch: bytes) -> tuple[Record, ...]:
    """Return the records of a batch. Each is read several times, by groups and at the end of a run."""
    return parse(batch)


async def leaders_of(
    client: SimClient, brokers: Iterable[int], topic: str, timeout_s: float = 30.0
) -> dict[int, int]:
    """Return the leaders of a topic's partitions, as the first broker that answers knows them."""
    for broker in brokers:
        try:
            answer = await client.ask(MetadataRequest(topics=None), broker, timeout_s=timeout_s)
        except (ConnectionError, TimeoutError):
            continue
        for each in answer.topics:
            if each.name == topic:
                return {p.partition_index: int(p.leader_id) for p in each.partitions}
    return {}


async def fetch(
    client: SimClient,
    broker: int,
    topic: str,
    offsets: Mapping[int, int],
    timeout_s: float = 30.0,
    epochs: Mapping[int, int] | None = None,
) -> Message:
    """Fetch as a consumer without a session: partitions of a topic from these offsets on.

    A broker that is not in the leader epoch that the consumer knows refuses it. Without the epochs, a former
    leader that has lost records to a power failure, and follows now, would say that there are none.
    """
    known = epochs or {}
    request = encode_fetch_request(
        [
            ((topic, partition), (offset, _MOST_BYTES, known.get(partition, -1), -1, -1))
            for partition, offset in offsets.items()
        ],
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=_MOST_BYTES,
        session_id=0,
        session_epoch=-1,
    )
    return await client.send(FETCH, REQUEST_VERSION, request, broker, timeout_s)
