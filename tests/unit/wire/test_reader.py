"""The reader returns what the library's decoder does, and checks untrusted bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from restow.wire.messages import (
    REQUESTS,
    RESPONSES,
    ApiVersionsResponse,
    DeleteTopicsRequest,
    FetchRequest,
    LeaderAndIsrRequest,
    MetadataRequest,
    OffsetFetchRequest,
)
from restow.wire.reader import Unreadable, read_length, reader_of, skip_tags
from tests.unit.wire.generated import messages, versions_of

ALL = [*REQUESTS.values(), *RESPONSES.values()]
EVERY_VERSION = [(message, version) for message in ALL for version in versions_of(message)]
REFUSED = (ValueError, IndexError, struct.error)


@pytest.mark.parametrize("message", ALL, ids=lambda message: message.name)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_reader_reads_back_written_messages(message, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(versions_of(message)))
    sent = data.draw(messages(message, version))
    encoded = bytes(sent.encode(version=version))
    got, end = reader_of(message, version)(b"\xee" + encoded + b"\xee", 1)
    assert end == len(encoded) + 1
    assert type(got) is message
    assert got == sent
    if message is not ApiVersionsResponse:  # of which the library decodes errors as version 0
        assert got.to_dict(meta="all") == message.decode(encoded, version=version).to_dict(meta="all")
    assert got.encode() == encoded
    assert got.encode(version=version) == encoded


@settings(max_examples=300)
@given(data=st.data())
def test_reader_raises_only_unreadable_for_truncated_or_changed_bytes(data: st.DataObject) -> None:
    message, version = data.draw(st.sampled_from(EVERY_VERSION))
    encoded = bytearray(data.draw(messages(message, version)).encode(version=version))
    for _ in range(data.draw(st.integers(0, 4))):
        if encoded:
            encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(encoded[: data.draw(st.integers(0, len(encoded)))])
    try:
        _, end = reader_of(message, version)(cut, 0)
    except REFUSED:
        return
    assert end <= len(cut)


@pytest.mark.parametrize(("message", "version"), EVERY_VERSION, ids=lambda it: getattr(it, "name", it))
def test_empty_body_is_refused_unless_the_message_has_no_fields(message, version: int) -> None:
    try:
        _, end = reader_of(message, version)(b"", 0)
    except REFUSED:
        return
    assert end == 0


def test_impossible_count_is_refused_before_any_allocation() -> None:
    with pytest.raises(Unreadable, match="2147483647 bytes are announced where 0 are left"):
        reader_of(MetadataRequest, 1)(struct.pack(">i", 2**31 - 1), 0)
    with pytest.raises(Unreadable):
        reader_of(MetadataRequest, 9)(b"\xff\xff\xff\xff\x0f", 0)


def test_truncated_string_is_refused() -> None:
    with pytest.raises(Unreadable, match="5 bytes are announced where 2 are left"):
        reader_of(MetadataRequest, 1)(struct.pack(">ih", 1, 5) + b"ab", 0)


@pytest.mark.parametrize("length", [-1, -2, -32768])
def test_null_is_refused_where_the_protocol_forbids_it(length: int) -> None:
    with pytest.raises(Unreadable, match="Name cannot be null"):
        reader_of(MetadataRequest, 1)(struct.pack(">ih", 1, length), 0)
    with pytest.raises(Unreadable, match="TopicNames cannot be null"):
        reader_of(DeleteTopicsRequest, 1)(struct.pack(">ii", -1, 0), 0)


def test_a_length_has_at_most_five_bytes() -> None:
    assert read_length(b"\xff\xff\xff\xff\x0f", 0) == (2**32 - 1, 5)
    with pytest.raises(Unreadable, match="more than five bytes"):
        read_length(b"\x80" * 1000, 0)


def test_unknown_tags_are_kept_or_skipped() -> None:
    tags = b"\x02" + b"\x09\x03abc" + b"\x0a\x00"
    assert skip_tags(tags, 0) == len(tags)
    sent = MetadataRequest(version=12, topics=None).encode()
    got, end = reader_of(MetadataRequest, 12)(bytes(sent[:-1]) + tags, 0)
    assert got.unknown_tags == {"_9": b"abc", "_10": b""}
    assert end == len(sent) - 1 + len(tags)


def test_tags_inside_a_tagged_structure_are_read_too() -> None:
    plain = bytes(FetchRequest(version=15, max_wait_ms=1, min_bytes=1, topics=[]).encode())
    state = struct.pack(">iq", 7, 8) + b"\x01\x05\x01x"
    got, _ = reader_of(FetchRequest, 15)(plain[:-1] + b"\x01\x01" + bytes([len(state)]) + state, 0)
    assert (got.replica_state.replica_id, got.replica_state.replica_epoch) == (7, 8)
    assert got.replica_state.unknown_tags == {"_5": b"x"}
    with pytest.raises(Unreadable, match="not as long as announced"):
        reader_of(FetchRequest, 15)(plain[:-1] + b"\x01\x01" + bytes([len(state) + 1]) + state + b"x", 0)


def test_many_tags_are_read_in_linear_time() -> None:
    count = 200_000
    tags = b"\xc0\x9a\x0c" + b"\x09\x00" * count
    got, _ = reader_of(MetadataRequest, 12)(b"\x00\x00\x00" + tags, 0)
    assert got.unknown_tags == {"_9": b""}


@pytest.mark.parametrize("count", [100_000, 100_001, 8_000_000])
def test_too_many_elements_are_refused_at_once(count: int) -> None:
    """Two bytes each in the frame, a hundred each in memory."""
    frame = struct.pack(">i", count) + b"\0\0" * count
    if count <= 100_000:
        assert len(reader_of(MetadataRequest, 1)(frame, 0)[0].topics) == count
        return
    with pytest.raises(Unreadable, match="more elements"):
        reader_of(MetadataRequest, 1)(frame, 0)


def test_element_limit_counts_numbers_less_and_nested_elements_together() -> None:
    def topics(count: int, partitions: int) -> bytes:
        one = struct.pack(">h", 0) + struct.pack(f">i{partitions}i", partitions, *range(partitions))
        return struct.pack(">hi", 0, count) + one * count

    read = reader_of(OffsetFetchRequest, 1)
    assert len(read(topics(1, 300_000), 0)[0].topics[0].partition_indexes) == 300_000
    assert len(read(topics(3_000, 100), 0)[0].topics) == 3_000
    for count, partitions in ((1, 400_001), (4_000, 100)):
        with pytest.raises(Unreadable, match="more elements"):
            read(topics(count, partitions), 0)


def test_controller_requests_may_have_a_whole_cluster() -> None:
    state = LeaderAndIsrRequest.LeaderAndIsrTopicState
    partition = state.LeaderAndIsrPartitionState
    states = [
        partition(
            partition_index=number,
            isr=[1, 2, 3],
            replicas=[1, 2, 3],
            adding_replicas=[],
            removing_replicas=[],
        )
        for number in range(100_000)
    ]
    order = LeaderAndIsrRequest(
        topic_states=[state(topic_name="t", partition_states=states)], live_leaders=[]
    )
    got, _ = reader_of(LeaderAndIsrRequest, 7)(bytes(order.encode(version=7)), 0)
    assert len(got.topic_states[0].partition_states) == 100_000
