"""Stores groups in the partitions of `__consumer_offsets` that this broker leads."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from restow.cluster.broker.metadata import GROUP_OFFSETS_TOPIC
from restow.model import TopicPartition
from restow.wire.batches import LENGTH_ENDS, CorruptBatch, scan
from restow.wire.compression import UnsupportedCompression
from restow.wire.error_codes import ErrorCode
from restow.wire.records import Record, build, each_record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from restow.cluster.replication import ReplicaManager
    from restow.runtime.clock import Clock
    from restow.wire.batches import BatchHeader

log = logging.getLogger(__name__)

_ALL_IN_SYNC = -1
_CHUNK_BYTES = 1024 * 1024
_RECORDS_PER_TURN = 1_000


class ReplicatedJournal:
    """Appends like a producer with acks=all, and reads the replica's own log."""

    def __init__(self, replicas: ReplicaManager, clock: Clock, *, timeout_ms: int = 5_000) -> None:
        """`timeout_ms` is Kafka's offsets.commit.timeout.ms."""
        self._replicas = replicas
        self._clock = clock
        self._timeout_ms = timeout_ms

    async def append(self, partition: int, records: Sequence[tuple[bytes | None, bytes | None]]) -> ErrorCode:
        """Append the records, wait for all in-sync replicas, and return the error code."""
        now_ms = self._clock.now_ms()
        batch = build([Record(number, now_ms, key, value) for number, (key, value) in enumerate(records)])
        target = TopicPartition(GROUP_OFFSETS_TOPIC, partition)
        results = await self._replicas.append({target: batch}, acks=_ALL_IN_SYNC, timeout_ms=self._timeout_ms)
        return ErrorCode.of(results[target].error_code)

    async def read_all(self, partition: int) -> AsyncIterator[tuple[int, bytes | None, bytes | None]]:
        """Yield offset, key and value of every record, and let other tasks run after each megabyte."""
        replica = self._replicas.partition(TopicPartition(GROUP_OFFSETS_TOPIC, partition))
        if replica is None:
            return
        log = replica.log
        offset = log.start_offset
        while offset < log.end_offset and not log.closed:
            chunk = log.read(offset, _CHUNK_BYTES)
            if not chunk:
                return
            for position, header in scan(chunk):
                batch = chunk[position : position + LENGTH_ENDS + header.length]
                for number, record in enumerate(_opened(partition, header, batch), start=1):
                    if record.offset >= offset:
                        yield record.offset, record.key, record.value
                    if number % _RECORDS_PER_TURN == 0:
                        await self._clock.sleep(0)
                offset = header.next_offset
            await self._clock.sleep(0)


def _opened(partition: int, header: BatchHeader, batch: bytes) -> Iterator[Record]:
    """Yield a batch's records, or none if it is unreadable: admin clients may have written it."""
    try:
        yield from each_record(batch)
    except (CorruptBatch, UnsupportedCompression) as error:
        log.warning("skipped batch %d of __consumer_offsets-%d: %s", header.base_offset, partition, error)
