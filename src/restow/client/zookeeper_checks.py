"""Refuse what a controller would silently ignore in a node that we wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.client.errors import BrokerError
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.client.znodes import TopicAssignment
    from restow.model import BrokerId, TopicPartition


def refusal(
    partition: TopicPartition,
    replicas: Sequence[BrokerId] | None,
    present: TopicAssignment | None,
    alive: frozenset[BrokerId],
    allow_replication_factor_change: bool,
) -> BrokerError | None:
    """Return the error that Kafka 2.4 would answer for these replicas; None if they are valid."""
    before = () if present is None else present.replicas.get(partition.partition, ())
    if not before:
        return BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if replicas is None:
        return BrokerError(
            ErrorCode.UNSUPPORTED_VERSION,
            "a reassignment that was begun through ZooKeeper cannot be cancelled; when it is over, move the "
            "partition back",
        )
    if not replicas or len(set(replicas)) < len(replicas):
        return BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "there must be replicas, each of them once")
    unknown = sorted(set(replicas) - alive - set(before))
    if unknown:
        return BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"broker {unknown[0]} is not there")
    if not allow_replication_factor_change and len(replicas) != len(before):
        return BrokerError(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"it has {len(before)} replicas, not {len(replicas)}"
        )
    return None
