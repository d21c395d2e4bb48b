"""Hand-written encoder of Produce responses, which are sent for every few batches.

    responses: [topic, [partition, error, base offset, append time 2+, log start 5+,
                        record errors 8+, error message 8+]]
    throttle time 1+

From version 9 on lengths are compact; from 10 on a partition may have its current leader, and the response
the endpoints of those leaders.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from restow.wire.primitives import (
    INT32,
    NO_TAGS,
    Endpoint,
    LeaderAndEpoch,
    count,
    endpoints_tags,
    leader_tag,
    string,
    tags,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

VERSIONS = range(12)
_FIRST_FLEXIBLE = 9
_FIRST_WITH_LEADERS = 10
_FIRST_WITH_ERRORS = 8
_UP_TO_1 = struct.Struct(">ihq")
_UP_TO_4 = struct.Struct(">ihqq")
_FROM_5 = struct.Struct(">ihqqq")


class Produced(NamedTuple):
    """The result for one partition."""

    partition: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    current_leader: LeaderAndEpoch | None = None
    record_errors: tuple[tuple[int, str], ...] = ()
    """Numbers of records in their batch, and what is wrong with each."""


def encode_produce_response(
    version: int,
    topics: Sequence[tuple[str, Sequence[Produced]]],
    *,
    throttle_time_ms: int = 0,
    endpoints: Iterable[Endpoint] = (),
) -> tuple[bytes, ...]:
    """Return the body, for `encode_response`. Raises ValueError for a version not in VERSIONS."""
    if version not in VERSIONS:
        raise ValueError(f"a Produce response of version {version} cannot be written; {VERSIONS} can")
    flexible = version >= _FIRST_FLEXIBLE
    parts = [count(len(topics), flexible=flexible)]
    for name, partitions in topics:
        parts += (string(name, flexible=flexible), count(len(partitions), flexible=flexible))
        parts += [_partition(version, partition) for partition in partitions]
        if flexible:
            parts.append(NO_TAGS)
    if version >= 1:
        parts.append(INT32.pack(throttle_time_ms))
    if flexible:
        parts.append(endpoints_tags(endpoints) if version >= _FIRST_WITH_LEADERS else NO_TAGS)
    return (b"".join(parts),)


def _partition(version: int, it: Produced) -> bytes:
    if version < _FIRST_WITH_ERRORS:
        if version >= 5:
            return _FROM_5.pack(*it[:5])
        return _UP_TO_4.pack(*it[:4]) if version >= 2 else _UP_TO_1.pack(*it[:3])
    flexible = version >= _FIRST_FLEXIBLE
    start = _FROM_5.pack(*it[:5])
    if flexible and it.error_message is None and it.current_leader is None and not it.record_errors:
        return start + b"\x01\x00\x00"
    tail = count(len(it.record_errors), flexible=flexible)
    for number, message in it.record_errors:
        tail += INT32.pack(number) + string(message, flexible=flexible) + (NO_TAGS if flexible else b"")
    tail += string(it.error_message, flexible=flexible)
    if flexible:
        tell = it.current_leader if version >= _FIRST_WITH_LEADERS else None
        tail += NO_TAGS if tell is None else tags({0: leader_tag(tell)})
    return start + tail
