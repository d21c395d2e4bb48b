"""The committed offsets of one group: kept here, written to the journal."""

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

    from restow.cluster.groups.journal import JournalWriter, KeyAndValue
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
            written = self._writer.write(records, partial(self._committed, values))
            outcome = offset_error(await asyncio.shield(written))
            results |= dict.fromkeys(values, outcome)
        return {partition: results[partition] for partition in request.offsets}

    def _committed(self, values: dict[TopicPartition, OffsetValue], error: ErrorCode) -> None:
        self.commits_under_way -= 1
        if error is ErrorCode.NONE:
            self.by_partition |= values

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
