"""Stores what coordinators know in the partitions of `__consumer_offsets` or `__transaction_state`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from restow.cluster.groups.journal import JournalRecord
from restow.model import TopicPartition
from restow.wire.batches import LENGTH_ENDS, TRANSACTIONAL_BIT, CorruptBatch, scan
from restow.wire.compression import UnsupportedCompression
from restow.wire.end_markers import end_marker_of
from restow.wire.error_codes import ErrorCode
from restow.wire.records import Record, build, each_record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from restow.cluster.groups.journal import KeyAndValue, TransactionalProducer
    from restow.cluster.replication import ReplicaManager
    from restow.runtime.clock import Clock
    from restow.wire.batches import BatchHeader

log = logging.getLogger(__name__)

_ALL_IN_SYNC = -1
_CHUNK_BYTES = 1024 * 1024
_RECORDS_PER_TURN = 1_000


class ReplicatedJournal:
    """Appends like a producer with acks=all, and reads the replica's own log."""

    def __init__(
        self, topic: str, replicas: ReplicaManager, clock: Clock, *, timeout_ms: int = 5_000
    ) -> None:
        """`timeout_ms` is how long a write may take, such as Kafka's offsets.commit.timeout.ms."""
        self.topic = topic
        self._replicas = replicas
        self._clock = clock
        self._timeout_ms = timeout_ms

    async def append(
        self, partition: int, records: Sequence[KeyAndValue], producer: TransactionalProducer | None = None
    ) -> ErrorCode:
        """Append the records, wait for all in-sync replicas, and return the error code."""
        now_ms = self._clock.now_ms()
        stamped = [Record(number, now_ms, key, value) for number, (key, value) in enumerate(records)]
        target = TopicPartition(self.topic, partition)
        verifications = {}
        if producer is None:
            batch = build(stamped)
        else:
            batch = build(
                stamped,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                base_sequence=0,
                attributes=TRANSACTIONAL_BIT,
            )
            if producer.verification is not None:
                verifications[target] = producer.verification
        results = await self._replicas.append(
            {target: batch},
            acks=_ALL_IN_SYNC,
            timeout_ms=self._timeout_ms,
            from_client=False,
            verifications=verifications,
        )
        return ErrorCode.of(results[target].error_code)

    async def read_all(self, partition: int) -> AsyncIterator[JournalRecord]:
        """Yield every record and every end of a transaction, and let other tasks run after each megabyte."""
        replica = self._replicas.partition(TopicPartition(self.topic, partition))
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
                for number, record in enumerate(self._opened(partition, header, batch), start=1):
                    if record.offset >= offset:
                        yield record
                    if number % _RECORDS_PER_TURN == 0:
                        await self._clock.sleep(0)
                offset = header.next_offset
            await self._clock.sleep(0)

    def _opened(self, partition: int, header: BatchHeader, batch: bytes) -> Iterator[JournalRecord]:
        """Yield a batch's records, or none if it is unreadable: admin clients may have written it."""
        try:
            if header.is_control:
                if (marker := end_marker_of(batch)) is not None:
                    yield JournalRecord(header.base_offset, None, None, header.producer_id, marker.commits)
                return
            producer_id = header.producer_id if header.is_transactional else None
            for record in each_record(batch):
                yield JournalRecord(record.offset, record.key, record.value, producer_id)
        except (CorruptBatch, UnsupportedCompression) as error:
            log.warning("skipped batch %d of %s-%d: %s", header.base_offset, self.topic, partition, error)
