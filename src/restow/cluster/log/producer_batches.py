"""A log's batches of idempotent and transactional producers: checked before an append, noted after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.log.transactions import AbortedTransaction
from restow.wire.batches import CONTROL_BIT, TRANSACTIONAL_BIT
from restow.wire.end_markers import end_marker_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.cluster.log.producers import AppendedBatch, ProducerStates, Verification
    from restow.cluster.log.segment import Segment
    from restow.runtime.disk import Part
    from restow.wire.batches import BatchHeader

_OF_TRANSACTIONS = CONTROL_BIT | TRANSACTIONAL_BIT


def check_producer(
    producers: ProducerStates,
    header: BatchHeader,
    batch: Part,
    verification: Verification | None,
    *,
    from_client: bool,
) -> AppendedBatch | None:
    """Return the batch that this one duplicates, if it does. Raises InvalidAppend."""
    if from_client and not header.attributes & _OF_TRANSACTIONS and not producers.transactions.is_open:
        return producers.repetition_of(header)  # most batches are like this
    if header.is_control:
        if (marker := end_marker_of(batch)) is not None:
            producers.check_marker(header, marker)
        return None
    if from_client:
        if (known := producers.repetition_of(header)) is not None:
            return known
    else:
        producers.check_epoch(header)
    producers.check_transaction(header, verification)
    return None


def note_producers(
    producers: ProducerStates,
    segment: Segment,
    headers: Sequence[BatchHeader],
    found: Sequence[tuple[int, BatchHeader]],
    source: Part,
) -> None:
    """Note appended batches. `found` has their positions in `source`."""
    for header, (position, _) in zip(headers, found, strict=True):
        if header.producer_id >= 0:
            if header.attributes & CONTROL_BIT:
                note_producer(producers, segment, header, source[position : position + header.size])
            else:
                producers.note(header)


def note_producer(producers: ProducerStates, segment: Segment, header: BatchHeader, batch: Part) -> None:
    """Note a producer's batch of a segment. `batch` are its bytes, needed of a control batch only."""
    marker = end_marker_of(batch) if header.is_control else None
    ended = producers.note(header, marker)
    if ended is not None:
        last_stable_offset = producers.transactions.end(ended)
        if ended.aborted:
            segment.aborted.add(AbortedTransaction(*ended[:3], last_stable_offset))
