"""Hand-written encoder of Metadata responses, which clients often request and which rarely change.

A `TopicMetadata` keeps the encoded partitions, so that a response is quickly assembled. The thirteen versions
of the response encode a partition in four ways:

    0–4    error, partition, leader, replicas, isr
    5–6    … and the offline replicas
    7–8    … and the leader's epoch behind the leader
    9–12   the same with compact lengths
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from restow.wire.primitives import INT32, NO_TAGS, Endpoint, count, int32s, string

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

VERSIONS = range(13)
NOT_ASKED_FOR = -(2**31)
"""Stands for authorized operations that were not requested."""
_NO_ID = bytes(16)


class _Layout(IntEnum):
    """The first version of each partition encoding."""

    PLAIN = 0
    OFFLINE = 5
    EPOCH = 7
    FLEXIBLE = 9

    @classmethod
    def of(cls, version: int) -> _Layout:
        return max(layout for layout in cls if layout <= version)


_LAYOUTS = tuple(_Layout.of(version) for version in VERSIONS)


class PartitionMetadata(NamedTuple):
    """A partition as clients see it."""

    partition: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    error_code: int = 0


class TopicMetadata:
    """A topic in Metadata responses, encoded on demand and cached until it changes."""

    __slots__ = ("_encoded", "_joined", "_partitions", "is_internal", "name", "topic_id")

    def __init__(
        self,
        name: str,
        *,
        topic_id: UUID | None = None,
        is_internal: bool = False,
        partitions: Iterable[PartitionMetadata] = (),
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self._partitions = {it.partition: it for it in partitions}
        self._encoded: dict[_Layout, dict[int, bytes]] = {}
        self._joined: dict[_Layout, bytes] = {}

    @property
    def partitions(self) -> tuple[PartitionMetadata, ...]:
        """All partitions, in order."""
        return tuple(self._partitions[partition] for partition in sorted(self._partitions))

    def put(self, it: PartitionMetadata) -> None:
        """Add or replace a partition. An unchanged one costs nothing later."""
        if self._partitions.get(it.partition) != it:
            self._partitions[it.partition] = it
            self._forget(it.partition)

    def remove(self, partition: int) -> None:
        """Remove a partition, if it exists."""
        if self._partitions.pop(partition, None) is not None:
            self._forget(partition)

    def encode(
        self, version: int, *, error_code: int = 0, authorized_operations: int = NOT_ASKED_FOR
    ) -> bytes:
        """Return the topic's part of a response of that version."""
        layout = _LAYOUTS[version]
        joined = self._joined.get(layout)
        if joined is None:
            joined = self._joined[layout] = self._join(layout)
        return _topic(
            version,
            error_code,
            self.name,
            self.topic_id,
            is_internal=self.is_internal,
            partitions=joined,
            authorized_operations=authorized_operations,
        )

    def _forget(self, partition: int) -> None:
        self._joined.clear()
        for encoded in self._encoded.values():
            encoded.pop(partition, None)

    def _join(self, layout: _Layout) -> bytes:
        """Join the partitions, encoding only changed ones."""
        encoded = self._encoded.setdefault(layout, {})
        for partition, it in self._partitions.items():
            if partition not in encoded:
                encoded[partition] = _partition(layout, it)
        listed = count(len(encoded), flexible=layout is _Layout.FLEXIBLE)
        return listed + b"".join([encoded[partition] for partition in sorted(encoded)])


def encode_unknown_topic(
    version: int, error_code: int, *, name: str | None = None, topic_id: UUID | None = None
) -> bytes:
    """Return the part of a response with a topic's error.

    From version 12 on the name may be missing, for a topic that was requested by id.
    """
    if name is None and version < 12:
        raise ValueError(f"Metadata of version {version} cannot leave the topic's name out")
    none = count(0, flexible=_LAYOUTS[version] is _Layout.FLEXIBLE)
    return _topic(version, error_code, name, topic_id, partitions=none)


def encode_metadata_response(
    version: int,
    *,
    brokers: Sequence[Endpoint],
    cluster_id: str | None,
    controller_id: int,
    topics: Sequence[bytes],
    throttle_time_ms: int = 0,
    authorized_operations: int = NOT_ASKED_FOR,
) -> tuple[bytes, ...]:
    """Return the body, for `encode_response`, from topics encoded for the same version.

    Raises ValueError for a version that is not in VERSIONS.
    """
    if version not in VERSIONS:
        raise ValueError(f"a Metadata response of version {version} cannot be written; {VERSIONS} can")
    flexible = version >= _Layout.FLEXIBLE
    parts = [INT32.pack(throttle_time_ms)] if version >= 3 else []
    parts.append(count(len(brokers), flexible=flexible))
    for node_id, host, port, rack in brokers:
        parts += (INT32.pack(node_id), string(host, flexible=flexible), INT32.pack(port))
        if version >= 1:
            parts.append(string(rack, flexible=flexible))
        if flexible:
            parts.append(NO_TAGS)
    if version >= 2:
        parts.append(string(cluster_id, flexible=flexible))
    if version >= 1:
        parts.append(INT32.pack(controller_id))
    parts.append(count(len(topics), flexible=flexible))
    parts += topics
    if 8 <= version <= 10:
        parts.append(INT32.pack(authorized_operations))
    if flexible:
        parts.append(NO_TAGS)
    return (b"".join(parts),)


def _topic(
    version: int,
    error_code: int,
    name: str | None,
    topic_id: UUID | None,
    *,
    partitions: bytes,
    is_internal: bool = False,
    authorized_operations: int = NOT_ASKED_FOR,
) -> bytes:
    flexible = version >= _Layout.FLEXIBLE
    parts = [struct.pack(">h", error_code), string(name, flexible=flexible)]
    if version >= 10:
        parts.append(_NO_ID if topic_id is None else topic_id.bytes)
    if version >= 1:
        parts.append(b"\x01" if is_internal else b"\x00")
    parts.append(partitions)
    if version >= 8:
        parts.append(INT32.pack(authorized_operations))
    if flexible:
        parts.append(NO_TAGS)
    return b"".join(parts)


def _partition(layout: _Layout, it: PartitionMetadata) -> bytes:
    flexible = layout is _Layout.FLEXIBLE
    if layout >= _Layout.EPOCH:
        start = struct.pack(">hiii", it.error_code, it.partition, it.leader_id, it.leader_epoch)
    else:
        start = struct.pack(">hii", it.error_code, it.partition, it.leader_id)
    nodes = int32s(it.replicas, flexible=flexible) + int32s(it.isr, flexible=flexible)
    if layout >= _Layout.OFFLINE:
        nodes += int32s(it.offline_replicas, flexible=flexible)
    return start + nodes + (NO_TAGS if flexible else b"")
