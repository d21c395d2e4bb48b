"""The committed offsets of one group: kept here, written to the journal.

Offsets that are committed in a transaction count when it is committed, unless a later commit of the same
partition was written meanwhile.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from restow.cluster.groups.fields import InvalidGroupRecord
from restow.cluster.groups.journal import offset_error
from restow.cluster.groups.records import OffsetKey, OffsetValue, encode_offset_key, encode_offset_value
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from restow.cluster.groups.journal import JournalWriter, KeyAndValue, TransactionalProducer
    from restow.cluster.groups.requests import CommitRequest
    from restow.model import TopicPartition

_TOMBSTONES_AT_ONCE = 1_000
_LAST_MS = 2**63 - 1
"""The latest timestamp that an offset record can hold."""


class StoredOffsets:
    """Offsets by partition. They are visible once written, even if the member has left meanwhile."""

    def __init__(self, group_id: str, writer: JournalWriter) -> None:
        self.by_partition: dict[TopicPartition, OffsetValue] = {}
        self.commits_under_way = 0
        self._in_transactions: dict[int, dict[TopicPartition, tuple[int, OffsetValue]]] = {}
        """By producer id: offsets of open transactions, each with the number of its write."""
        self._writes = 0
        self._last_writes: dict[TopicPartition, int] = {}
        """Numbers of the last commits outside of transactions, as long as one is open."""
        self._group_id = group_id
        self._writer = writer

    async def commit(
        self, request: CommitRequest, now_ms: int, metadata_limit: int
    ) -> dict[TopicPartition, ErrorCode]:
        """Write the offsets of a commit that the group allows."""
        retention_ms = request.retention_ms
        expires_at_ms = None if retention_ms is None else min(now_ms + retention_ms, _LAST_MS)
        results: dict[TopicPartition, ErrorCode] = {}
        values: dict[TopicPartition, OffsetValue] = {}
        records: list[KeyAndValue] = []
        for partition, (offset, leader_epoch, metadata) in request.offsets.items():
            if len(metadata) > metadata_limit:
                results[partition] = ErrorCode.OFFSET_METADATA_TOO_LARGE
                continue
            value = OffsetValue(offset, leader_epoch, metadata, now_ms, expires_at_ms)
            try:
                records.append((encode_offset_key(self._key(partition)), encode_offset_value(value)))
            except InvalidGroupRecord:
                results[partition] = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
                continue
            values[partition] = value
        if values:
            self.commits_under_way += 1
            written = self._writer.write(
                records, partial(self._committed, values, request.producer), request.producer
            )
            outcome = offset_error(await asyncio.shield(written))
            results |= dict.fromkeys(values, outcome)
        return {partition: results[partition] for partition in request.offsets}

    def _committed(
        self,
        values: dict[TopicPartition, OffsetValue],
        producer: TransactionalProducer | None,
        error: ErrorCode,
    ) -> None:
        self.commits_under_way -= 1
        if error is ErrorCode.NONE:
            for partition, value in values.items():
                self.note(partition, value, None if producer is None else producer.producer_id)

    # Transactions

    def note(self, partition: TopicPartition, value: OffsetValue, producer_id: int | None = None) -> None:
        """Note an offset that was written, in the order of the writes."""
        self._writes += 1
        if producer_id is not None:
            self._in_transactions.setdefault(producer_id, {})[partition] = self._writes, value
            return
        self.by_partition[partition] = value
        if self._in_transactions:
            self._last_writes[partition] = self._writes

    def end_transaction(self, producer_id: int, *, commits: bool) -> None:
        """Let the offsets of a transaction count, or drop them."""
        ended = self._in_transactions.pop(producer_id, {})
        for partition, (number, value) in ended.items() if commits else ():
            if self._last_writes.get(partition, 0) < number:
                self.by_partition[partition] = value
                self._last_writes[partition] = number
        if not self._in_transactions:
            self._last_writes.clear()

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open that commits offsets here."""
        return bool(self._in_transactions)

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Return whether an open transaction may change the partition's offset."""
        return any(partition in each for each in self._in_transactions.values())

    async def forget(
        self, partitions: Iterable[TopicPartition], tombstones: Sequence[KeyAndValue] = ()
    ) -> ErrorCode:
        """Drop offsets at once, write their tombstones, and then these of the group itself."""
        records: list[KeyAndValue] = [
            (encode_offset_key(self._key(partition)), None)
            for partition in partitions
            if self.by_partition.pop(partition, None) is not None
        ]
        records += tombstones
        writes = [
            self._writer.write(records[start : start + _TOMBSTONES_AT_ONCE], _nobody_waits)
            for start in range(0, len(records), _TOMBSTONES_AT_ONCE)
        ]
        errors = [offset_error(await asyncio.shield(write)) for write in writes]
        return next((error for error in errors if error is not ErrorCode.NONE), ErrorCode.NONE)

    def _key(self, partition: TopicPartition) -> OffsetKey:
        return OffsetKey(self._group_id, partition.topic, partition.partition)


def _nobody_waits(error: ErrorCode) -> None:
    """Ignore the result. Tombstones that failed are written again at the next expiry."""
