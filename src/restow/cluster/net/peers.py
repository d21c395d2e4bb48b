"""A broker's requests to other brokers: one connection per peer, with requests in order.

A broker answers a connection's requests in order. So long waits (a follower's Fetch) and urgent requests (the
controller's) use separate `Peers`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from restow.wire.codec import MalformedResponse, encode_request, parse_response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from restow.cluster.security.peer_login import PeerLogin
    from restow.runtime.clock import Clock
    from restow.runtime.protocols import Connection, Network
    from restow.runtime.tls import TlsFiles
    from restow.wire.messages import Message
    from restow.wire.primitives import Buffer


_CONNECT_TIMEOUT_S = 10.0
_USED_PART = 0.8
"""Of a session, for new calls."""


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int


class _Asked(NamedTuple):
    api_key: int
    version: int
    answer: asyncio.Future[Message]


class Peers:
    """Calls to brokers by id. Connects on demand, and again after a lost connection."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        locate: Callable[[int], Awaitable[Address]],
        *,
        client_id: str,
        tls: TlsFiles | None = None,
        login: PeerLogin | None = None,
    ) -> None:
        """`locate` returns a broker's current address, or raises ConnectionError. `login` is for new
        connections.
        """
        self._network = network
        self._clock = clock
        self._locate = locate
        self._client_id = client_id
        self._tls = tls
        self._login = login
        self._links: dict[int, PeerLink] = {}
        self._connecting: dict[int, asyncio.Lock] = {}
        self._closed = False

    async def call(
        self,
        broker_id: int,
        api_key: int,
        version: int,
        body: Message | tuple[Buffer, ...],
        *,
        timeout_s: float = 30.0,
    ) -> Message:
        """Return the response. After ConnectionError or TimeoutError the outcome is unknown."""
        link = self._links[broker_id] if self.is_connected(broker_id) else await self._connect(broker_id)
        return await link.ask(api_key, version, body, timeout_s)

    def is_connected(self, broker_id: int) -> bool:
        link = self._links.get(broker_id)
        return link is not None and link.is_open and not link.is_ending

    def hang_up(self, broker_id: int) -> None:
        """Drop the connection to a peer; its pending calls get ConnectionError."""
        if (link := self._links.pop(broker_id, None)) is not None:
            link.close()

    def close(self) -> None:
        """Drop all connections for good."""
        self._closed = True
        for broker_id in tuple(self._links):
            self.hang_up(broker_id)

    async def _connect(self, broker_id: int) -> PeerLink:
        async with self._connecting.setdefault(broker_id, asyncio.Lock()):
            if self.is_connected(broker_id):
                return self._links[broker_id]
            address = await self._locate(broker_id)
            link = PeerLink(self._clock, self._client_id)
            try:
                await self._network.connect(*address, link, _CONNECT_TIMEOUT_S, tls=self._tls)
            except OSError as error:
                raise ConnectionError(
                    f"broker {broker_id} at {address.host}:{address.port}: {error}"
                ) from error
            if self._login is not None:
                try:
                    link.ends_after(await self._login.log_in(link))
                except BaseException:
                    link.close()
                    raise
            if self._closed:
                link.close()
                raise ConnectionError("this broker is stopping")
            if (old := self._links.get(broker_id)) is not None:
                old.close_when_answered()
            self._links[broker_id] = link
            return link


class PeerLink:
    """One connection to another broker."""

    def __init__(self, clock: Clock, client_id: str) -> None:
        self._clock = clock
        self._client_id = client_id
        self._connection: Connection | None = None
        self._asked: dict[int, _Asked] = {}
        self._next_id = 0
        self._ends_s: float | None = None
        self._is_replaced = False

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    @property
    def is_ending(self) -> bool:
        """Return whether the session is nearly over, so that a new connection should take its place."""
        return self._ends_s is not None and self._clock.monotonic_s() >= self._ends_s

    def ends_after(self, session_s: float | None) -> None:
        """Set how long the session lasts. Its last part is left for answers that are due."""
        self._ends_s = None if session_s is None else self._clock.monotonic_s() + session_s * _USED_PART

    def close_when_answered(self) -> None:
        """Close once there is no pending call, because another connection has taken this one's place."""
        self._is_replaced = True
        if not self._asked:
            self.close()

    async def ask(
        self, api_key: int, version: int, body: Message | tuple[Buffer, ...], timeout_s: float
    ) -> Message:
        """Send, then wait. Requests go out in the order of the calls."""
        if self._connection is None:
            raise ConnectionError("the connection is closed")
        number = self._next_id = (self._next_id + 1) & 0x7FFFFFFF
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._asked[number] = _Asked(api_key, version, answer)
        self._connection.send(*encode_request(api_key, version, number, self._client_id, body))
        timer = self._clock.call_later(timeout_s, lambda: self._give_up(answer, timeout_s))
        try:
            return await answer
        except asyncio.CancelledError:
            if self._asked.get(number) is not None:
                self._expect(number, api_key, version, timeout_s)
                number = 0
            raise
        finally:
            timer.cancel()
            self._asked.pop(number, None)
            if self._is_replaced and not self._asked:
                self.close()

    def _expect(self, number: int, api_key: int, version: int, timeout_s: float) -> None:
        """Go on to expect an answer for which its caller does not wait any more.

        If it does not come, the connection is dead. If callers always end before the time is up, as they do
        with a client that waits less long, nobody would notice otherwise.
        """
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._asked[number] = _Asked(api_key, version, answer)
        timer = self._clock.call_later(timeout_s, lambda: self._give_up(answer, timeout_s))

        def ended(_: asyncio.Future[Message]) -> None:
            timer.cancel()
            answer.exception()  # nobody waits for it

        answer.add_done_callback(ended)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._lost(ConnectionError("the connection was given up"))

    def opened(self, connection: Connection) -> None:
        self._connection = connection

    def frame(self, payload: bytes) -> None:
        number = int.from_bytes(payload[:4], "big", signed=True)
        asked = self._asked.pop(number, None)
        if asked is None or asked.answer.done():
            return
        try:
            asked.answer.set_result(parse_response(asked.api_key, asked.version, payload).body)
        except MalformedResponse as error:
            asked.answer.set_exception(ConnectionError(str(error)))
            self.close()

    def closed(self, reason: Exception | None) -> None:
        self._lost(ConnectionError(f"the connection was lost: {reason or 'the other side hung up'}"))

    def _lost(self, error: ConnectionError) -> None:
        self._connection = None
        asked, self._asked = self._asked, {}
        for each in asked.values():
            if not each.answer.done():
                each.answer.set_exception(error)

    def _give_up(self, answer: asyncio.Future[Message], timeout_s: float) -> None:
        """Close the connection after a timeout, because later responses wait behind the missing one."""
        if not answer.done():
            answer.set_exception(TimeoutError(f"no answer within {timeout_s:g} s"))
            self.close()
