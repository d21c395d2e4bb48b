"""A group's committed offsets, their expiry, and the topics that its members read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.groups.fields import FieldReader, InvalidGroupRecord
from restow.cluster.groups.states import GroupState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.cluster.groups.group import ClassicGroup
    from restow.cluster.groups.records import OffsetValue
    from restow.model import TopicPartition


CONSUMER_PROTOCOL_TYPE = "consumer"


def expired(
    offsets: Mapping[TopicPartition, OffsetValue], group: ClassicGroup, now_ms: int, retention_ms: int
) -> tuple[TopicPartition, ...]:
    """Return the partitions whose offsets have expired.

    An empty group's offsets expire counting from when it became empty. Without a group, or for a topic that a
    stable consumer group no longer subscribes to, the commit time counts. Other offsets stay. An offset's own
    retention takes precedence.
    """
    reads: frozenset[str] | None = frozenset()
    empty_since = None
    if group.protocol_type is not None:
        if group.state is GroupState.EMPTY:
            empty_since = group.state_since_ms
        elif group.state is GroupState.STABLE:
            reads = topics_read_by(group)
        else:
            reads = None
    if reads is None:
        return ()
    return tuple(
        partition
        for partition, value in offsets.items()
        if partition.topic not in reads and _is_due(value, empty_since, now_ms, retention_ms)
    )


def topics_read_by(group: ClassicGroup) -> frozenset[str] | None:
    """Return the subscribed topics of a consumer group's members; None if unknown."""
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    name = group.protocol_name or ""
    return subscribed_topics(member.metadata(name) for member in group.roster)


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics of all members; None if one cannot be read, as clients may use other formats."""
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            fields = FieldReader(subscription)
            if fields.int16() < 0:
                return None
            topics.update(fields.string() for _ in range(fields.count()))
    except InvalidGroupRecord:
        return None
    return frozenset(topics)


def due_since_commit(value: OffsetValue, now_ms: int, retention_ms: int) -> bool:
    """Return whether an offset's retention, counted from its commit, is over."""
    return _is_due(value, None, now_ms, retention_ms)


def _is_due(value: OffsetValue, empty_since_ms: int | None, now_ms: int, retention_ms: int) -> bool:
    if value.expires_at_ms is not None:
        return now_ms >= value.expires_at_ms
    since_ms = value.committed_at_ms if empty_since_ms is None else empty_since_ms
    return now_ms - since_ms >= retention_ms
