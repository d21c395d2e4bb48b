"""Server side of client connections: requests in, responses out in the same order.

A handler starts as soon as its request is read, even while earlier requests of the connection still wait (a
Fetch for data, a JoinGroup for its group); its response is held back until theirs are sent. Handlers start in
order, so whatever they do before they first wait happens in order, too.

An unreadable request or an unsupported version closes the connection, as in Kafka, because the client could
not read a response. ApiVersions is the exception: a client sends it before it knows the versions.

Responses take memory until the client reads them. So a Fetch starts only when at most one earlier request is
unanswered and the client has read most of the earlier responses; idle connections are closed. One request may
wait, because a follower ends its waiting fetch by sending the next one of the session. Requests take memory
until they are answered: `backlog.py` limits their total over all clients.

If there are quotas of clients, `within_quotas.py` counts what requests use, and a connection that has to wait
is not read meanwhile.

A broker that stood still for longer than its session's timeout may no longer lead anything, and would tell
producers that their sequences have gaps. So it asks the store before it answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from restow._frozen import frozen
from restow.cluster.broker.services import RequestContext
from restow.cluster.handlers import HANDLERS, HangUp, served_versions
from restow.cluster.handlers.k18_api_versions import refusal
from restow.cluster.net.backlog import Backlog
from restow.cluster.net.idleness import IdleWatch
from restow.cluster.net.within_quotas import answer_within_quotas
from restow.cluster.security import ANONYMOUS
from restow.cluster.security.certificates import UnreadableCertificate, principal_of
from restow.cluster.security.login import MAX_FRAME_BYTES, SASL_AUTHENTICATE, SASL_HANDSHAKE, SaslLogin
from restow.cluster.security.principal_rules import NoRuleMatches
from restow.cluster.security.refusal import SaslRefused
from restow.cluster.store import SessionExpired, StoreError
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
    from collections.abc import Mapping

    from restow.cluster.broker.services import Services
    from restow.cluster.handlers import Handler
    from restow.cluster.security import Principal
    from restow.cluster.security.login import LoginParts
    from restow.cluster.security.principal_rules import PrincipalRules
    from restow.runtime.clock import Timer
    from restow.runtime.protocols import Connection, Listener, Network
    from restow.runtime.tls import TlsFiles
    from restow.wire.primitives import Buffer

log = logging.getLogger(__name__)

_MOST_WAITING = 64
_MOST_WAITING_BYTES = 128 * 1024 * 1024
_MOST_UNSENT_BYTES = 1024 * 1024

_Parts: TypeAlias = "tuple[Buffer, ...] | None"


@frozen
class ServerLimits:
    """Limits for clients; the defaults are Kafka's."""

    max_frame_bytes: int = 100 * 1024 * 1024
    max_idle_ms: int = 600_000
    """Negative means no limit."""
    max_backlog_bytes: int = 256 * 1024 * 1024
    """Limit of unread response bytes, and again of waiting request bytes. Not a Kafka config."""


@frozen
class Door:
    """A listener's name, and how its clients say who they are."""

    name: str = "PLAINTEXT"
    logins: LoginParts | None = None
    """Set if clients have to log in."""
    tls: TlsFiles | None = None
    rules: PrincipalRules | None = None
    """Set if clients are named by their certificates."""


class _Waiting(NamedTuple):
    """A request without a response yet; `turn` is set if its start must wait."""

    answer: asyncio.Future[_Parts]
    size: int
    turn: asyncio.Future[None] | None


async def serve(
    network: Network,
    host: str,
    port: int,
    services: Services,
    limits: ServerLimits | None = None,
    handlers: Mapping[int, Handler] = HANDLERS,
    *,
    door: Door | None = None,
) -> Listener:
    """Listen, and answer with these handlers, which are looked up anew for every request.

    `door` is the listener; without it clients come in as they are.
    """
    codec = Codec(served_versions())
    limits = limits or ServerLimits()
    idle_ms = limits.max_idle_ms
    backlog = Backlog(limits.max_backlog_bytes)
    numbers = count()
    door = door or Door()
    return await network.listen(
        host,
        port,
        lambda: ClientConnection(codec, services, backlog, idle_ms, handlers, next(numbers), door),
        limits.max_frame_bytes,
        tls=door.tls,
    )


