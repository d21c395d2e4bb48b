"""Group and offset records, byte for byte against Kafka's classes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restow.cluster.groups.records import (
    GroupKey,
    GroupValue,
    MemberValue,
    OffsetKey,
    OffsetValue,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_group_key,
    encode_group_value,
    encode_offset_key,
    encode_offset_value,
)
from restow.model.group_partitions import partition_of_group

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

pytestmark = pytest.mark.jvm

VERSIONS = range(5)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
MOMENT = st.integers(0, 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
MEMBERS = st.builds(
    MemberValue,
    member_id=TEXT,
    instance_id=st.none() | TEXT,
    client_id=TEXT,
    client_host=TEXT,
    rebalance_timeout_ms=INT32,
    session_timeout_ms=INT32,
    subscription=st.binary(max_size=200),
    assignment=st.binary(max_size=20),
)
GROUPS = st.builds(
    GroupValue,
    protocol_type=TEXT,
    generation=INT32,
    protocol_name=st.none() | TEXT,
    leader=st.none() | TEXT,
    state_since_ms=st.none() | MOMENT,
    members=st.lists(MEMBERS, max_size=4).map(tuple),
)
OFFSETS = st.builds(OffsetValue, INT64, INT32, TEXT, INT64, st.none())
EXPIRING = st.builds(OffsetValue, INT64, st.just(-1), TEXT, INT64, MOMENT)
several = settings(max_examples=60, deadline=None)


def parsed(gateway: JavaGateway, name: str, data: bytes, of: str = "group") -> Any:
    """Decode the record with Kafka's class of that name, after its version."""
    buffer = gateway.jvm.java.nio.ByteBuffer.wrap(data)
    version = buffer.getShort()
    accessor = gateway.jvm.org.apache.kafka.common.protocol.ByteBufferAccessor(buffer)
    generated = getattr(gateway.jvm.org.apache.kafka.coordinator, of).generated
    made = getattr(generated, name)(accessor, version)
    assert buffer.remaining() == 0
    return made


def written(gateway: JavaGateway, message: Any, version: int) -> bytes:
    to_bytes = gateway.jvm.org.apache.kafka.common.protocol.MessageUtil.toVersionPrefixedBytes
    return bytes(to_bytes(version, message))


@several
@given(key=st.builds(OffsetKey, TEXT, TEXT, INT32))
def test_offset_keys_equal_those_of_kafka(gateway: JavaGateway, key: OffsetKey) -> None:
    data = encode_offset_key(key)
    java = parsed(gateway, "OffsetCommitKey", data)
    assert OffsetKey(java.group(), java.topic(), java.partition()) == key
    assert written(gateway, java, 1) == data
    assert decode_key(written(gateway, java, 0)) == key
    assert decode_key(data) == key


@several
@given(key=st.builds(GroupKey, TEXT))
def test_group_keys_equal_those_of_kafka(gateway: JavaGateway, key: GroupKey) -> None:
    data = encode_group_key(key)
    java = parsed(gateway, "GroupMetadataKey", data)
    assert java.group() == key.group
    assert written(gateway, java, 2) == data
    assert decode_key(data) == key


@several
@given(value=OFFSETS | EXPIRING)
def test_offset_values_equal_those_of_kafka(gateway: JavaGateway, value: OffsetValue) -> None:
    data = encode_offset_value(value)
    java = parsed(gateway, "OffsetCommitValue", data)
    expires_at = -1 if value.expires_at_ms is None else value.expires_at_ms
    assert (java.offset(), java.leaderEpoch(), java.metadata()) == value[:3]
    assert (java.commitTimestamp(), java.expireTimestamp()) == (value.committed_at_ms, expires_at)
    assert written(gateway, java, int.from_bytes(data[:2])) == data
    assert decode_offset_value(data) == value
    for version in VERSIONS:
        kept = value._replace(
            leader_epoch=value.leader_epoch if version >= 3 else -1,
            expires_at_ms=value.expires_at_ms if version == 1 else None,
        )
        assert decode_offset_value(written(gateway, java, version)) == kept


@several
@given(value=GROUPS)
def test_group_values_equal_those_of_kafka(gateway: JavaGateway, value: GroupValue) -> None:
    data = encode_group_value(value)
    java = parsed(gateway, "GroupMetadataValue", data)
    assert java.protocolType() == value.protocol_type
    assert java.generation() == value.generation
    assert (java.protocol(), java.leader()) == (value.protocol_name, value.leader)
    assert java.currentStateTimestamp() == (-1 if value.state_since_ms is None else value.state_since_ms)
    for theirs, ours in zip(java.members(), value.members, strict=True):
        assert (theirs.memberId(), theirs.groupInstanceId()) == (ours.member_id, ours.instance_id)
        assert (theirs.clientId(), theirs.clientHost()) == (ours.client_id, ours.client_host)
        assert theirs.rebalanceTimeout() == ours.rebalance_timeout_ms
        assert theirs.sessionTimeout() == ours.session_timeout_ms
        assert (bytes(theirs.subscription()), bytes(theirs.assignment())) == (
            ours.subscription,
            ours.assignment,
        )
    assert written(gateway, java, 3) == data
    for version in VERSIONS:
        assert decode_group_value(written(gateway, java, version)) == as_of(value, version)


def as_of(value: GroupValue, version: int) -> GroupValue:
    """Return what a version can express of a group."""
    members = tuple(
        replace(
            member,
            instance_id=member.instance_id if version >= 3 else None,
            rebalance_timeout_ms=member.rebalance_timeout_ms if version >= 1 else member.session_timeout_ms,
        )
        for member in value.members
    )
    return replace(value, members=members, state_since_ms=value.state_since_ms if version >= 2 else None)


@several
@given(group=TEXT, partitions=st.integers(1, 1000))
def test_partition_of_group_equals_that_of_kafka(gateway: JavaGateway, group: str, partitions: int) -> None:
    hashed = gateway.jvm.java.util.Objects.hashCode(group)
    absolute = gateway.jvm.org.apache.kafka.common.utils.Utils.abs(hashed)
    assert partition_of_group(group, partitions) == absolute % partitions
