"""Answers within the quotas of clients: counts what a request uses, and says how long its client has to wait.

    Produce    the bytes of the request            producer_byte_rate
    Fetch      the bytes of the response           consumer_byte_rate
    any        the time that its handler works     request_percentage, of one thread

As in Kafka (KIP-219), the response names the time and is sent at once, and then the connection is not read
for so long. A consumer that has used up its quota gets an empty response instead of the records, and asks
again for the same. Requests between brokers count for nothing.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from restow.cluster.handlers.k01_fetch import replica_id_of
from restow.wire.codec import FETCH, PRODUCE, encode_response
from restow.wire.fetch import encode_fetch_response
from restow.wire.messages import RESPONSES
from restow.wire.reader import reader_of
from restow.wire.writer import written

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from typing import Self

    from restow.cluster.broker.services import RequestContext
    from restow.cluster.handlers import Answer, Handler
    from restow.cluster.quotas.clients import QuotasOfClient
    from restow.runtime.clock import Clock
    from restow.wire.codec import Request
    from restow.wire.primitives import Buffer

_BETWEEN_BROKERS = frozenset({4, 5, 6, 7, 27, 56, 67})
_ADD_PARTITIONS_TO_TXN, _FIRST_BETWEEN_BROKERS = 24, 4
_FIRST_WITH_SESSION = 7
_START = struct.Struct(">ihi")
"""Throttle time, error and session id, with which a Fetch response begins."""


class WithinQuotas(NamedTuple):
    """A response, and for how long its client is throttled."""

    parts: tuple[Buffer, ...] | None
    throttle_ms: int = 0


class _Timed:
    """Runs a handler and measures how long it works, without the time in which it waits for something."""

    def __init__(self, work: Awaitable[Answer], clock: Clock) -> None:
        self._inner: Any = work.__await__()
        self._clock = clock
        self.seconds = 0.0

    def __await__(self) -> Generator[Any, Any, Answer]:
        return self  # type: ignore[return-value]  # await needs no more of a generator than what is below

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        return self._measured(self._inner.send, value)

    def throw(self, *error: Any) -> Any:
        return self._measured(self._inner.throw, *error)

    def _measured(self, go_on: Callable[..., Any], *values: Any) -> Any:
        began_s = self._clock.monotonic_s()
        try:
            return go_on(*values)
        finally:
            self.seconds += self._clock.monotonic_s() - began_s


async def answer_within_quotas(
    handler: Handler, request: Request, size: int, context: RequestContext
) -> WithinQuotas:
    """Handle a request of that many bytes, and throttle its client if a quota says so."""
    quotas = context.broker.client_quotas.of(context.principal.name, request.client_id or "")
    if not any(quotas) or _is_between_brokers(request):
        plain = await handler.handle(request, context)
        return WithinQuotas(None if plain is None else encode_response(request, plain))
    if request.api_key == FETCH and quotas.fetch is not None:
        # More would be too much even for a client that was idle, and so would never be sent.
        request.body.max_bytes = min(request.body.max_bytes, quotas.fetch.most_at_once)
        request.body.min_bytes = min(request.body.min_bytes, request.body.max_bytes)
    timed = _Timed(handler.handle(request, context), context.broker.clock)
    body: Answer = await timed
    throttle_ms = 0
    if quotas.request is not None and body is not None:
        throttle_ms = quotas.request.note(timed.seconds * 100)
    if request.api_key == FETCH and body is not None:
        return _fetched(request, body, throttle_ms, quotas, context)
    if request.api_key == PRODUCE and quotas.produce is not None:
        throttle_ms = max(throttle_ms, quotas.produce.note(size))
    if body is None:
        return WithinQuotas(None, throttle_ms)
    if throttle_ms:
        body = _read(request, body)
        if hasattr(body, "throttle_time_ms"):
            body.throttle_time_ms = throttle_ms
    return WithinQuotas(encode_response(request, body), throttle_ms)


def _fetched(
    request: Request, body: Any, throttle_ms: int, quotas: QuotasOfClient, context: RequestContext
) -> WithinQuotas:
    """Return the records, or an empty response that is as if they had not been read."""
    version = request.api_version
    encoded = body if isinstance(body, tuple) else (written(body, version),)
    parts = encode_response(request, encoded)
    size = sum(map(len, parts))
    if quotas.fetch is not None:
        throttle_ms = max(throttle_ms, quotas.fetch.note(size))
    if not throttle_ms:
        return WithinQuotas(parts)
    if quotas.fetch is not None:
        quotas.fetch.take_back(size)
    error_code = session_id = 0
    if version >= _FIRST_WITH_SESSION:
        _, error_code, session_id = _START.unpack_from(encoded[0])
        session_id = context.broker.replicas.sessions.take_back_answer(session_id)
    empty = encode_fetch_response(
        version, (), throttle_time_ms=throttle_ms, error_code=error_code, session_id=session_id
    )
    return WithinQuotas(encode_response(request, empty), throttle_ms)


def _is_between_brokers(request: Request) -> bool:
    key = request.api_key
    if key == FETCH:
        return replica_id_of(request.body, request.api_version) >= 0
    if key == _ADD_PARTITIONS_TO_TXN:
        return request.api_version >= _FIRST_BETWEEN_BROKERS
    return key in _BETWEEN_BROKERS


def _read(request: Request, body: Any) -> Any:
    """Return a response as an object, of which some are made as bytes."""
    if isinstance(body, tuple):
        body, _ = reader_of(RESPONSES[request.api_key], request.api_version)(b"".join(body), 0)
    return body
