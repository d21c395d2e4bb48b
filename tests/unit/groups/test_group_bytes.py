"""Group records from other writers, and invalid ones."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.cluster.groups.fields import InvalidGroupRecord
from restow.cluster.groups.offsets import subscribed_topics
from restow.cluster.groups.records import (
    GroupValue,
    MemberValue,
    OffsetKey,
    OffsetValue,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_group_value,
    encode_offset_key,
    encode_offset_value,
)
from restow.model.group_partitions import java_string_hash, partition_of_group
from tests.unit.groups.workbench import subscription

GROUP = encode_group_value(
    GroupValue(
        protocol_type="consumer",
        generation=3,
        protocol_name="range",
        leader="a",
        state_since_ms=7,
        members=(
            MemberValue(
                member_id="a",
                instance_id=None,
                client_id="c",
                client_host="h",
                rebalance_timeout_ms=1,
                session_timeout_ms=2,
                subscription=b"s",
                assignment=b"t",
            ),
        ),
    )
)
OFFSET = encode_offset_value(OffsetValue(5, 1, "here", 9))
KEY = encode_offset_key(OffsetKey("g", "t", 4))
READERS = {GROUP: decode_group_value, OFFSET: decode_offset_value, KEY: decode_key}


def test_offset_record_has_the_layout_of_kafka() -> None:
    assert KEY == b"\0\1" + b"\0\1g" + b"\0\1t" + b"\0\0\0\4"
    assert b"\0\3" + (5).to_bytes(8) + (1).to_bytes(4) + b"\0\4here" + (9).to_bytes(8) == OFFSET


@pytest.mark.parametrize("data", READERS, ids=["group", "offset", "key"])
def test_truncated_record_is_refused(data: bytes) -> None:
    for end in range(len(data)):
        with pytest.raises(InvalidGroupRecord):
            READERS[data](data[:end])


@pytest.mark.parametrize("data", READERS, ids=["group", "offset", "key"])
def test_record_with_trailing_bytes_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidGroupRecord, match="1 bytes are left"):
        READERS[data](data + b"\0")


@given(st.binary(max_size=60))
def test_decode_reads_or_refuses_any_bytes(data: bytes) -> None:
    for read in (decode_key, decode_offset_value, decode_group_value):
        for version in (b"\0\0", b"\0\1", b"\0\2", b"\0\3", b"\0\4", b""):
            with suppress(InvalidGroupRecord):
                read(version + data)


@pytest.mark.parametrize("version", [-1, 5, 300])
def test_value_of_unknown_version_is_refused(version: int) -> None:
    with pytest.raises(InvalidGroupRecord, match=f"version {version}"):
        decode_offset_value(version.to_bytes(2, signed=True) + OFFSET[2:])


def test_key_of_unknown_kind_is_skipped() -> None:
    assert decode_key(b"\0\x09\0\1g") is None


def test_string_too_long_for_a_record_is_refused() -> None:
    with pytest.raises(InvalidGroupRecord, match="40000 bytes"):
        encode_offset_key(OffsetKey("g" * 40_000, "t", 0))


def test_subscribed_topics_reads_subscriptions() -> None:
    assert subscribed_topics([subscription("a", "b"), subscription("b", "c")]) == {"a", "b", "c"}
    assert subscribed_topics([]) == frozenset()
    assert subscribed_topics([subscription("a"), b"junk"]) is None
    assert subscribed_topics([b"\xff\xff\0\0\0\0"]) is None


@pytest.mark.parametrize(
    ("group", "hashed"),
    [("", 0), ("a", 97), ("crew", 3062113), ("polygenelubricants", -(2**31)), ("\U0001f600", 1772899)],
)
def test_java_string_hash_equals_that_of_java(group: str, hashed: int) -> None:
    assert java_string_hash(group) == hashed
    assert partition_of_group(group, 50) == (0 if hashed == -(2**31) else abs(hashed) % 50)
