"""The records of groups of the protocol `consumer` in `__consumer_offsets`, byte for byte as in Kafka 4.3.

| key version | key | value |
|---|---|---|
| 3 | group | the group's epoch |
| 5 | group, member | what the member has said of itself |
| 6 | group | the epoch of the target assignment |
| 7 | group, member | the member's target |
| 8 | group, member | the member's epoch, state and partitions |
| 16 | group, regular expression | the topics it was resolved to |
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.groups.consumer.members import ClassicMembership, ConsumerGroupMember, MemberState
from restow.cluster.groups.fields import (
    FieldReader,
    InvalidGroupRecord,
    compact_array,
    compact_bytes,
    compact_string,
    string,
)
from restow.model import by_topic
from restow.wire.primitives import tags as tagged_fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.groups.consumer.members import PartitionEpochs, TopicIdPartition

_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_VALUE_VERSION = _INT16.pack(0)
_END = tagged_fields({})
_NOT_NULL = b"\x01"


class RecordKind(IntEnum):
    """The kind of a record: its key's version."""

    GROUP = 3
    MEMBER = 5
    TARGET_EPOCH = 6
    TARGET = 7
    CURRENT = 8
    PATTERN = 16


_KINDS = {int(kind): kind for kind in RecordKind}
_OF_MEMBERS = frozenset((RecordKind.MEMBER, RecordKind.TARGET, RecordKind.CURRENT, RecordKind.PATTERN))


class ConsumerGroupKey(NamedTuple):
    """The key of a record. `name` is the member, or the regular expression; empty for the group's own."""

    kind: RecordKind
    group: str
    name: str = ""

    def encode(self) -> bytes:
        parts = _INT16.pack(self.kind) + string(self.group)
        return parts + string(self.name) if self.kind in _OF_MEMBERS else parts


@dataclass(frozen=True, slots=True)
class ResolvedPattern:
    """A regular expression's topics, as of a version of the metadata and a time."""

    topics: frozenset[str]
    version: int
    resolved_at_ms: int


@dataclass(slots=True)
class StoredGroup:
    """The records of one group, collected while a partition is loaded."""

    epoch: int = 0
    metadata_hash: int = 0
    target_epoch: int = 0
    assigned_at_ms: int = 0
    members: dict[str, ConsumerGroupMember] = field(default_factory=dict)
    targets: dict[str, frozenset[TopicIdPartition]] = field(default_factory=dict)
    current: dict[str, tuple[int, int, MemberState, PartitionEpochs, PartitionEpochs]] = field(
        default_factory=dict
    )
    patterns: dict[str, ResolvedPattern] = field(default_factory=dict)


def read_consumer_key(fields: FieldReader, version: int) -> ConsumerGroupKey | None:
    """Return the key whose version was read; None for kinds of other protocols."""
    kind = _KINDS.get(version)
    if kind is None:
        return None
    return ConsumerGroupKey(kind, fields.string(), fields.string() if kind in _OF_MEMBERS else "")


def encode_epoch(epoch: int, metadata_hash: int) -> bytes:
    tags = {0: _INT64.pack(metadata_hash)} if metadata_hash else {}
    return _VALUE_VERSION + _INT32.pack(epoch) + tagged_fields(tags)


def encode_target_epoch(epoch: int, assigned_at_ms: int) -> bytes:
    tags = {0: _INT64.pack(assigned_at_ms)} if assigned_at_ms else {}
    return _VALUE_VERSION + _INT32.pack(epoch) + tagged_fields(tags)


def encode_member(member: ConsumerGroupMember) -> bytes:
    return b"".join(
        (
            _VALUE_VERSION,
            compact_string(member.instance_id),
            compact_string(member.rack),
            compact_string(member.client_id),
            compact_string(member.client_host),
            compact_array([compact_string(topic) for topic in member.topics]),
            compact_string(member.pattern),
            _INT32.pack(member.rebalance_timeout_ms),
            compact_string(member.server_assignor),
            tagged_fields({} if member.classic is None else {0: _encode_classic(member.classic)}),
        )
    )


def _encode_classic(classic: ClassicMembership) -> bytes:
    protocols = [compact_string(name) + compact_bytes(data) + _END for name, data in classic.protocols]
    return _NOT_NULL + _INT32.pack(classic.session_timeout_ms) + compact_array(protocols) + _END


def encode_target(target: Iterable[TopicIdPartition]) -> bytes:
    topics = [
        topic_id.bytes + compact_array([_INT32.pack(each) for each in numbers]) + _END
        for topic_id, numbers in by_topic(sorted(target)).items()
    ]
    return _VALUE_VERSION + compact_array(topics) + _END


def encode_current(member: ConsumerGroupMember) -> bytes:
    return b"".join(
        (
            _VALUE_VERSION,
            _INT32.pack(member.epoch),
            _INT32.pack(member.previous_epoch),
            _INT8.pack(member.state),
            _with_epochs(member.assigned),
            _with_epochs(member.revoking),
            _END,
        )
    )


