"""The records of `__consumer_offsets`, byte for byte as Kafka writes and reads them.

A key starts with its version, which gives its kind: 0 and 1 an offset, 2 a group of the classic protocol;
those of the protocol `consumer` are in `consumer/records.py`. A value starts with its own version. A record
without a value is a tombstone.
"""

from __future__ import annotations

from typing import NamedTuple

from restow._frozen import frozen
from restow.cluster.groups.consumer.records import ConsumerGroupKey, read_consumer_key
from restow.cluster.groups.fields import FieldReader, InvalidGroupRecord, nullable_string, sized_bytes, string
from restow.wire.primitives import INT16, INT32, INT64

OFFSET_KEY_VERSIONS = (0, 1)
GROUP_KEY_VERSION = 2
VALUE_VERSION = 3
FLEXIBLE_VERSION = 4
_EXPIRING_OFFSET_VERSION = 1
_NO_TIMESTAMP = -1
_NO_LEADER_EPOCH = -1


class OffsetKey(NamedTuple):
    """The group, topic and partition of an offset."""

    group: str
    topic: str
    partition: int


class GroupKey(NamedTuple):
    """The name of a group."""

    group: str


class OffsetValue(NamedTuple):
    """A committed offset. `expires_at_ms` is only for commits with their own retention."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int
    expires_at_ms: int | None = None


@frozen
class MemberValue:
    """One member of a stored group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@frozen
class GroupValue:
    """A group at the start of a generation."""

    protocol_type: str
    generation: int
    protocol_name: str | None
    leader: str | None
    state_since_ms: int | None
    members: tuple[MemberValue, ...] = ()


def encode_offset_key(key: OffsetKey) -> bytes:
    return (
        INT16.pack(OFFSET_KEY_VERSIONS[-1])
        + string(key.group)
        + string(key.topic)
        + INT32.pack(key.partition)
    )


def encode_group_key(key: GroupKey) -> bytes:
    return INT16.pack(GROUP_KEY_VERSION) + string(key.group)


def decode_key(data: bytes) -> OffsetKey | GroupKey | ConsumerGroupKey | None:
    """Decode a key; None for kinds of other protocols."""
    fields = FieldReader(data)
    version = fields.int16()
    if version in OFFSET_KEY_VERSIONS:
        key: OffsetKey | GroupKey | ConsumerGroupKey | None = OffsetKey(
            fields.string(), fields.string(), fields.int32()
        )
    elif version == GROUP_KEY_VERSION:
        key = GroupKey(fields.string())
    else:
        key = read_consumer_key(fields, version)
    if key is not None:
        fields.end()
    return key


def encode_offset_value(value: OffsetValue) -> bytes:
    """Encode as version 3, or 1 for an offset with its own retention, which other versions lack."""
    if value.expires_at_ms is None:
        return b"".join(
            (
                INT16.pack(VALUE_VERSION),
                INT64.pack(value.offset),
                INT32.pack(value.leader_epoch),
                string(value.metadata),
                INT64.pack(value.committed_at_ms),
            )
        )
    return b"".join(
        (
            INT16.pack(_EXPIRING_OFFSET_VERSION),
            INT64.pack(value.offset),
            string(value.metadata),
            INT64.pack(value.committed_at_ms),
            INT64.pack(value.expires_at_ms),
        )
    )


def decode_offset_value(data: bytes) -> OffsetValue:
    """Decode an offset of any version up to Kafka 3.9."""
    fields = FieldReader(data)
    version = _value_version(fields)
    offset = fields.int64()
    leader_epoch = fields.int32() if version >= VALUE_VERSION else _NO_LEADER_EPOCH
    metadata = fields.string()
    committed_at = fields.int64()
    expires_at = fields.int64() if version == _EXPIRING_OFFSET_VERSION else _NO_TIMESTAMP
    fields.structure_end()
    fields.end()
    return OffsetValue(
        offset, leader_epoch, metadata, committed_at, None if expires_at == _NO_TIMESTAMP else expires_at
    )


def encode_group_value(value: GroupValue) -> bytes:
    """Encode as version 3."""
    parts = [
        INT16.pack(VALUE_VERSION),
        string(value.protocol_type),
        INT32.pack(value.generation),
        nullable_string(value.protocol_name),
        nullable_string(value.leader),
        INT64.pack(_NO_TIMESTAMP if value.state_since_ms is None else value.state_since_ms),
        INT32.pack(len(value.members)),
    ]
    for member in value.members:
        parts += (
            string(member.member_id),
            nullable_string(member.instance_id),
            string(member.client_id),
            string(member.client_host),
            INT32.pack(member.rebalance_timeout_ms),
            INT32.pack(member.session_timeout_ms),
            sized_bytes(member.subscription),
            sized_bytes(member.assignment),
        )
    return b"".join(parts)


def decode_group_value(data: bytes) -> GroupValue:
    """Decode a group of any version up to Kafka 3.9."""
    fields = FieldReader(data)
    version = _value_version(fields)
    protocol_type = fields.string()
    generation = fields.int32()
    protocol_name = fields.nullable_string()
    leader = fields.nullable_string()
    state_since = fields.int64() if version >= 2 else _NO_TIMESTAMP
    members = tuple(_decode_member(fields, version) for _ in range(fields.count()))
    fields.structure_end()
    fields.end()
    return GroupValue(
        protocol_type=protocol_type,
        generation=generation,
        protocol_name=protocol_name,
        leader=leader,
        state_since_ms=None if state_since == _NO_TIMESTAMP else state_since,
        members=members,
    )


def _decode_member(fields: FieldReader, version: int) -> MemberValue:
    member_id = fields.string()
    instance_id = fields.nullable_string() if version >= VALUE_VERSION else None
    client_id = fields.string()
    client_host = fields.string()
    rebalance_timeout = fields.int32() if version >= 1 else None
    session_timeout = fields.int32()
    member = MemberValue(
        member_id=member_id,
        instance_id=instance_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=session_timeout if rebalance_timeout is None else rebalance_timeout,
        session_timeout_ms=session_timeout,
        subscription=fields.sized_bytes(),
        assignment=fields.sized_bytes(),
    )
    fields.structure_end()
    return member


def _value_version(fields: FieldReader) -> int:
    version = fields.int16()
    if not 0 <= version <= FLEXIBLE_VERSION:
        raise InvalidGroupRecord(f"a value has version {version}, but only 0 to {FLEXIBLE_VERSION} are known")
    fields.flexible = version >= FLEXIBLE_VERSION
    return version
