"""Requests and responses as bytes, and back.

    Codec(versions).parse_request(payload)  ──►  Request           a client's request
    encode_response(request, body)          ──►  parts of a frame  the response to it
    encode_request(key, version, …)         ──►  parts of a frame  a broker's request to another
    parse_response(key, version, payload)   ──►  Response          the response to that

The caller chooses the supported versions; the protocol defines the existing ones. Frames come from untrusted
clients, so anything unreadable raises MalformedRequest and nothing else.
"""

from __future__ import annotations

import struct
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from restow.errors import RestowError
from restow.wire.messages import REQUESTS, RESPONSES, Message
from restow.wire.primitives import INT16, INT32, NO_TAGS, Buffer
from restow.wire.reader import Unreadable, reader_of, skip_tags
from restow.wire.writer import written

if TYPE_CHECKING:
    from collections.abc import Mapping

PRODUCE = 0
FETCH = 1
API_VERSIONS = 18
_CONTROLLED_SHUTDOWN = 7

_HEADER = struct.Struct(">hhi")
_CANNOT_BE_READ = (ValueError, IndexError, struct.error)


class MalformedRequest(RestowError):
    """Bytes that are no request. The connection is closed without a response."""


class MalformedResponse(RestowError):
    """Bytes that are no response to the request."""


class UnsupportedVersion(RestowError):
    """An unsupported version of a request, or an unsupported key."""

    def __init__(self, api_key: int, version: int, correlation_id: int) -> None:
        super().__init__(f"request {api_key} of version {version} is not served here")
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id


class Request(NamedTuple):
    """A request with its header. `messages` has the body's class."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: Message


class Response(NamedTuple):
    """A response with its header."""

    correlation_id: int
    body: Message


class Codec:
    """Reads requests of the given versions, by API key.

    Requests other than Produce have at most `max_plain_bytes`, because a field of two bytes in a frame
    becomes an object of a hundred bytes.
    """

    def __init__(self, versions: Mapping[int, range], *, max_plain_bytes: int = 16 * 1024 * 1024) -> None:
        self._versions = dict(versions)
        self._max_plain_bytes = max_plain_bytes

    def parse_request(self, payload: bytes) -> Request:
        """Return the request in a frame. Raises MalformedRequest or UnsupportedVersion."""
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
    """Return the parts of a response frame, ready for `Connection.send`.

    A tuple is an already encoded body from one of the hot paths.
    """
    header = INT32.pack(request.correlation_id)
    if _response_has_tags(request.api_key, request.api_version):
        header += NO_TAGS
    if isinstance(body, tuple):
        return (header, *body)
    return (header, written(body, request.api_version))


def encode_request(
    api_key: int, version: int, correlation_id: int, client_id: str | None, body: Message | tuple[Buffer, ...]
) -> tuple[Buffer, ...]:
    """Return the parts of a request frame, ready for `Connection.send`."""
    header = _HEADER.pack(api_key, version, correlation_id) + _end_of_header(api_key, version, client_id)
    if isinstance(body, tuple):
        return (header, *body)
    return (header, written(body, version))


def parse_response(api_key: int, version: int, payload: bytes) -> Response:
    """Return the response to a request of that key and version. Raises MalformedResponse."""
    try:
        (correlation_id,) = INT32.unpack_from(payload)
        at = INT32.size
        if _response_has_tags(api_key, version):
            at = skip_tags(payload, at)
        body, _ = reader_of(RESPONSES[api_key], version)(payload, at)
    except _CANNOT_BE_READ as error:
        raise MalformedResponse(f"the response to {api_key} v{version} cannot be read: {error}") from error
    return Response(correlation_id, body)


def _read_request(payload: bytes, api_key: int, version: int, correlation_id: int) -> Request:
    at = _HEADER.size
    client_id = None
    if _has_client_id(api_key, version):
        (length,) = INT16.unpack_from(payload, at)
        at += INT16.size
        if length >= 0:
            if length > len(payload) - at:
                raise Unreadable("the client id is cut off")
            client_id = payload[at : at + length].decode()
            at += length
    if _request_has_tags(api_key, version):
        at = skip_tags(payload, at)
    body, _ = reader_of(REQUESTS[api_key], version)(payload, at)
    return Request(api_key, version, correlation_id, client_id, body)


def _has_client_id(api_key: int, version: int) -> bool:
    """Return whether the header has a client id. Only ControlledShutdown version 0 has none."""
    return api_key != _CONTROLLED_SHUTDOWN or version > 0


@lru_cache(maxsize=1024)
def _end_of_header(api_key: int, version: int, client_id: str | None) -> bytes:
    """Return what follows the correlation id in the header of a request. It repeats, so it is cached."""
    end = b""
    if _has_client_id(api_key, version):
        name = None if client_id is None else client_id.encode()
        end = INT16.pack(-1) if name is None else INT16.pack(len(name)) + name
    return end + NO_TAGS if _request_has_tags(api_key, version) else end


@cache
def _request_has_tags(api_key: int, version: int) -> bool:
    """Return whether the header of the request ends in tagged fields."""
    return bool(REQUESTS[api_key].flexible_version_q(version))


@cache
def _response_has_tags(api_key: int, version: int) -> bool:
    """Return whether the header of the response ends in tagged fields. That of ApiVersions never does."""
    return api_key != API_VERSIONS and bool(RESPONSES[api_key].flexible_version_q(version))
