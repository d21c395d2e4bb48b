"""Decodes frames with other parsers, kio's and Java's, and encodes them again."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from kio.index import UnknownAPIKey, UnknownEntity, load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from restow.cluster.handlers import served_versions

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

    from tests.oracle.recording import Exchange


BETWEEN_BROKERS = {4, 5, 6, 7}
"""What our controller and brokers ask each other."""
NOT_IN_KIO = {(0, 0), (0, 1), (0, 2), (29, 0), (30, 0), (31, 0), (56, 0), (56, 1)} | {
    (key, version) for key in BETWEEN_BROKERS for version in served_versions()[key]
}
"""Versions that Kafka 4 has dropped; kio is made from its definitions."""
NOT_IN_3_9 = {(35, 5), (45, 1), (68, 1), (69, 1)}
"""Messages that only later Kafka versions have."""


class NotKnownThere(Exception):
    """The parser has no such message."""


def kio_message(schema: Any, encoded: bytes) -> bytes:
    """Return a message, without header, decoded and encoded by kio."""
    message, size = entity_reader(schema)(encoded, 0)
    assert size == len(encoded), f"kio leaves {len(encoded) - size} bytes unread"
    written = BytesIO()
    entity_writer(schema)(written, message)
    return written.getvalue()


def kio_response_schema(api_key: int, version: int) -> Any:
    try:
        return load_response_schema(api_key, version)
    except (UnknownAPIKey, UnknownEntity):
        raise NotKnownThere from None


def kio_response(api_key: int, version: int, frame: bytes) -> bytes:
    """Return a response with its header, decoded and encoded by kio."""
    return _kio(kio_response_schema(api_key, version), frame)


def kio_request(api_key: int, version: int, frame: bytes) -> bytes:
    """Return a request with its header, decoded and encoded by kio."""
    try:
        schema = load_request_schema(api_key, version)
    except (UnknownAPIKey, UnknownEntity):
        raise NotKnownThere from None
    return _kio(schema, frame)


def _kio(schema: Any, frame: bytes) -> bytes:
    header_schema = schema.__header_schema__
    header, size = entity_reader(header_schema)(frame, 0)
    written = BytesIO()
    entity_writer(header_schema)(written, header)
    return written.getvalue() + kio_message(schema, frame[size:])


class JavaFrames:
    """Kafka's own requests and responses."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._wrap = gateway.jvm.java.nio.ByteBuffer.wrap
        self._requests = gateway.jvm.org.apache.kafka.common.requests
        self._common = gateway.jvm.org.apache.kafka.common

    def __repr__(self) -> str:
        return "JavaFrames()"

    def response(self, exchange: Exchange) -> bytes:
        """Return the response decoded like in Kafka's clients, and encoded again with its header."""
        self._check_known(exchange)
        header = self._requests.RequestHeader.parse(self._wrap(exchange.request))
        version = header.apiVersion()
        buffer = self._wrap(exchange.response)
        response = self._requests.AbstractResponse.parseResponse(buffer, header)
        assert buffer.remaining() == 0, f"Kafka leaves {buffer.remaining()} bytes unread"
        answered = self._requests.ResponseHeader.parse(
            self._wrap(exchange.response), header.apiKey().responseHeaderVersion(version)
        )
        return self._written(answered.data(), answered.headerVersion(), response.data(), version)

    def _check_known(self, exchange: Exchange) -> None:
        if not self._common.protocol.ApiKeys.forId(exchange.api_key).isVersionSupported(exchange.version):
            raise NotKnownThere

    def request(self, exchange: Exchange) -> bytes:
        """Return the request decoded like in Kafka's brokers, and encoded again with its header."""
        buffer = self._wrap(exchange.request)
        header = self._requests.RequestHeader.parse(buffer)
        version = header.apiVersion()
        read = self._requests.AbstractRequest.parseRequest(header.apiKey(), version, buffer)
        asked = read.getClass().getField("request").get(read)
        assert buffer.remaining() == 0, f"Kafka leaves {buffer.remaining()} bytes unread"
        return self._written(header.data(), header.headerVersion(), asked.data(), version)

    def _written(self, header: Any, header_version: int, body: Any, version: int) -> bytes:
        written = self._requests.RequestUtils.serialize(header, header_version, body, version)
        return bytes(written.array())[: written.limit()]
