"""The broker's side of its clients' connections: frames in, answers out, in the order of the requests.

A request is begun as soon as it has come, even while earlier ones of the same connection still wait (a Fetch
for data, a JoinGroup for its group); its answer is held back until theirs have gone. Handlers begin in order,
so what they do before they first wait happens in order, too.

What cannot be read, or is of a version that is not served, closes the connection, as Kafka does: there is no
answer that the peer could read. The one exception is ApiVersions, which a client asks before it can know.

Answers take memory until they are read. So a Fetch, whose answer may be large, is begun only when all before
it but one have been answered and the client has read most of that; and who lets nothing move is hung up on.
One may wait, because a follower ends the fetch that waits for data by the next one of its session. Requests
take memory until they are answered: all clients together may have so much (`backlog.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from restow.cluster.broker.services import RequestContext
from restow.cluster.handlers import HANDLERS, HangUp, served_versions
from restow.cluster.handlers.k18_api_versions import refusal
from restow.cluster.net.backlog import Backlog
from restow.cluster.net.idleness import IdleWatch
from restow.cluster.store import SessionExpired
from restow.wire.codec import (
    API_VERSIONS,
    FETCH,
    Codec,
    MalformedRequest,
    Request,
    UnsupportedVersion,
    encode_response,
)

if TYPE_CHECKING:
    from restow.cluster.broker.services import Services
    from restow.runtime.network import Connection, Listener, Network
    from restow.wire.codec import Buffer

log = logging.getLogger(__name__)

_MOST_WAITING = 64
_MOST_WAITING_BYTES = 128 * 1024 * 1024
_MOST_UNSENT_BYTES = 1024 * 1024

_Parts: TypeAlias = "tuple[Buffer, ...] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What is put up with from clients; the defaults are Kafka's."""

    max_frame_bytes: int = 100 * 1024 * 1024
    max_idle_ms: int = 600_000
    """A negative one is none."""
    max_backlog_bytes: int = 256 * 1024 * 1024
    """Of answers that clients have not read, and as much again of requests that wait. Not Kafka's."""


class _Waiting(NamedTuple):
    """A request that is being answered; `turn` is what it waits for before it begins, if it has to."""

    answer: asyncio.Future[_Parts]
    size: int
    turn: asyncio.Future[None] | None


async def serve(
    network: Network, host: str, port: int, services: Services, limits: ServerLimits | None = None
) -> Listener:
    """Listen, and answer with all handlers that there are."""
    codec = Codec(served_versions())
    limits = limits or ServerLimits()
    idle_ms = limits.max_idle_ms
    backlog = Backlog(limits.max_backlog_bytes)
    return await network.listen(
        host, port, lambda: ClientConnection(codec, services, backlog, idle_ms), limits.max_frame_bytes
    )


