"""How a follower applies its leader's responses, so that its log becomes equal to the leader's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.log.future_copy import append_copied
from restow.cluster.replication.values import FetchPartition, PartitionRefused
from restow.wire.batches import whole_bytes
from restow.wire.error_codes import ErrorCode
from restow.wire.fetch import DivergingEpoch

if TYPE_CHECKING:
    from restow.cluster.log import LeaderEpochs, PartitionLog
    from restow.cluster.replication.partition import HostedPartition
    from restow.wire.fetch import Fetched


def next_fetch(partition: HostedPartition, max_bytes: int) -> FetchPartition:
    """Return the next fetch, from the end of our log, with the epoch we follow."""
    log = partition.log
    return FetchPartition(
        offset=log.end_offset,
        max_bytes=max_bytes,
        leader_epoch=partition.leader_epoch,
        last_fetched_epoch=log.epochs.latest,
        log_start_offset=log.start_offset,
    )


def divergence(leader_log: PartitionLog, wanted: FetchPartition) -> DivergingEpoch | None:
    """Return where the follower's log diverges from the leader's, if it does (KIP-595)."""
    found = leader_log.epochs.end_offset_for(wanted.last_fetched_epoch, leader_log.end_offset)
    if found.end_offset < 0:
        raise PartitionRefused(ErrorCode.OFFSET_OUT_OF_RANGE)
    if found.epoch < wanted.last_fetched_epoch or found.end_offset < wanted.offset:
        return DivergingEpoch(found.epoch, found.end_offset)
    return None


def truncation_offset(epochs: LeaderEpochs, end_offset: int, diverging: DivergingEpoch) -> int:
    """Return where our log may differ from the leader's (KIP-101, KIP-279).

    The leader named its largest epoch up to our last one, and that epoch's end. If we lack that epoch, we cut
    at the end of our next lower one, because the leader never had the records after it. The next fetch then
    settles the rest.
    """
    own = epochs.end_offset_for(diverging.epoch, end_offset)
    known = (own.end_offset,) if own.end_offset >= 0 else ()
    return max(0, min(end_offset, diverging.end_offset, *known))


def accept(partition: HostedPartition, fetched: Fetched) -> None:
    """Append the leader's records, and adopt its high watermark and log start as far as possible."""
    log = partition.log
    if fetched.records:
        append_copied(log, bytes(fetched.records[: whole_bytes(fetched.records)]))
    partition.follow_watermark(fetched.high_watermark)
    if log.start_offset < fetched.log_start_offset <= log.high_watermark:
        log.delete_records_before(fetched.log_start_offset)


def truncate(partition: HostedPartition, diverging: DivergingEpoch) -> bool:
    """Cut off records that the leader does not have. Return whether anything was cut."""
    log = partition.log
    end_offset = log.end_offset
    log.truncate_to(truncation_offset(log.epochs, end_offset, diverging))
    return log.end_offset < end_offset


def find_back(log: PartitionLog, fetched: Fetched) -> bool:
    """Reset after an out-of-range error: start where the leader starts, or go back to the high watermark.

    Return False if our end lies within the leader's range; the follower then simply retries.
    """
    if log.end_offset < fetched.log_start_offset:
        log.truncate_fully_and_start_at(fetched.log_start_offset)
        return True
    if 0 <= fetched.high_watermark < log.end_offset:
        log.truncate_to(fetched.high_watermark)
        return True
    return False
