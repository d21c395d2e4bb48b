"""Responses with an injected error, for every API and version that the cluster serves."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from restow.cluster.faults.answers import error_answer
from restow.cluster.handlers import HANDLERS, HangUp
from restow.wire.codec import Request, encode_response, parse_response
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import REQUESTS, MetadataResponse, ProduceRequest, ProduceResponse

if TYPE_CHECKING:
    from collections.abc import Iterator

PRODUCE, FETCH, METADATA, API_VERSIONS = 0, 1, 3, 18
CODE = ErrorCode.NOT_LEADER_OR_FOLLOWER
TOPIC_ID = UUID(int=7)
FIRST_FETCH_WITH_SESSIONS = 7
"""Errors of sessions stand at the top level."""
WITH_PARTITIONS = (PRODUCE, FETCH, 2, 4, 5, 8, 21, 23, 24, 27, 28, 34, 43, 45, 47, 61)
"""APIs in whose responses every partition has an error."""


def example(kind: Any, fields: dict[str, Any]) -> Any:
    """Return a request, or a part of one, that asks about partition 0 of topic t."""
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if field.is_struct_array():
            values[name] = [example(field.data_class, field.data_class.fields)]
        elif field.is_array():
            values[name] = ["t"] if field._type_str == "[]string" else [0]
        elif field._type_str == "string":
            values[name] = "t"
        elif field._type_str == "uuid":
            values[name] = TOPIC_ID
    return kind(**values)


def example_request(key: int, version: int) -> Request:
    kind = REQUESTS[key]
    body = example(kind, kind.fields)
    if key == PRODUCE:
        body.acks = -1
    if key == FETCH:
        body.session_epoch = -1
    return Request(key, version, 1, "tester", body)


def a_context() -> Any:
    metadata = SimpleNamespace(
        topics={"t": SimpleNamespace(topic_id=TOPIC_ID)},
        name_of=lambda topic_id: "t" if topic_id == TOPIC_ID else None,
    )
    logs = SimpleNamespace(directories=[SimpleNamespace(path="/log")])
    return SimpleNamespace(broker=SimpleNamespace(metadata=metadata, logs=logs))


async def handle_metadata(request: Request, _: Any) -> Any:
    broker = MetadataResponse.MetadataResponseBroker(node_id=1, host="a", port=9092)
    return MetadataResponse(brokers=[broker], cluster_id="c", controller_id=1, topics=[])


def answer_to(request: Request, topic: str | None = None) -> Any:
    """Return the response as a client would read it."""
    answer = asyncio.run(error_answer(request, a_context(), CODE, topic, handle_metadata))
    payload = b"".join(map(bytes, encode_response(request, answer)))
    return parse_response(request.api_key, request.api_version, payload).body


def values_of(message: Any, version: int, wanted: set[str]) -> Iterator[Any]:
    """Return the values of the fields of these names that the version has, the outer ones first."""
    fields = {name: field for name, field in type(message).fields.items() if field.for_version_q(version)}
    yield from (getattr(message, name) for name in fields if name in wanted)
    for name, field in fields.items():
        if field.is_struct_array():
            for each in getattr(message, name) or ():
                yield from values_of(each, version, wanted)


@pytest.mark.parametrize("key", sorted(HANDLERS))
def test_error_stands_in_every_place_of_every_version(key: int) -> None:
    for version in HANDLERS[key].versions:
        answer = answer_to(example_request(key, version))
        codes = list(values_of(answer, version, {"error_code", "partition_error_code"}))
        if key == FETCH and version >= FIRST_FETCH_WITH_SESSIONS:
            assert codes.pop(0) == ErrorCode.NONE, (version, answer)
        assert set(codes) == {CODE}, (version, answer)


@pytest.mark.parametrize("key", WITH_PARTITIONS)
def test_error_names_the_partitions_that_were_asked_for(key: int) -> None:
    for version in HANDLERS[key].versions:
        answer = answer_to(example_request(key, version))
        indexes = {"index", "partition_index", "partition", "partition_id"}
        assert list(values_of(answer, version, indexes)) == [0], (version, answer)


def test_metadata_with_an_error_still_names_the_brokers() -> None:
    for version in HANDLERS[METADATA].versions:
        answer = answer_to(example_request(METADATA, version))
        assert [broker.node_id for broker in answer.brokers] == [1]
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [("t", CODE)]


def test_error_for_one_topic_leaves_the_others_to_the_broker() -> None:
    kind = ProduceRequest.TopicProduceData
    topics = [
        kind(name=name, partition_data=[kind.PartitionProduceData(index=0, records=b"x")])
        for name in ("t", "other")
    ]
    request = Request(PRODUCE, 9, 1, "tester", ProduceRequest(acks=-1, timeout_ms=1, topic_data=topics))
    handled: list[str] = []

    async def handle(rest: Request, _: Any) -> Any:
        handled.extend(topic.name for topic in rest.body.topic_data)
        done = ProduceResponse.TopicProduceResponse
        part = done.PartitionProduceResponse(index=0, error_code=0, base_offset=5)
        return (
            ProduceResponse(responses=[done(name="other", partition_responses=[part])]).encode(version=9),
        )

    answer: Any = asyncio.run(error_answer(request, a_context(), CODE, "t", handle))
    assert handled == ["other"]
    codes = {topic.name: topic.partition_responses[0].error_code for topic in answer.responses}
    assert codes == {"other": 0, "t": CODE}


def test_produce_without_acks_gets_a_closed_connection() -> None:
    request = example_request(PRODUCE, 9)
    request.body.acks = 0
    with pytest.raises(HangUp):
        answer_to(request)


def test_fetch_session_errors_stand_at_the_top_level() -> None:
    code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    request = example_request(FETCH, 12)
    answer: Any = asyncio.run(error_answer(request, a_context(), code, None, handle_metadata))
    assert (answer.error_code, answer.responses) == (code, [])


def test_api_versions_is_refused_in_version_0() -> None:
    request = example_request(API_VERSIONS, 3)
    code = ErrorCode.UNSUPPORTED_VERSION
    answer: Any = asyncio.run(error_answer(request, a_context(), code, None, handle_metadata))
    body = parse_response(API_VERSIONS, 0, bytes(4) + b"".join(map(bytes, answer))).body
    assert body.error_code == code
    assert [each.api_key for each in body.api_keys] == [API_VERSIONS]