class ClientConnection:
    """One client and its pending requests, oldest first."""

    def __init__(
        self,
        codec: Codec,
        services: Services,
        backlog: Backlog,
        max_idle_ms: int,
        handlers: Mapping[int, Handler],
        number: int,
        door: Door,
    ) -> None:
        self._handlers, self._number = handlers, number
        self._door = door
        self._login: SaslLogin | None = None
        self.client_id: str | None = None
        """The client id of the last request."""
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
        self._throttled: Timer | None = None
        """Set while a quota keeps the connection from being read."""
        self._throttled_until_s = 0.0

    @property
    def has_asked(self) -> bool:
        """Return whether a request has come, so that the client id is known."""
        return self._requests > 0

    def opened(self, connection: Connection) -> None:
        self._connection = connection
        door = self._door
        if door.logins is not None:
            self._login = SaslLogin(door.logins, connection.peer, self._logged_in)
        principal = ANONYMOUS
        if door.rules is not None:
            try:
                principal = principal_of(connection.certificate, door.rules)
            except (UnreadableCertificate, NoRuleMatches) as error:
                connection.abort(error)
        self._context = RequestContext(
            self._services,
            connection.peer,
            self._backlog,
            self._number,
            listener=door.name,
            login=self._login,
            principal=principal,
        )
        if self._max_idle_ms >= 0:
            limit_s = max(self._max_idle_ms, 1) / 1000
            self._watch = IdleWatch(self._services.clock, limit_s, self._mark, connection.abort)

    def frame(self, payload: bytes) -> None:
        if not self._backlog.has_room_for(len(payload)):
            log.warning("closing the connection of %s: too many waiting request bytes", self._connection.peer)
            self._connection.close()
            return
        if self._login is not None and not self._may_come_in(payload, self._login):
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
        self.client_id = request.client_id
        turn = None
        if request.api_key == FETCH and not self._is_nearly_all_read():
            turn = self._loop.create_future()
        size = len(payload)
        self._await(self._loop.create_task(self._answer(request, size, turn)), size, turn)

    def _may_come_in(self, payload: bytes, login: SaslLogin) -> bool:
        """Return whether the frame is a request that the client may send now. Tokens are answered here.

        Until a login is done, one request is read at a time.
        """
        api_key = int.from_bytes(payload[:2], "big", signed=True)
        is_large = not login.is_done and len(payload) > MAX_FRAME_BYTES
        if is_large or not (login.takes_tokens or login.may_ask(api_key)):
            log.info("closing the connection of %s: it is not logged in", self._connection.peer)
            self._connection.close()
            return False
        if login.takes_tokens:
            self._await(self._loop.create_task(self._answer_token(payload, login)), len(payload), None)
        if not login.is_done or api_key in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            self._paused = True
            self._connection.pause_reading()
        return not login.takes_tokens

    async def _answer_token(self, token: bytes, login: SaslLogin) -> _Parts:
        try:
            answer, _ = await login.authenticate(token)
        except SaslRefused as refused:
            raise HangUp(str(refused)) from refused
        return (answer,)

    def _logged_in(self, principal: Principal) -> None:
        self._context = replace(self._context, principal=principal)

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
        if self._throttled is not None:
            self._throttled.cancel()
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

    async def _answer(self, request: Request, size: int, turn: asyncio.Future[None] | None) -> _Parts:
        if turn is not None:
            await turn
        if self._services.store.in_doubt:
            await self._confirm_session()
        handler = self._handlers[request.api_key]
        if self._services.client_quotas.is_on:
            parts, throttle_ms = await answer_within_quotas(handler, request, size, self._context)
            if throttle_ms:
                self._throttle(throttle_ms / 1000)
        else:
            body = await handler.handle(request, self._context)
            parts = None if body is None else encode_response(request, body)
        if parts is not None and request.api_key == FETCH:
            self._ready_bytes += sum(map(len, parts))
            self._count(self._connection.unsent_bytes)
        return parts

    async def _confirm_session(self) -> None:
        """Wait until the store has answered: after a standstill others may lead what this broker led."""
        try:
            await self._services.store.confirm()
        except StoreError as error:
            raise HangUp(f"this broker may have lost its session: {error}") from error

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
                if self._login is not None and self._login.has_failed:
                    self._connection.close()
                    return
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
        """Count the unsent bytes and the fetch responses that wait for earlier ones."""
        unread_bytes = unsent_bytes + self._ready_bytes
        self._backlog.unread_bytes += unread_bytes - self._counted_bytes
        self._counted_bytes = unread_bytes

    def _is_nearly_all_read(self) -> bool:
        return len(self._waiting) <= 1 and self._connection.unsent_bytes <= _MOST_UNSENT_BYTES

    def _begin_next(self) -> None:
        """Start the oldest request if it waits for its turn."""
        if self._waiting and (turn := self._waiting[0].turn) is not None and not turn.done():
            turn.set_result(None)

    def _mark(self) -> object:
        """Return a value that changes with any activity, or None while only this broker is due to act."""
        unsent_bytes = self._connection.unsent_bytes
        if self._throttled is not None or (self._waiting and not unsent_bytes):
            return None
        return self._requests, len(self._waiting), unsent_bytes

    def _wait_for_reader(self) -> None:
        """Stop reading from a client that does not read its responses."""
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

    def _throttle(self, seconds: float) -> None:
        """Do not read for so long. Of several requests, the one with the latest end counts."""
        clock = self._services.clock
        until_s = clock.monotonic_s() + seconds
        if self._throttled is not None:
            if until_s <= self._throttled_until_s:
                return
            self._throttled.cancel()
        self._paused, self._throttled_until_s = True, until_s
        self._connection.pause_reading()
        self._throttled = clock.call_later(seconds, self._end_throttle)

    def _end_throttle(self) -> None:
        self._throttled = None
        if self._draining is None and len(self._waiting) < _MOST_WAITING // 2:
            self._resume()

    def _resume(self) -> None:
        if self._throttled is None:
            self._paused = False
            self._connection.resume_reading()
