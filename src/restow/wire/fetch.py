"""Hand-written encoders of Fetch: requests, and responses, which carry the data without copying it.

    throttle time, error 7+, session 7+
    responses: [topic, [partition, error, high watermark, last stable offset, log start 5+,
                        aborted transactions, preferred replica 11+, records]]

Up to version 12 a topic is given by name, from 13 on by id. From 12 on lengths are compact, and a partition
may have its diverging epoch and its leader; from 16 on the response has those leaders' endpoints.
Readers of committed records get the aborted transactions, others null.

Requests are read by the generic reader, which takes 0.3 µs per partition.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from restow.wire.primitives import (
    INT32,
    NO_TAGS,
    Buffer,
    Endpoint,
    LeaderAndEpoch,
    count,
    endpoints_tags,
    int32s,
    leader_tag,
    string,
    tags,
    varint,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

VERSIONS = range(4, 18)
_FIRST_WITH_SESSION = 7
_FIRST_WITH_REPLICA = 11
_FIRST_FLEXIBLE = 12
_FIRST_WITH_IDS = 13
_FIRST_WITH_ENDPOINTS = 16
_COPY_BELOW_BYTES = 2048
_VERSION_4 = struct.Struct(">ihqq")
_FROM_5 = struct.Struct(">ihqqq")
_FLEXIBLE = struct.Struct(">ihqqqBi")
_NO_ABORTED = INT32.pack(-1)
_ABORTED = struct.Struct(">qq")
_NULL = b"\x00"


REQUEST_VERSION = 12
"""The version of encoded requests: the last that names topics, and the first that reports diverging logs."""
_REQUEST = struct.Struct(">iiiibii")
_REQUEST_PARTITION = struct.Struct(">iiqiqix")  # the last byte: no tagged fields
_READ_UNCOMMITTED = 0
_NO_RACK_NO_TAGS = b"\x01\x00"


class DivergingEpoch(NamedTuple):
    """The largest epoch up to the requested one, and the offset after its last record."""

    epoch: int
    end_offset: int


class Fetched(NamedTuple):
    """The response for one partition."""

    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: Buffer | None = b""
    diverging_epoch: DivergingEpoch | None = None
    current_leader: LeaderAndEpoch | None = None
    aborted: Sequence[tuple[int, int]] | None = None
    """Producer ids and first offsets of aborted transactions, for readers of committed records."""
    preferred_replica: int = -1
    """The broker that a consumer shall read from instead."""


def encode_fetch_request(
    partitions: Iterable[tuple[tuple[str, int], tuple[int, int, int, int, int]]],
    *,
    replica_id: int,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    session_id: int,
    session_epoch: int,
    forgotten: Iterable[tuple[str, int]] = (),
) -> tuple[bytes]:
    """Return the body of a request of REQUEST_VERSION.

    Each partition has its offset, size limit, leader epoch, last fetched epoch and log start offset.
    """
    topics: dict[str, list[bytes]] = {}
    for (topic, number), (offset, most, leader_epoch, last_epoch, start) in partitions:
        written = _REQUEST_PARTITION.pack(number, leader_epoch, offset, last_epoch, start, most)
        topics.setdefault(topic, []).append(written)
    left: dict[str, list[int]] = {}
    for topic, number in forgotten:
        left.setdefault(topic, []).append(number)
    parts = [
        _REQUEST.pack(
            replica_id, max_wait_ms, min_bytes, max_bytes, _READ_UNCOMMITTED, session_id, session_epoch
        ),
        varint(len(topics) + 1),
    ]
    for topic, wanted in topics.items():
        parts += (string(topic, flexible=True), varint(len(wanted) + 1), *wanted, NO_TAGS)
    parts.append(varint(len(left) + 1))
    for topic, numbers in left.items():
        parts += (string(topic, flexible=True), int32s(numbers, flexible=True), NO_TAGS)
    parts.append(_NO_RACK_NO_TAGS)
    return (b"".join(parts),)


def encode_fetch_response(
    version: int,
    topics: Sequence[tuple[str | UUID, Sequence[Fetched]]],
    *,
    throttle_time_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    endpoints: Iterable[Endpoint] = (),
) -> tuple[Buffer, ...]:
    """Return the body in parts, for `encode_response`: larger records are separate parts, uncopied.

    Raises ValueError for a version that is not in VERSIONS.
    """
    if version not in VERSIONS:
        raise ValueError(f"a Fetch response of version {version} cannot be written; {VERSIONS} can")
    flexible = version >= _FIRST_FLEXIBLE
    start = INT32.pack(throttle_time_ms)
    if version >= _FIRST_WITH_SESSION:
        start = struct.pack(">ihi", throttle_time_ms, error_code, session_id)
    parts: list[Buffer] = []
    small: list[Buffer] = [start, count(len(topics), flexible=flexible)]
    write = _write_flexible if flexible else _write_plain
    for topic, partitions in topics:
        small.append(_topic(version, topic))
        small.append(count(len(partitions), flexible=flexible))
        for partition in partitions:
            ending = write(version, partition, small)
            records = partition.records
            if records and len(records) >= _COPY_BELOW_BYTES:
                parts += (b"".join(small), records)
                small = [ending]
            else:
                small += (records or b"", ending)
        if flexible:
            small.append(NO_TAGS)
    if flexible:
        small.append(endpoints_tags(endpoints) if version >= _FIRST_WITH_ENDPOINTS else NO_TAGS)
    return (*parts, b"".join(small))


def _topic(version: int, topic: str | UUID) -> bytes:
    if isinstance(topic, str):
        if version >= _FIRST_WITH_IDS:
            raise ValueError(f"Fetch of version {version} goes by topic id, not by the name {topic!r}")
        return string(topic, flexible=version >= _FIRST_FLEXIBLE)
    if version < _FIRST_WITH_IDS:
        raise ValueError(f"Fetch of version {version} goes by topic name, not by the id {topic}")
    return topic.bytes


def _write_plain(version: int, it: Fetched, small: list[Buffer]) -> bytes:
    """Write a partition up to its records. Return what follows them."""
    small.append(_VERSION_4.pack(*it[:4]) if version == 4 else _FROM_5.pack(*it[:5]))
    aborted = _NO_ABORTED if it.aborted is None else _aborted(it.aborted, flexible=False)
    replica = INT32.pack(it.preferred_replica) if version >= _FIRST_WITH_REPLICA else b""
    small.append(aborted + replica)
    small.append(INT32.pack(-1 if it.records is None else len(it.records)))
    return b""


def _write_flexible(_: int, it: Fetched, small: list[Buffer]) -> bytes:
    """Write a partition up to its records. Return the tagged fields that follow them."""
    partition, error, high_watermark, last_stable, start, records, diverging, leader, aborted, replica = it
    size = _NULL if records is None else varint(len(records) + 1)
    if aborted is None:
        small.append(_FLEXIBLE.pack(partition, error, high_watermark, last_stable, start, 0, replica) + size)
    else:
        small.append(_FROM_5.pack(partition, error, high_watermark, last_stable, start))
        small.append(_aborted(aborted, flexible=True) + INT32.pack(replica) + size)
    if diverging is None and leader is None:
        return NO_TAGS
    tagged = {}
    if diverging is not None:
        tagged[0] = struct.pack(">iq", *diverging) + NO_TAGS
    if leader is not None:
        tagged[1] = leader_tag(leader)
    return tags(tagged)


def _aborted(transactions: Sequence[tuple[int, int]], *, flexible: bool) -> bytes:
    end = NO_TAGS if flexible else b""
    parts = [_ABORTED.pack(*each) + end for each in transactions]
    return count(len(parts), flexible=flexible) + b"".join(parts)
