"""Topics that consumers are subscribed to, read from their join metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.groups.fields import FieldReader, InvalidGroupRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

CONSUMER_PROTOCOL_TYPE = "consumer"


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
