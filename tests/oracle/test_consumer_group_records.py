"""Records of groups of the protocol `consumer`, byte for byte against the classes of Kafka 4.3.1."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.jars import KAFKA_4
from harness.jvm import kafka_jvm
from restow.cluster.groups.consumer.members import ClassicMembership, ConsumerGroupMember, MemberState
from restow.cluster.groups.consumer.records import (
    ConsumerGroupKey,
    RecordKind,
    ResolvedPattern,
    StoredGroup,
    encode_current,
    encode_epoch,
    encode_member,
    encode_pattern,
    encode_target,
    encode_target_epoch,
    replay,
)
from restow.cluster.groups.records import decode_key
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    from py4j.java_gateway import JavaGateway

pytestmark = pytest.mark.jvm

CLASSES = {
    RecordKind.GROUP: "ConsumerGroupMetadata",
    RecordKind.MEMBER: "ConsumerGroupMemberMetadata",
    RecordKind.TARGET_EPOCH: "ConsumerGroupTargetAssignmentMetadata",
    RecordKind.TARGET: "ConsumerGroupTargetAssignmentMember",
    RecordKind.CURRENT: "ConsumerGroupCurrentMemberAssignment",
    RecordKind.PATTERN: "ConsumerGroupRegularExpression",
}
INT32 = st.integers(0, 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PARTITIONS = st.tuples(st.uuids(), st.integers(0, 300))
HELD = st.dictionaries(PARTITIONS, INT32, max_size=6)
MEMBERS = st.builds(
    ConsumerGroupMember,
    id=TEXT,
    instance_id=st.none() | TEXT,
    rack=st.none() | TEXT,
    client_id=TEXT,
    client_host=TEXT,
    topics=st.lists(TEXT, max_size=4).map(tuple),
    pattern=st.none() | TEXT,
    rebalance_timeout_ms=INT32,
    server_assignor=st.none() | TEXT,
    classic=st.none()
    | st.builds(
        ClassicMembership,
        st.integers(1, 2**31 - 1),
        st.lists(st.tuples(TEXT, st.binary(max_size=8)), max_size=3).map(tuple),
    ),
    epoch=INT32,
    previous_epoch=INT32,
    state=st.sampled_from(MemberState),
    assigned=HELD,
    revoking=HELD,
)
PATTERNS = st.builds(ResolvedPattern, st.frozensets(TEXT, max_size=4), INT64, INT64)
several = settings(max_examples=40, deadline=None)


@pytest.fixture(scope="module")
def gateway_of_4() -> Iterator[JavaGateway]:
    with ExitStack() as stack:
        with needs_kafka():
            gateway = stack.enter_context(kafka_jvm(KAFKA_4))
        yield gateway


def through_kafka(gateway: JavaGateway, kind: RecordKind, part: str, data: bytes) -> bytes:
    """Let Kafka's class read a key or a value behind its version, and write it again."""
    protocol = gateway.jvm.org.apache.kafka.common.protocol
    wrap = gateway.jvm.java.nio.ByteBuffer.wrap
    message = getattr(gateway.jvm.org.apache.kafka.coordinator.group.generated, CLASSES[kind] + part)
    readable = protocol.ByteBufferAccessor(wrap(data[2:]))
    read = message(readable, 0)
    assert readable.remaining() == 0
    written = protocol.MessageUtil.toByteBufferAccessor(read, 0).buffer()
    return data[:2] + bytes(gateway.jvm.org.apache.kafka.common.utils.Utils.toArray(written))


def check(gateway: JavaGateway, key: ConsumerGroupKey, value: bytes) -> StoredGroup:
    """Compare a record's bytes with Kafka's, and return what we read from them."""
    assert through_kafka(gateway, key.kind, "Key", key.encode()) == key.encode()
    assert through_kafka(gateway, key.kind, "Value", value) == value
    assert decode_key(key.encode()) == key
    stored = StoredGroup()
    replay(stored, key, value)
    return stored


@several
@given(group=TEXT, member=MEMBERS)
def test_records_of_a_member_are_kafkas(gateway_of_4: Any, group: str, member: ConsumerGroupMember) -> None:
    key = ConsumerGroupKey(RecordKind.MEMBER, group, member.id)
    read = check(gateway_of_4, key, encode_member(member)).members[member.id]
    assert encode_member(read) == encode_member(member)
    key = ConsumerGroupKey(RecordKind.CURRENT, group, member.id)
    current = check(gateway_of_4, key, encode_current(member)).current[member.id]
    assert current == (member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking)
    key = ConsumerGroupKey(RecordKind.TARGET, group, member.id)
    target = check(gateway_of_4, key, encode_target(member.assigned)).targets[member.id]
    assert target == frozenset(member.assigned)


@several
@given(group=TEXT, epoch=INT32, number=INT64, pattern=TEXT, resolved=PATTERNS)
def test_records_of_a_group_are_kafkas(
    gateway_of_4: Any, group: str, epoch: int, number: int, pattern: str, resolved: ResolvedPattern
) -> None:
    stored = check(gateway_of_4, ConsumerGroupKey(RecordKind.GROUP, group), encode_epoch(epoch, number))
    assert (stored.epoch, stored.metadata_hash) == (epoch, number)
    key = ConsumerGroupKey(RecordKind.TARGET_EPOCH, group)
    assert check(gateway_of_4, key, encode_target_epoch(epoch, number)).target_epoch == epoch
    key = ConsumerGroupKey(RecordKind.PATTERN, group, pattern)
    assert check(gateway_of_4, key, encode_pattern(resolved)).patterns == {pattern: resolved}
