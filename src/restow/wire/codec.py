"""Requests and responses as bytes, and back.

    Codec(versions).parse_request(payload)  ──►  Request           what a client sent
    encode_response(request, body)          ──►  parts of a frame  what it gets
    encode_request(key, version, …)         ──►  parts of a frame  what one broker asks another
    parse_response(key, version, payload)   ──►  Response          what that one answers

Which versions are spoken is the caller's to say; which exist is the protocol's. Frames come from anybody, so
whatever cannot be read ends in MalformedRequest and nothing else.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from restow.errors import RestowError
from restow.wire.messages import REQUESTS, RESPONSES, Message
from restow.wire.reader import Unreadable, reader_of, skip_tags

if TYPE_CHECKING:
    from collections.abc import Mapping

Buffer: TypeAlias = bytes | bytearray | memoryview

PRODUCE = 0
FETCH = 1
API_VERSIONS = 18
_CONTROLLED_SHUTDOWN = 7

_HEADER = struct.Struct(">hhi")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_NO_TAGS = b"\x00"
_CANNOT_BE_READ = (ValueError, IndexError, struct.error)


class MalformedRequest(RestowError):
    """Bytes that are no request. There is no answer to it; the connection is closed."""


class MalformedResponse(RestowError):
    """Bytes that are no response to what was asked."""


class UnsupportedVersion(RestowError):
    """A request of a version that is not spoken here, or of a key that is not served."""

    def __init__(self, api_key: int, version: int, correlation_id: int) -> None:
        super().__init__(f"request {api_key} of version {version} is not served here")
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id


@dataclass(frozen=True, slots=True)
class Request:
    """A request with its header. Of the body's class see `messages`."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: Message


@dataclass(frozen=True, slots=True)
class Response:
    """A response with what its header says."""

    correlation_id: int
    body: Message


class Codec:
    """Reads the requests of the versions it is given, by API key.

    Requests other than Produce may be `max_plain_bytes` long and no longer, because of a field that takes two
    bytes in a frame comes an object that takes a hundred.
    """

    def __init__(self, versions: Mapping[int, range], *, max_plain_bytes: int = 16 * 1024 * 1024) -> None:
        self._versions = dict(versions)
        self._max_plain_bytes = max_plain_bytes

    def parse_request(self, payload: bytes) -> Request:
        """The request in a frame. Raises MalformedRequest or UnsupportedVersion."""
        try:
            api_key, version, correlation_id = _HEADER.unpack_from(payload)
        except struct.error:
            raise MalformedRequest(f"a frame of {len(payload)} bytes is too short for a request") from None
        if version not in self._versions.get(api_key, ()):
            raise UnsupportedVersion(api_key, version, correlation_id)
        if api_key != PRODUCE and len(payload) > self._max_plain_bytes:
            raise MalformedRequest(
                f"request {api_key} of {len(payload)} bytes; {self._max_plain_bytes} may come"
            )
        try:
            return _read_request(payload, api_key, version, correlation_id)
        except _CANNOT_BE_READ as error:
            raise MalformedRequest(f"request {api_key} v{version} cannot be read: {error}") from error


def encode_response(request: Request, body: Message | tuple[Buffer, ...]) -> tuple[Buffer, ...]:
    """The parts of a frame that answers this request, ready for `Connection.send`.

    A tuple is a body that somebody has encoded already: one of the hot paths.
    """
    flexible = RESPONSES[request.api_key].flexible_version_q(request.api_version)
    header = _INT32.pack(request.correlation_id)
    if flexible and request.api_key != API_VERSIONS:
        header += _NO_TAGS
    if isinstance(body, tuple):
        return (header, *body)
    return (header, body.encode(version=request.api_version))


def encode_request(
    api_key: int, version: int, correlation_id: int, client_id: str | None, body: Message | tuple[Buffer, ...]
) -> tuple[Buffer, ...]:
    """The parts of a frame that asks this, ready for `Connection.send`."""
    header = _HEADER.pack(api_key, version, correlation_id)
    if _has_client_id(api_key, version):
        name = None if client_id is None else client_id.encode()
        header += _INT16.pack(-1) if name is None else _INT16.pack(len(name)) + name
    if REQUESTS[api_key].flexible_version_q(version):
        header += _NO_TAGS
    if isinstance(body, tuple):
        return (header, *body)
    return (header, body.encode(version=version))


def parse_response(api_key: int, version: int, payload: bytes) -> Response:
    """The response in a frame to a request of that key and version. Raises MalformedResponse."""
    message = RESPONSES[api_key]
    try:
        (correlation_id,) = _INT32.unpack_from(payload)
        at = _INT32.size
        if message.flexible_version_q(version) and api_key != API_VERSIONS:
            at = skip_tags(payload, at)
        body, _ = reader_of(message, version)(payload, at)
    except _CANNOT_BE_READ as error:
        raise MalformedResponse(f"the response to {api_key} v{version} cannot be read: {error}") from error
    return Response(correlation_id, body)


def _read_request(payload: bytes, api_key: int, version: int, correlation_id: int) -> Request:
    message = REQUESTS[api_key]
    at = _HEADER.size
    client_id = None
    if _has_client_id(api_key, version):
        (length,) = _INT16.unpack_from(payload, at)
        at += _INT16.size
        if length >= 0:
            if length > len(payload) - at:
                raise Unreadable("the client id is cut off")
            client_id = payload[at : at + length].decode()
            at += length
    if message.flexible_version_q(version):
        at = skip_tags(payload, at)
    body, _ = reader_of(message, version)(payload, at)
    return Request(api_key, version, correlation_id, client_id, body)


def _has_client_id(api_key: int, version: int) -> bool:
    """Every header but one: ControlledShutdown is older than client ids."""
    return api_key != _CONTROLLED_SHUTDOWN or version > 0
