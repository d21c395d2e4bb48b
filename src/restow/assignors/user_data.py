"""The user data that Kafka's sticky assignors put into a subscription.

    sticky v1:           array of (topic string, array of int32 partitions), int32 generation
    sticky v0:           the same without the generation
    cooperative-sticky:  int32 generation

All big-endian; a string is an int16 length and UTF-8, an array an int32 length and its elements. As in Kafka,
v1 is tried first, trailing bytes are ignored, and data that is neither counts as "had nothing".
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from restow.model import TopicPartition, by_topic

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_GENERATION = -1

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


class Claim(NamedTuple):
    """A member's previous partitions, and their generation (None if missing)."""

    owned: Sequence[TopicPartition]
    generation: int | None


NOTHING = Claim((), NO_GENERATION)


def encode_claim(owned: Sequence[TopicPartition], generation: int | None) -> bytes:
    """Encode v1, or v0 without a generation. Topics are in the order of their first partition."""
    topics = by_topic(owned)
    parts = [_INT32.pack(len(topics))]
    for topic, partitions in topics.items():
        name = topic.encode()
        parts.append(_INT16.pack(len(name)) + name)
        parts.append(struct.pack(f">i{len(partitions)}i", len(partitions), *partitions))
    if generation is not None:
        parts.append(_INT32.pack(generation))
    return b"".join(parts)


def decode_claim(data: bytes) -> Claim:
    """Decode v1, else v0, else nothing, exactly where Kafka does each."""
    if not data:
        return Claim((), None)
    try:
        owned, end = _read_owned(data)
    except (struct.error, _CorruptError):
        return NOTHING
    if len(data) - end < _INT32.size:
        return Claim(owned, None)
    return Claim(owned, _INT32.unpack_from(data, end)[0])


def encode_generation(generation: int) -> bytes:
    """Encode the user data of cooperative-sticky."""
    return _INT32.pack(generation)


def decode_generation(data: bytes) -> int:
    """Return the generation, or −1 if there are fewer than four bytes."""
    if len(data) < _INT32.size:
        return NO_GENERATION
    generation: int = _INT32.unpack_from(data)[0]
    return generation


class _CorruptError(Exception):
    pass


def _read_owned(data: bytes) -> tuple[tuple[TopicPartition, ...], int]:
    owned: list[TopicPartition] = []
    (topics,) = _INT32.unpack_from(data)
    at = _INT32.size
    _check_length(topics, len(data) - at)
    for _ in range(topics):
        (length,) = _INT16.unpack_from(data, at)
        at += _INT16.size
        _check_length(length, len(data) - at)
        topic = data[at : at + length].decode(errors="replace")
        at += length
        (count,) = _INT32.unpack_from(data, at)
        at += _INT32.size
        _check_length(count, (len(data) - at) // _INT32.size)
        owned += [TopicPartition(topic, p) for p in struct.unpack_from(f">{count}i", data, at)]
        at += count * _INT32.size
    return tuple(owned), at


def _check_length(length: int, room: int) -> None:
    """Check a length before anything is allocated for it."""
    if not 0 <= length <= room:
        raise _CorruptError