def encode_pattern(resolved: ResolvedPattern) -> bytes:
    return b"".join(
        (
            _VALUE_VERSION,
            compact_array([compact_string(topic) for topic in sorted(resolved.topics)]),
            _INT64.pack(resolved.version),
            _INT64.pack(resolved.resolved_at_ms),
            _END,
        )
    )


def _with_epochs(partitions: PartitionEpochs) -> bytes:
    topics = []
    for topic_id, numbers in by_topic(sorted(partitions)).items():
        epochs = [_INT32.pack(partitions[topic_id, number]) for number in numbers]
        tags = tagged_fields({0: compact_array(epochs)})
        topics.append(topic_id.bytes + compact_array([_INT32.pack(each) for each in numbers]) + tags)
    return compact_array(topics)


def replay(stored: StoredGroup, key: ConsumerGroupKey, value: bytes) -> None:
    """Add one record to what is known of its group."""
    fields = FieldReader(value)
    if version := fields.int16():
        raise InvalidGroupRecord(f"a value behind key version {key.kind} has version {version}, not 0")
    fields.flexible = True
    match key.kind:
        case RecordKind.GROUP:
            stored.epoch = fields.int32()
            tags = fields.structure_end()
            stored.metadata_hash = _INT64.unpack(tags[0])[0] if 0 in tags else 0
        case RecordKind.MEMBER:
            stored.members[key.name] = _decode_member(key.name, fields)
        case RecordKind.TARGET_EPOCH:
            stored.target_epoch = fields.int32()
            tags = fields.structure_end()
            stored.assigned_at_ms = _INT64.unpack(tags[0])[0] if 0 in tags else 0
        case RecordKind.TARGET:
            stored.targets[key.name] = frozenset(_decode_partitions(fields))
            fields.structure_end()
        case RecordKind.CURRENT:
            epoch, previous = fields.int32(), fields.int32()
            state = _state(fields.int8())
            stored.current[key.name] = (
                epoch,
                previous,
                state,
                _decode_partitions(fields, epoch),
                _decode_partitions(fields, epoch),
            )
            fields.structure_end()
        case RecordKind.PATTERN:
            topics = frozenset(fields.string() for _ in range(fields.count()))
            stored.patterns[key.name] = ResolvedPattern(topics, fields.int64(), fields.int64())
            fields.structure_end()
    fields.end()


def remove(stored: StoredGroup, key: ConsumerGroupKey) -> None:
    """Apply a tombstone to what is known of its group."""
    match key.kind:
        case RecordKind.MEMBER:
            stored.members.pop(key.name, None)
        case RecordKind.TARGET_EPOCH:
            stored.target_epoch = stored.assigned_at_ms = 0
        case RecordKind.TARGET:
            stored.targets.pop(key.name, None)
        case RecordKind.CURRENT:
            stored.current.pop(key.name, None)
        case RecordKind.PATTERN:
            stored.patterns.pop(key.name, None)


def _decode_member(member_id: str, fields: FieldReader) -> ConsumerGroupMember:
    member = ConsumerGroupMember(
        id=member_id,
        instance_id=fields.nullable_string(),
        rack=fields.nullable_string(),
        client_id=fields.string(),
        client_host=fields.string(),
        topics=tuple(fields.string() for _ in range(fields.count())),
        pattern=fields.nullable_string(),
        rebalance_timeout_ms=fields.int32(),
        server_assignor=fields.nullable_string(),
    )
    tagged = fields.structure_end().get(0, b"")
    return replace(member, classic=_decode_classic(tagged)) if tagged[:1] == _NOT_NULL else member


def _decode_classic(data: bytes) -> ClassicMembership:
    fields = FieldReader(data[len(_NOT_NULL) :])
    fields.flexible = True
    session_timeout_ms = fields.int32()
    protocols = []
    for _ in range(fields.count()):
        protocols.append((fields.string(), fields.sized_bytes()))
        fields.structure_end()
    return ClassicMembership(session_timeout_ms, tuple(protocols))


def _decode_partitions(fields: FieldReader, epoch: int = 0) -> dict[TopicIdPartition, int]:
    """Return partitions with their epochs; older records have none, and the member's counts."""
    found: dict[TopicIdPartition, int] = {}
    for _ in range(fields.count()):
        topic_id = fields.uuid()
        numbers = [fields.int32() for _ in range(fields.count())]
        epochs = [epoch] * len(numbers)
        if (tagged := fields.structure_end().get(0)) is not None:
            inner = FieldReader(tagged)
            inner.flexible = True
            epochs = [inner.int32() for _ in range(inner.count())]
        if len(epochs) != len(numbers):
            raise InvalidGroupRecord(f"{len(numbers)} partitions have {len(epochs)} epochs")
        found |= {(topic_id, number): since for number, since in zip(numbers, epochs, strict=True)}
    return found


def _state(number: int) -> MemberState:
    try:
        return MemberState(number)
    except ValueError:
        raise InvalidGroupRecord(f"a member has state {number}, which is unknown") from None
