"""Our bytes through Kafka's own classes: decoded and encoded again, they are unchanged.

Random messages of every kind, in every version that Kafka 3.9 also has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from restow.wire import fetch, metadata, produce
from restow.wire.codec import Request, encode_request, encode_response
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import REQUESTS, RESPONSES
from tests.unit.wire.generated import messages, versions_of
from tests.unit.wire.responses import fetched_topics, metadata_parts, produced_topics

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

pytestmark = pytest.mark.jvm
BETWEEN_BROKERS = (4, 5, 6, 7, 56, 67)
NEWER_THAN_3_9 = (74,)
ERRORS_OF_4 = {"INVALID_REGULAR_EXPRESSION"}
"""Error codes that only Kafka 4 has."""
IN_3_9 = sorted(set(REQUESTS) - set(NEWER_THAN_3_9))
FEW = settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Java:
    """Kafka's message classes."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._jvm = gateway.jvm
        self._common = gateway.jvm.org.apache.kafka.common

    def __repr__(self) -> str:
        return "Java()"

    def versions(self, name: str) -> range:
        """Return Kafka's versions of a message."""
        kind = getattr(self._common.message, f"{name}Data")
        return range(kind.LOWEST_SUPPORTED_VERSION, kind.HIGHEST_SUPPORTED_VERSION + 1)

    def again(self, name: str, version: int, encoded: bytes) -> bytes:
        """Return the message decoded and encoded by Kafka."""
        buffer = self._jvm.java.nio.ByteBuffer.wrap(encoded)
        accessor = self._common.protocol.ByteBufferAccessor(buffer)
        message = getattr(self._common.message, f"{name}Data")(accessor, version)
        assert buffer.remaining() == 0, "Kafka has not read all of it"
        written = self._common.protocol.MessageUtil.toByteBuffer(message, version)
        return bytes(written.array())[: written.limit()]


@pytest.fixture(scope="module")
def java(gateway: JavaGateway) -> Java:
    return Java(gateway)


@pytest.mark.parametrize("key", BETWEEN_BROKERS)
@pytest.mark.parametrize("kind", [REQUESTS, RESPONSES], ids=["request", "response"])
def test_java_rereads_every_version_between_brokers(java: Java, key: int, kind: dict[int, Any]) -> None:
    message = kind[key]
    assert versions_of(message) == java.versions(message.name)
    for version in versions_of(message):
        check_random_messages(java, message, version)


@pytest.mark.parametrize("key", sorted(set(IN_3_9) - set(BETWEEN_BROKERS)))
@pytest.mark.parametrize("kind", [REQUESTS, RESPONSES], ids=["request", "response"])
def test_java_rereads_other_messages(java: Java, key: int, kind: dict[int, Any]) -> None:
    message = kind[key]
    for version in java.versions(message.name):
        if version in versions_of(message):
            check_random_messages(java, message, version, examples=2)


def check_random_messages(java: Java, message: Any, version: int, examples: int = 8) -> None:
    @settings(FEW, max_examples=examples)
    @given(sent=messages(message, version))
    def check(sent: Any) -> None:
        encoded = bytes(sent.encode(version=version))
        assert java.again(message.name, version, encoded) == encoded

    check()


@pytest.mark.parametrize("version", produce.VERSIONS)
@FEW
@given(content=produced_topics())
def test_java_rereads_hand_written_produce_responses(
    java: Java, version: int, content: dict[str, Any]
) -> None:
    encoded = b"".join(produce.encode_produce_response(version, **content))
    assert java.again("ProduceResponse", version, encoded) == encoded


@pytest.mark.parametrize("version", fetch.VERSIONS)
@FEW
@given(data=st.data())
def test_java_rereads_hand_written_fetch_responses(java: Java, version: int, data: st.DataObject) -> None:
    content = data.draw(fetched_topics(by_id=version >= 13))
    encoded = b"".join(map(bytes, fetch.encode_fetch_response(version, **content)))
    assert java.again("FetchResponse", version, encoded) == encoded


@pytest.mark.parametrize("version", metadata.VERSIONS)
@FEW
@given(content=metadata_parts())
def test_java_rereads_hand_written_metadata_responses(
    java: Java, version: int, content: dict[str, Any]
) -> None:
    topics = [topic.encode(version, **arguments) for topic, arguments in content["topics"]]
    encoded = b"".join(metadata.encode_metadata_response(version, **{**content, "topics": topics}))
    assert java.again("MetadataResponse", version, encoded) == encoded


@pytest.mark.parametrize("key", IN_3_9)
def test_header_versions_equal_those_of_kafka(gateway: JavaGateway, java: Java, key: int) -> None:
    common = gateway.jvm.org.apache.kafka.common
    api = common.protocol.ApiKeys.forId(key)
    for version in versions_of(REQUESTS[key]):
        if version not in java.versions(REQUESTS[key].name):
            continue
        sent = b"".join(encode_request(key, version, 77, "me", (b"",)))
        buffer = gateway.jvm.java.nio.ByteBuffer.wrap(sent)
        header = common.requests.RequestHeader.parse(buffer)
        assert header.apiKey().equals(api)
        assert (header.apiVersion(), header.correlationId()) == (version, 77)
        assert header.clientId() == ("" if (key, version) == (7, 0) else "me")
        assert buffer.remaining() == 0
        sent = b"".join(encode_response(Request(key, version, 78, None, None), (b"",)))
        buffer = gateway.jvm.java.nio.ByteBuffer.wrap(sent)
        answer = common.requests.ResponseHeader.parse(buffer, api.responseHeaderVersion(version))
        assert answer.correlationId() == 78
        assert buffer.remaining() == 0


def test_error_codes_equal_those_of_kafka(gateway: JavaGateway) -> None:
    retriable = gateway.jvm.java.lang.Class.forName("org.apache.kafka.common.errors.RetriableException")
    theirs = {
        error.name(): (
            error.code(),
            error.exception() is not None and retriable.isInstance(error.exception()),
        )
        for error in gateway.jvm.org.apache.kafka.common.protocol.Errors.values()
    }
    ours = {error.name: (int(error), error.retriable) for error in ErrorCode}
    assert {name: of for name, of in ours.items() if name not in ERRORS_OF_4} == theirs
    assert ours.keys() >= ERRORS_OF_4
