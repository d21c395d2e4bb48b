"""Which topics consumers are subscribed to, read from the metadata they joined with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.groups.fields import FieldReader, InvalidGroupRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all of them; None if one of them cannot be read, as other clients may invent formats."""
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
