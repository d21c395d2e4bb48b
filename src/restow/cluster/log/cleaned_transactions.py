"""What compaction may drop of transactions: records of aborted ones, and markers of those without records.

Compaction reads a log from its start and only up to the last stable offset, so every transaction that it
meets has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.wire.batches import CorruptBatch
from restow.wire.compression import UnsupportedCompression
from restow.wire.end_markers import end_marker_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.cluster.log.transactions import AbortedTransaction
    from restow.wire.batches import BatchHeader


class TransactionsSoFar:
    """Follows the transactions of a log batch by batch. Call one of its methods for every batch in order."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._upcoming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborted: dict[int, int] = {}
        """By producer id: last offsets of the aborted transactions at this place."""
        self._with_records: set[int] = set()
        """Producers whose transaction at this place has batches."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Return whether the records of a data batch were aborted."""
        self._go_to(header.last_offset)
        if not header.is_transactional:
            return False
        self._with_records.add(header.producer_id)
        return header.last_offset <= self._aborted.get(header.producer_id, -1)

    def is_empty_end(self, header: BatchHeader, batch: bytes) -> bool:
        """Return whether a control batch ends a transaction of which no batch is left."""
        self._go_to(header.last_offset)
        try:
            marker = end_marker_of(batch)
        except (CorruptBatch, UnsupportedCompression):
            return False
        if marker is None:
            return False
        had_records = header.producer_id in self._with_records
        self._with_records.discard(header.producer_id)
        return not had_records

    def _go_to(self, offset: int) -> None:
        upcoming = self._upcoming
        while upcoming and upcoming[-1].first_offset <= offset:
            begun = upcoming.pop()
            self._aborted[begun.producer_id] = begun.last_offset
