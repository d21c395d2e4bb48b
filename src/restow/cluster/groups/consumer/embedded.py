"""What Kafka's consumers say inside the classic protocol: subscriptions and assignments.

The classic protocol carries them as bytes that only clients read. A group with members of both protocols has
to read what its classic members say, and to write what they read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.groups.fields import FieldReader, string
from restow.model import TopicPartition, by_topic
from restow.wire.primitives import INT16, INT32

if TYPE_CHECKING:
    from collections.abc import Iterable

PROTOCOL_TYPE = "consumer"
_FIRST_WITH_OWNED = 1
_FIRST_WITH_GENERATION = 2
_FIRST_WITH_RACK = 3
_LAST = 3
_NULL = INT32.pack(-1)


class Subscription(NamedTuple):
    """What a consumer says when it joins."""

    version: int
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    """Partitions that it still holds. Consumers that give up everything first say nothing."""
    rack: str | None = None


def decode_subscription(data: bytes) -> Subscription:
    """Decode a subscription of any version; raise InvalidGroupRecord if that cannot be done."""
    fields = FieldReader(data)
    version = min(fields.int16(), _LAST)
    topics = tuple(fields.string() for _ in range(fields.count()))
    fields.nullable_bytes()
    owned = _decode_partitions(fields) if version >= _FIRST_WITH_OWNED else ()
    if version >= _FIRST_WITH_GENERATION:
        fields.int32()
    rack = fields.nullable_string() if version >= _FIRST_WITH_RACK else None
    return Subscription(version, topics, owned, rack)


def decode_assignment(data: bytes) -> tuple[tuple[TopicPartition, ...], bytes]:
    """Return the partitions of an assignment, and what its assignor has added for itself."""
    if not data:
        return (), b""
    fields = FieldReader(data)
    fields.int16()
    return _decode_partitions(fields), fields.nullable_bytes() or b""


def encode_assignment(partitions: Iterable[TopicPartition], version: int) -> bytes:
    """Encode an assignment in the version of the member's subscription."""
    topics = by_topic(sorted(partitions))
    parts = [INT16.pack(max(0, min(version, _LAST))), INT32.pack(len(topics))]
    for topic, numbers in topics.items():
        parts += (string(topic), INT32.pack(len(numbers)), *(INT32.pack(each) for each in numbers))
    return b"".join((*parts, _NULL))


def _decode_partitions(fields: FieldReader) -> tuple[TopicPartition, ...]:
    found: list[TopicPartition] = []
    for _ in range(fields.count()):
        topic = fields.string()
        found += [TopicPartition(topic, fields.int32()) for _ in range(fields.count())]
    return tuple(found)