class ClientConnection:
    """One client: its requests that are being answered, oldest first."""

    def __init__(self, codec: Codec, services: Services, backlog: Backlog, max_idle_ms: int) -> None:
        self._codec = codec
        self._services = services
        self._backlog = backlog
        self._ready_bytes = 0
        self._counted_bytes = 0
        self._max_idle_ms = max_idle_ms
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._requests = 0
        self._watch: IdleWatch | None = None
        self._paused = False
        self._draining: asyncio.Task[None] | None = None

    def opened(self, connection: Connection) -> None:
        self._connection = connection
        self._context = RequestContext(self._services, connection.peer, self._backlog)
        if self._max_idle_ms >= 0:
            limit_s = max(self._max_idle_ms, 1) / 1000
            self._watch = IdleWatch(self._services.clock, limit_s, self._mark, connection.abort)

    def frame(self, payload: bytes) -> None:
        if not self._backlog.has_room_for(len(payload)):
            log.warning("closing the connection of %s: too much waits for answers", self._connection.peer)
            self._connection.close()
            return
        try:
            request = self._codec.parse_request(payload)
        except MalformedRequest as error:
            log.info("closing the connection of %s: %s", self._connection.peer, error)
            self._connection.close()
            return
        except UnsupportedVersion as error:
            self._refuse(error)
            return
        turn = None
        if request.api_key == FETCH and not self._is_nearly_all_read():
            turn = self._loop.create_future()
        self._await(self._loop.create_task(self._answer(request, turn)), len(payload), turn)

    def closed(self, reason: Exception | None) -> None:
        if reason is not None:
            log.info("the connection of %s was closed: %s", self._connection.peer, reason)
        if self._watch is not None:
            self._watch.stop()
        for waiting in self._waiting:
            waiting.answer.cancel()
        self._waiting.clear()
        self._backlog.waiting_bytes -= self._waiting_bytes
        self._waiting_bytes = 0
        if self._draining is not None:
            self._draining.cancel()
        self._ready_bytes = 0
        self._count(0)

    def _refuse(self, error: UnsupportedVersion) -> None:
        if error.api_key != API_VERSIONS:
            log.info("closing the connection of %s: %s", self._connection.peer, error)
            self._connection.close()
            return
        in_version_0 = Request(API_VERSIONS, 0, error.correlation_id, None, None)
        answer: asyncio.Future[_Parts] = self._loop.create_future()
        answer.set_result(encode_response(in_version_0, refusal()))
        self._await(answer, 0, None)

    async def _answer(self, request: Request, turn: asyncio.Future[None] | None) -> _Parts:
        if turn is not None:
            await turn
        body = await HANDLERS[request.api_key].handle(request, self._context)
        if body is None:
            return None
        parts = encode_response(request, body)
        if request.api_key == FETCH:
            self._ready_bytes += sum(map(len, parts))
            self._count(self._connection.unsent_bytes)
        return parts

    def _await(self, answer: asyncio.Future[_Parts], size: int, turn: asyncio.Future[None] | None) -> None:
        self._requests += 1
        self._waiting.append(_Waiting(answer, size, turn))
        self._waiting_bytes += size
        self._backlog.waiting_bytes += size
        answer.add_done_callback(self._send_what_is_ready)
        if len(self._waiting) >= _MOST_WAITING or self._waiting_bytes >= _MOST_WAITING_BYTES:
            self._paused = True
            self._connection.pause_reading()

    def _send_what_is_ready(self, _: asyncio.Future[_Parts]) -> None:
        waiting = self._waiting
        while waiting and waiting[0].answer.done():
            answer = waiting[0].answer
            size = waiting.popleft().size
            self._waiting_bytes -= size
            self._backlog.waiting_bytes -= size
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
                if self._ready_bytes:
                    self._ready_bytes = max(self._ready_bytes - sum(map(len, parts)), 0) if waiting else 0
        unsent_bytes = self._connection.unsent_bytes
        self._count(unsent_bytes)
        if unsent_bytes > _MOST_UNSENT_BYTES:
            self._wait_for_reader()
        else:
            self._begin_next()
            if self._paused and self._draining is None and len(waiting) < _MOST_WAITING // 2:
                self._resume()

    def _count(self, unsent_bytes: int) -> None:
        """What is unread here is what has not gone out, and the fetches that are answered but not sent."""
        unread_bytes = unsent_bytes + self._ready_bytes
        self._backlog.unread_bytes += unread_bytes - self._counted_bytes
        self._counted_bytes = unread_bytes

    def _is_nearly_all_read(self) -> bool:
        return len(self._waiting) <= 1 and self._connection.unsent_bytes <= _MOST_UNSENT_BYTES

    def _begin_next(self) -> None:
        """If the eldest request waits for its turn, this is it."""
        if self._waiting and (turn := self._waiting[0].turn) is not None and not turn.done():
            turn.set_result(None)

    def _mark(self) -> object:
        """What changes while anything moves. It may stay while we owe an answer and all others are read."""
        unsent_bytes = self._connection.unsent_bytes
        if self._waiting and not unsent_bytes:
            return None
        return self._requests, len(self._waiting), unsent_bytes

    def _wait_for_reader(self) -> None:
        """Nothing more is read from a client that does not read."""
        if self._draining is None:
            self._paused = True
            self._connection.pause_reading()
            self._draining = self._loop.create_task(self._drain())

    async def _drain(self) -> None:
        await self._connection.drain()
        self._draining = None
        self._count(self._connection.unsent_bytes)
        self._begin_next()
        self._resume()

    def _resume(self) -> None:
        self._paused = False
        self._connection.resume_reading()
