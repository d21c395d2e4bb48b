"""The hand-written encoders write the codec's bytes in every version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restow.wire import fetch, metadata, produce
from restow.wire.messages import FetchRequest, FetchResponse, MetadataResponse, ProduceResponse
from restow.wire.metadata import NOT_ASKED_FOR, PartitionMetadata, TopicMetadata, encode_unknown_topic
from restow.wire.primitives import varint
from restow.wire.reader import read_length
from tests.unit.wire.responses import (
    fetched_topics,
    library_fetch,
    library_metadata,
    library_produce,
    metadata_parts,
    produced_topics,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

MODULES = [fetch, metadata, produce]


def joined(parts: Iterable[Any]) -> bytes:
    return b"".join(map(bytes, parts))


@pytest.mark.parametrize("version", produce.VERSIONS)
@settings(max_examples=30)
@given(content=produced_topics())
def test_produce_encoder_writes_the_bytes_of_the_codec(version: int, content: dict[str, Any]) -> None:
    written = joined(produce.encode_produce_response(version, **content))
    assert written == bytes(library_produce(version, **content).encode(version=version))


@pytest.mark.parametrize("version", fetch.VERSIONS)
@settings(max_examples=30)
@given(data=st.data())
def test_fetch_encoder_writes_the_bytes_of_the_codec(version: int, data: st.DataObject) -> None:
    content = data.draw(fetched_topics(by_id=version >= 13))
    written = joined(fetch.encode_fetch_response(version, **content))
    assert written == bytes(library_fetch(version, **content).encode(version=version))


def partition_names() -> st.SearchStrategy[tuple[str, int]]:
    return st.tuples(st.sampled_from(("orders", "a" * 200, "ü")), st.integers(0, 2**31 - 1))


@settings(max_examples=50)
@given(
    wanted=st.dictionaries(
        partition_names(),
        st.tuples(
            st.integers(0, 2**63 - 1),
            st.integers(0, 2**31 - 1),
            st.integers(-1, 2**31 - 1),
            st.integers(-1, 2**31 - 1),
            st.integers(-1, 2**63 - 1),
        ),
        max_size=200,
    ),
    forgotten=st.sets(partition_names()),
    numbers=st.lists(st.integers(-1, 2**31 - 1), min_size=6, max_size=6),
)
def test_fetch_request_encoder_writes_the_bytes_of_the_codec(
    wanted: dict[tuple[str, int], tuple[int, int, int, int, int]],
    forgotten: set[tuple[str, int]],
    numbers: list[int],
) -> None:
    names = ("replica_id", "max_wait_ms", "min_bytes", "max_bytes", "session_id", "session_epoch")
    fields = dict(zip(names, numbers, strict=True))
    topics, left = {}, {}
    for (topic, number), (offset, most, epoch, last_epoch, start) in wanted.items():
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=number,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
            log_start_offset=start,
            partition_max_bytes=most,
        )
        topics.setdefault(topic, []).append(partition)
    for topic, number in forgotten:
        left.setdefault(topic, []).append(number)
    expected = FetchRequest(
        isolation_level=0,
        topics=[FetchRequest.FetchTopic(topic=name, partitions=each) for name, each in topics.items()],
        forgotten_topics_data=[
            FetchRequest.ForgottenTopic(topic=name, partitions=each) for name, each in left.items()
        ],
        rack_id="",
        **fields,
    )
    written = joined(fetch.encode_fetch_request(wanted.items(), **fields, forgotten=forgotten))
    assert written == bytes(expected.encode(version=fetch.REQUEST_VERSION))


@pytest.mark.parametrize("version", metadata.VERSIONS)
@settings(max_examples=30)
@given(content=metadata_parts())
def test_metadata_encoder_writes_the_bytes_of_the_codec(version: int, content: dict[str, Any]) -> None:
    topics = [topic.encode(version, **arguments) for topic, arguments in content["topics"]]
    written = joined(metadata.encode_metadata_response(version, **{**content, "topics": topics}))
    assert written == bytes(library_metadata(version, **content).encode(version=version))


def test_large_records_are_not_copied() -> None:
    records = memoryview(b"r" * 5000)
    parts = fetch.encode_fetch_response(12, [("t", [fetch.Fetched(0, records=records), fetch.Fetched(1)])])
    assert len(parts) == 3
    assert parts[1] is records


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["put", "remove", "encode"]), st.integers(0, 12)))
)
def test_topic_metadata_encodes_changes(steps: list[tuple[int, str, int]]) -> None:
    topic = TopicMetadata("t", topic_id=UUID(int=5))
    expected: dict[int, PartitionMetadata] = {}
    for number, (partition, step, version) in enumerate(steps):
        if step == "put":
            expected[partition] = PartitionMetadata(partition, number % 3, number, (1, 2), (1,), (2,))
            topic.put(expected[partition])
        elif step == "remove":
            expected.pop(partition, None)
            topic.remove(partition)
        in_order = tuple(expected[partition] for partition in sorted(expected))
        fresh = TopicMetadata("t", topic_id=UUID(int=5), partitions=in_order)
        assert topic.encode(version) == fresh.encode(version)
        assert topic.partitions == in_order


@pytest.mark.parametrize("version", metadata.VERSIONS)
def test_unknown_topic_is_encoded_like_the_codec(version: int) -> None:
    content = {"brokers": (), "cluster_id": "c", "controller_id": 1}
    written = joined(
        metadata.encode_metadata_response(
            version, topics=[encode_unknown_topic(version, 3, name="t")], **content
        )
    )
    (topic,) = MetadataResponse.decode(written, version=version).topics
    assert (topic.error_code, topic.name, topic.partitions) == (3, "t", [])


def test_unknown_topic_needs_a_name_before_version_12() -> None:
    part = encode_unknown_topic(12, 100, topic_id=UUID(int=7))
    written = joined(
        metadata.encode_metadata_response(12, brokers=(), cluster_id=None, controller_id=-1, topics=[part])
    )
    (topic,) = MetadataResponse.decode(written, version=12).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (100, None, UUID(int=7))
    with pytest.raises(ValueError, match="cannot leave the topic's name out"):
        encode_unknown_topic(11, 100, topic_id=UUID(int=7))


def test_fetch_encoder_takes_name_or_id_by_version() -> None:
    with pytest.raises(ValueError, match="goes by topic id"):
        fetch.encode_fetch_response(13, [("t", [])])
    with pytest.raises(ValueError, match="goes by topic name"):
        fetch.encode_fetch_response(12, [(UUID(int=1), [])])


@pytest.mark.parametrize("version", [-1, 99])
def test_encoders_refuse_unknown_versions(version: int) -> None:
    with pytest.raises(ValueError, match="Produce response of version"):
        produce.encode_produce_response(version, [])
    with pytest.raises(ValueError, match="Fetch response of version"):
        fetch.encode_fetch_response(version, [])
    with pytest.raises(ValueError, match="Metadata response of version"):
        metadata.encode_metadata_response(version, brokers=(), cluster_id=None, controller_id=0, topics=())


def test_encoder_versions_exist_in_the_protocol() -> None:
    for module, message in zip(MODULES, [FetchResponse, MetadataResponse, ProduceResponse], strict=True):
        assert module.VERSIONS[-1] <= message.max_version
    assert NOT_ASKED_FOR == -(2**31)


@given(st.integers(0, 2**31 - 1))
def test_varints_round_trip(number: int) -> None:
    assert read_length(varint(number), 0) == (number, len(varint(number)))
