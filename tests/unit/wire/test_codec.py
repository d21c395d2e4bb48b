"""Requests and responses with their headers, and bytes that are neither."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restow.wire.codec import (
    API_VERSIONS,
    Codec,
    MalformedRequest,
    MalformedResponse,
    Request,
    UnsupportedVersion,
    encode_request,
    encode_response,
    parse_response,
)
from restow.wire.messages import (
    REQUESTS,
    RESPONSES,
    ApiVersionsResponse,
    ControlledShutdownRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
)
from tests.unit.wire.generated import messages, versions_of

EVERYTHING = {key: versions_of(message) for key, message in REQUESTS.items()}
CODEC = Codec(EVERYTHING)
METADATA, HEARTBEAT, CONTROLLED_SHUTDOWN = 3, 12, 7


def joined(parts: tuple[Any, ...]) -> bytes:
    return b"".join(map(bytes, parts))


@pytest.mark.parametrize("key", sorted(REQUESTS))
@settings(max_examples=10)
@given(data=st.data())
def test_messages_round_trip(key: int, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(EVERYTHING[key]))
    asked = data.draw(messages(REQUESTS[key], version))
    client_id = data.draw(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
    frame = joined(encode_request(key, version, 7, client_id, asked))
    request = CODEC.parse_request(frame)
    assert (request.api_key, request.api_version, request.correlation_id) == (key, version, 7)
    assert request.client_id == (None if (key, version) == (CONTROLLED_SHUTDOWN, 0) else client_id)
    assert request.body == asked

    answer = data.draw(messages(RESPONSES[key], version))
    frame = joined(encode_response(request, answer))
    response = parse_response(key, version, frame)
    assert response.correlation_id == 7
    assert response.body == answer
    encoded = bytes(answer.encode(version=version))
    assert joined(encode_response(request, (encoded[:3], encoded[3:]))) == frame


@pytest.mark.parametrize("version", [3, 4])
def test_request_headers_equal_those_of_the_library(version: int) -> None:
    asked = HeartbeatRequest(version=version, group_id="g", generation_id=1, member_id="m")
    frame = joined(encode_request(HEARTBEAT, version, 5, "me", asked))
    asked.with_header(correlation_id=5, client_id="me")
    assert frame == asked.encode(header=True)
    answer = HeartbeatResponse(version=version, error_code=27)
    frame = joined(encode_response(Request(HEARTBEAT, version, 5, "me", asked), answer))
    answer.with_header(correlation_id=5)
    assert frame == answer.encode(header=True)


@pytest.mark.parametrize("version", range(5))
def test_api_versions_response_header_never_has_tags(version: int) -> None:
    answer = ApiVersionsResponse(
        error_code=0, api_keys=[ApiVersionsResponse.ApiVersion(api_key=18, max_version=4)]
    )
    frame = joined(encode_response(Request(API_VERSIONS, version, 9, None, None), answer))
    assert frame == struct.pack(">i", 9) + answer.encode(version=version)
    assert parse_response(API_VERSIONS, version, frame).body.api_keys[0].max_version == 4


def test_controlled_shutdown_v0_header_has_no_client_id() -> None:
    frame = joined(
        encode_request(CONTROLLED_SHUTDOWN, 0, 1, "ignored", ControlledShutdownRequest(broker_id=3))
    )
    assert frame == struct.pack(">hhii", CONTROLLED_SHUTDOWN, 0, 1, 3)
    assert CODEC.parse_request(frame).body.broker_id == 3


def test_tags_in_a_request_header_are_skipped() -> None:
    asked = MetadataRequest(version=12, topics=[])
    plain = joined(encode_request(METADATA, 12, 1, "me", asked))
    body = bytes(asked.encode())
    tagged = plain[: -len(body) - 1] + b"\x01\x07\x03abc" + body
    assert CODEC.parse_request(tagged).body == asked
    with pytest.raises(MalformedRequest):
        CODEC.parse_request(plain[: -len(body) - 1] + b"\x01\x07\x7fabc")


@pytest.mark.parametrize(("key", "version"), [(METADATA, 13), (METADATA, -1), (999, 0), (-1, 0)])
def test_unsupported_key_or_version_raises_unsupported_version(key: int, version: int) -> None:
    frame = struct.pack(">hhih", key, version, 77, -1) + b"whatever"
    with pytest.raises(
        UnsupportedVersion, match=f"request {key} of version {version} is not served"
    ) as caught:
        Codec({METADATA: range(13)}).parse_request(frame)
    assert (caught.value.api_key, caught.value.version, caught.value.correlation_id) == (key, version, 77)


@pytest.mark.parametrize("length", range(8))
def test_frame_without_a_header_is_malformed(length: int) -> None:
    with pytest.raises(MalformedRequest, match=f"a frame of {length} bytes is too short"):
        CODEC.parse_request(b"\x00" * length)


@pytest.mark.parametrize("length", [1, 5, 32767])
def test_truncated_client_id_is_malformed(length: int) -> None:
    with pytest.raises(MalformedRequest, match="the client id is cut off"):
        CODEC.parse_request(struct.pack(">hhih", METADATA, 0, 1, length))


def test_client_id_that_is_not_utf8_is_malformed() -> None:
    with pytest.raises(MalformedRequest):
        CODEC.parse_request(struct.pack(">hhih", METADATA, 0, 1, 1) + b"\xff" + struct.pack(">i", 0))


def test_only_produce_requests_may_be_large() -> None:
    codec = Codec({0: range(12), METADATA: range(13)}, max_plain_bytes=100)
    with pytest.raises(MalformedRequest, match="request 3 of 101 bytes; 100 may come"):
        codec.parse_request(struct.pack(">hhih", METADATA, 0, 1, -1).ljust(101, b"\x00"))
    long = struct.pack(">hhihhhii", 0, 3, 1, -1, -1, 1, 1000, 0).ljust(101, b"\x00")
    assert codec.parse_request(long).body.timeout_ms == 1000


@given(st.binary(max_size=60))
def test_random_bytes_parse_as_request_or_are_refused(payload: bytes) -> None:
    try:
        CODEC.parse_request(payload)
    except (MalformedRequest, UnsupportedVersion):
        return


@given(st.sampled_from(sorted(RESPONSES)), st.binary(max_size=60))
def test_random_bytes_parse_as_response_or_are_refused(key: int, payload: bytes) -> None:
    for version in EVERYTHING[key]:
        try:
            parse_response(key, version, payload)
        except MalformedResponse:
            continue


@settings(max_examples=200)
@given(data=st.data())
def test_changed_requests_parse_or_are_refused(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(REQUESTS)))
    version = data.draw(st.sampled_from(EVERYTHING[key]))
    frame = bytearray(
        joined(encode_request(key, version, 1, "c", data.draw(messages(REQUESTS[key], version))))
    )
    for _ in range(data.draw(st.integers(1, 5))):
        frame[data.draw(st.integers(8, len(frame) - 1))] = data.draw(st.integers(0, 255))
    try:
        CODEC.parse_request(bytes(frame))
    except MalformedRequest:
        return
