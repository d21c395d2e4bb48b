"""Primitive types of Kafka's encoding, for the hand-written encoders.

Every version of a message is either plain, with int16 and int32 lengths, or flexible: then lengths are
varints of the length plus one, 0 is null, and every structure ends in a count of tagged fields.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Buffer: TypeAlias = bytes | bytearray | memoryview

INT8 = struct.Struct(">b")
INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
INT64 = struct.Struct(">q")
NO_TAGS = b"\x00"
_NULL_INT16 = INT16.pack(-1)


class Endpoint(NamedTuple):
    """A broker's address."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class LeaderAndEpoch(NamedTuple):
    """A partition's leader and its epoch."""

    leader_id: int
    leader_epoch: int


def varint(number: int) -> bytes:
    """Encode an unsigned varint."""
    if number < 0x80:
        return bytes((number,))
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    groups = bytearray()
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


@lru_cache(maxsize=8192)
def string(text: str | None, *, flexible: bool) -> bytes:
    """Encode a string or null. Names of topics and hosts repeat, so the latest are cached."""
    if text is None:
        return b"\x00" if flexible else _NULL_INT16
    data = text.encode()
    return (varint(len(data) + 1) if flexible else INT16.pack(len(data))) + data


def count(number: int, *, flexible: bool) -> bytes:
    """Encode the number of elements of an array."""
    return varint(number + 1) if flexible else INT32.pack(number)


def int32s(numbers: Sequence[int], *, flexible: bool) -> bytes:
    """Encode an array of int32."""
    if flexible:
        return varint(len(numbers) + 1) + struct.pack(f">{len(numbers)}i", *numbers)
    return struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)


def tags(fields: Mapping[int, bytes]) -> bytes:
    """Encode tagged fields in the order of their numbers."""
    if not fields:
        return NO_TAGS
    written = [varint(len(fields))]
    for tag in sorted(fields):
        written += (varint(tag), varint(len(fields[tag])), fields[tag])
    return b"".join(written)


def leader_tag(leader: LeaderAndEpoch) -> bytes:
    """Encode the current leader."""
    return struct.pack(">ii", *leader) + NO_TAGS


def endpoints_tags(endpoints: Iterable[Endpoint]) -> bytes:
    """Encode the tagged fields at the end of Produce and Fetch responses: the leaders' addresses."""
    written = [
        INT32.pack(node_id)
        + string(host, flexible=True)
        + INT32.pack(port)
        + string(rack, flexible=True)
        + NO_TAGS
        for node_id, host, port, rack in endpoints
    ]
    return tags({0: count(len(written), flexible=True) + b"".join(written)} if written else {})
