"""A client that sends frames to a broker's server, and loops to run scenarios on."""

from __future__ import annotations

import asyncio
import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from restow.cluster.broker.metadata import MetadataCache
from restow.runtime.network import SystemNetwork
from restow.wire.codec import encode_request, parse_response

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from restow.runtime.clock import Clock
    from restow.runtime.protocols import Connection

HOST = "127.0.0.1"


def bare_services(clock: Clock, store: Any = None) -> Any:
    """Return what a server asks of a broker: here one without quotas or doubts about its store."""
    return SimpleNamespace(
        broker_id=1,
        clock=clock,
        metadata=MetadataCache("cluster", clock),
        store=store or SimpleNamespace(in_doubt=False),
        client_quotas=SimpleNamespace(is_on=False),
    )


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run a scenario for at most five minutes, so that a hang fails and a busy machine does not."""
    asyncio.run(asyncio.wait_for(scenario, 300))


class Client:
    """One connection. `ask` sends without waiting; `answer` returns the next frame."""

    def __init__(self) -> None:
        self.frames: asyncio.Queue[bytes] = asyncio.Queue()
        self.is_closed = asyncio.Event()
        self.connection: Any = None

    @classmethod
    async def connect(cls, port: int) -> Client:
        client = cls()
        await SystemNetwork().connect(HOST, port, client, 60)
        return client

    def opened(self, connection: Connection) -> None:
        self.connection = connection

    def frame(self, payload: bytes) -> None:
        self.frames.put_nowait(payload)

    def closed(self, reason: Exception | None) -> None:
        self.is_closed.set()

    def ask(self, api_key: int, version: int, number: int, body: Any) -> None:
        self.connection.send(*encode_request(api_key, version, number, "test", body))

    async def number(self) -> int:
        """Return the correlation id of the next frame."""
        return int(struct.unpack(">i", (await self._next_frame())[:4])[0])

    async def answer(self, api_key: int, version: int) -> Any:
        return parse_response(api_key, version, await self._next_frame()).body

    async def _next_frame(self) -> bytes:
        """Return the next frame; raise ConnectionError where the server has closed the connection instead."""
        frame, closed = asyncio.create_task(self.frames.get()), asyncio.create_task(self.is_closed.wait())
        await asyncio.wait((frame, closed), return_when=asyncio.FIRST_COMPLETED)
        closed.cancel()
        if not frame.done():
            frame.cancel()
            raise ConnectionError("the server closed the connection without an answer")
        return frame.result()
