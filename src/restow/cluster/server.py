"""The broker's side of its clients' connections: frames in, answers out, in the order of the requests.

A request is begun as soon as it has come, even while earlier ones of the same connection still wait (a Fetch
for data, a JoinGroup for its group); its answer is held back until theirs have gone. Handlers begin in order,
so what they do before they first wait happens in order, too.

What cannot be read, or is of a version that is not served, closes the connection, as Kafka does: there is no
answer that the peer could read. The one exception is ApiVersions, which a client asks before it can know.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, TypeAlias

from restow.cluster.handlers import HANDLERS, HangUp, served_versions
from restow.cluster.handlers.k18_api_versions import refusal
from restow.cluster.services import Context
from restow.cluster.store import SessionExpired
from restow.wire.codec import (
    API_VERSIONS,
    Codec,
    MalformedRequest,
    Request,
    UnsupportedVersion,
    encode_response,
)

if TYPE_CHECKING:
    from restow.cluster.services import Services
    from restow.runtime.network import Connection, Listener, Network
    from restow.wire.codec import Buffer

log = logging.getLogger(__name__)

MAX_FRAME_BYTES = 100 * 1024 * 1024
"""Kafka's default for socket.request.max.bytes."""
_MOST_WAITING = 64
_MOST_WAITING_BYTES = 128 * 1024 * 1024
_MOST_UNSENT_BYTES = 8 * 1024 * 1024

_Parts: TypeAlias = "tuple[Buffer, ...] | None"


async def serve(
    network: Network, host: str, port: int, services: Services, *, max_frame_bytes: int = MAX_FRAME_BYTES
) -> Listener:
    """Listen, and answer with all handlers that there are."""
    codec = Codec(served_versions())
    return await network.listen(host, port, lambda: ClientConnection(codec, services), max_frame_bytes)


class ClientConnection:
    """One client: its requests that are being answered, oldest first."""

    def __init__(self, codec: Codec, services: Services) -> None:
        self._codec = codec
        self._services = services
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[asyncio.Future[_Parts], int]] = deque()
        self._waiting_bytes = 0
        self._paused = False
        self._draining: asyncio.Task[None] | None = None

    def opened(self, connection: Connection) -> None:
        self._connection = connection
        self._context = Context(self._services, connection.peer)

    def frame(self, payload: bytes) -> None:
        try:
            request = self._codec.parse_request(payload)
        except MalformedRequest as error:
            log.info("closing the connection of %s: %s", self._connection.peer, error)
            self._connection.close()
            return
        except UnsupportedVersion as error:
            self._refuse(error)
            return
        self._await(self._loop.create_task(self._answer(request)), len(payload))

    def closed(self, reason: Exception | None) -> None:
        if reason is not None:
            log.info("the connection of %s was closed: %s", self._connection.peer, reason)
        for waiting, _ in self._waiting:
            waiting.cancel()
        self._waiting.clear()
        if self._draining is not None:
            self._draining.cancel()

    def _refuse(self, error: UnsupportedVersion) -> None:
        if error.api_key != API_VERSIONS:
            log.info("closing the connection of %s: %s", self._connection.peer, error)
            self._connection.close()
            return
        in_version_0 = Request(API_VERSIONS, 0, error.correlation_id, None, None)
        answer: asyncio.Future[_Parts] = self._loop.create_future()
        answer.set_result(encode_response(in_version_0, refusal()))
        self._await(answer, 0)

    async def _answer(self, request: Request) -> _Parts:
        body = await HANDLERS[request.api_key].handle(request, self._context)
        return None if body is None else encode_response(request, body)

    def _await(self, answer: asyncio.Future[_Parts], size: int) -> None:
        self._waiting.append((answer, size))
        self._waiting_bytes += size
        answer.add_done_callback(self._send_what_is_ready)
        if len(self._waiting) >= _MOST_WAITING or self._waiting_bytes >= _MOST_WAITING_BYTES:
            self._paused = True
            self._connection.pause_reading()

    def _send_what_is_ready(self, _: asyncio.Future[_Parts]) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0].done():
            answer, size = waiting.popleft()
            self._waiting_bytes -= size
            if answer.cancelled():
                self._connection.close()
                return
            if (error := answer.exception()) is not None:
                if isinstance(error, HangUp | SessionExpired):
                    log.info("closing the connection of %s: %s", self._connection.peer, error)
                else:
                    log.error("a request of %s failed", self._connection.peer, exc_info=error)
                self._connection.close()
                return
            if (parts := answer.result()) is not None:
                self._connection.send(*parts)
        if self._connection.unsent_bytes > _MOST_UNSENT_BYTES:
            self._wait_for_reader()
        elif self._paused and self._draining is None and len(waiting) < _MOST_WAITING // 2:
            self._resume()

    def _wait_for_reader(self) -> None:
        """Nothing more is read from a client that does not read."""
        if self._draining is None:
            self._paused = True
            self._connection.pause_reading()
            self._draining = self._loop.create_task(self._drain())

    async def _drain(self) -> None:
        await self._connection.drain()
        self._draining = None
        self._resume()

    def _resume(self) -> None:
        self._paused = False
        self._connection.resume_reading()
