"""A network that records every request to a broker and its response, as bytes."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

from restow.runtime.network import SystemNetwork

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.runtime.network import Buffer
    from restow.runtime.protocols import Acceptor, Connection, FrameHandler, Listener
    from restow.runtime.tls import TlsFiles

_HEADER = struct.Struct(">hhi")


class Exchange(NamedTuple):
    """A request and its response as sent over the wire, without their lengths."""

    api_key: int
    version: int
    request: bytes
    response: bytes

    def __repr__(self) -> str:
        return f"request {self.api_key} v{self.version}"


class Recording:
    """Recorded exchanges; identical ones count once."""

    def __init__(self) -> None:
        self._exchanges: dict[tuple[int, int, bytes], Exchange] = {}
        self.unanswered: list[bytes] = []
        """Requests without a response: a Produce with acks=0, or one pending at the end."""

    def __iter__(self) -> Iterator[Exchange]:
        return iter(tuple(self._exchanges.values()))

    def __len__(self) -> int:
        return len(self._exchanges)

    def add(self, request: bytes, response: bytes) -> None:
        api_key, version, _ = _HEADER.unpack_from(request)
        exchange = Exchange(api_key, version, request, response)
        self._exchanges.setdefault((api_key, version, response[4:]), exchange)

    def versions(self) -> dict[int, set[int]]:
        """Return the answered versions by key."""
        seen: dict[int, set[int]] = {}
        for exchange in self:
            seen.setdefault(exchange.api_key, set()).add(exchange.version)
        return seen


class RecordingNetwork:
    """The real network, with recording of incoming connections."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._network = SystemNetwork()

    async def listen(
        self, host: str, port: int, acceptor: Acceptor, max_frame_bytes: int, *, tls: TlsFiles | None = None
    ) -> Listener:
        def make() -> FrameHandler:
            return _Tapped(acceptor(), self._recording)

        return await self._network.listen(host, port, make, max_frame_bytes, tls=tls)

    async def connect(
        self, host: str, port: int, handler: FrameHandler, timeout_s: float, *, tls: TlsFiles | None = None
    ) -> Connection:
        return await self._network.connect(host, port, handler, timeout_s, tls=tls)


class _Tapped:
    """Passes all events on to a handler, and remembers requests until they are answered."""

    def __init__(self, handler: FrameHandler, recording: Recording) -> None:
        self._handler = handler
        self._recording = recording
        self.asked: dict[int, bytes] = {}

    def opened(self, connection: Connection) -> None:
        self._handler.opened(_Tap(connection, self))

    def frame(self, payload: bytes) -> None:
        if len(payload) >= _HEADER.size:
            self.asked[_HEADER.unpack_from(payload)[2]] = payload
        self._handler.frame(payload)

    def closed(self, reason: Exception | None) -> None:
        self._recording.unanswered += self.asked.values()
        self._handler.closed(reason)

    def answered(self, response: bytes) -> None:
        (number,) = struct.unpack_from(">i", response)
        self._recording.add(self.asked.pop(number), response)


class _Tap:
    """A connection that records what is sent."""

    def __init__(self, connection: Connection, tapped: _Tapped) -> None:
        self._connection = connection
        self._tapped = tapped
        self.peer = connection.peer
        self.drain = connection.drain
        self.pause_reading = connection.pause_reading
        self.resume_reading = connection.resume_reading
        self.close = connection.close
        self.abort = connection.abort

    @property
    def unsent_bytes(self) -> int:
        return self._connection.unsent_bytes

    def send(self, *parts: Buffer) -> None:
        self._tapped.answered(b"".join(parts))
        self._connection.send(*parts)


@contextmanager
def recorded() -> Iterator[Recording]:
    """Record clusters that start within the block for as long as they run."""
    recording = Recording()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("restow.cluster.embedded.SystemNetwork", lambda: RecordingNetwork(recording))
        yield recording
