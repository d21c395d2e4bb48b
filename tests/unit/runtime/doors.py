"""Both ends of connections for tests: recording handlers, and a listener."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

from restow.runtime.network import SystemNetwork

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.runtime.protocols import Connection

HOST = "127.0.0.1"
MAX_FRAME = 1024 * 1024


class Recorder:
    """A handler that records its events, and can act at every frame."""

    def __init__(self, at_frame: Callable[[Recorder, bytes], None] | None = None) -> None:
        self.connection: Any = None
        self.frames: list[bytes] = []
        self.reason: Exception | None = None
        self.times_closed = 0
        self.is_open = asyncio.Event()
        self.is_closed = asyncio.Event()
        self._at_frame = at_frame
        self._news = asyncio.Event()

    def opened(self, connection: Connection) -> None:
        self.connection = connection
        self.is_open.set()

    def frame(self, payload: bytes) -> None:
        self.frames.append(payload)
        self._news.set()
        if self._at_frame is not None:
            self._at_frame(self, payload)

    def closed(self, reason: Exception | None) -> None:
        self.reason = reason
        self.times_closed += 1
        self.is_closed.set()

    async def until(self, count: int) -> list[bytes]:
        while len(self.frames) < count:
            self._news.clear()
            await self._news.wait()
        return self.frames


class Door:
    """A listener, the handlers of its connections, and raw client sockets."""

    def __init__(
        self, at_frame: Callable[[Recorder, bytes], None] | None = None, *, port: int = 0, **limits: int
    ) -> None:
        self.network = SystemNetwork(**limits)
        self._port = port
        self.came: list[Recorder] = []
        self._at_frame = at_frame

    def _make(self) -> Recorder:
        self.came.append(Recorder(self._at_frame))
        return self.came[-1]

    async def __aenter__(self) -> Door:
        self.listener = await self.network.listen(HOST, self._port, self._make, MAX_FRAME)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.listener.close()

    async def connect(self, handler: Recorder | None = None) -> tuple[Any, Recorder]:
        """Connect and return when both ends are open."""
        handler, already = handler or Recorder(), len(self.came)
        connection = await self.network.connect(HOST, self.listener.port, handler, 60)
        await self._next(already)
        return connection, handler

    async def knock(self) -> tuple[socket.socket, Recorder]:
        """Return a raw socket and the handler at its other end."""
        already = len(self.came)
        raw = socket.create_connection((HOST, self.listener.port))
        return raw, await self._next(already)

    async def _next(self, already: int) -> Recorder:
        while len(self.came) == already:
            await asyncio.sleep(0.001)
        await self.came[already].is_open.wait()
        return self.came[already]
