"""Frames over TCP, and over TLS."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from restow.runtime.connections import ConnectionCount, HalfSent, ListenerConnections, most_connections
from restow.runtime.frames import LENGTH, BadFrame, Buffer, FrameCutter, NetworkError, SpareBuffers
from restow.runtime.held import HeldTransport, close_with_reset
from restow.runtime.tls import client_context, server_context

if TYPE_CHECKING:
    from restow.runtime.protocols import Acceptor, FrameHandler
    from restow.runtime.tls import TlsFiles


class SlowReader(NetworkError):
    """The peer has left more bytes unread than we keep for it."""


_SMALL_BYTES = 4 * 1024
_OUTBOX_BYTES = 64 * 1024
_BACKLOG = 1024
_FAREWELL_S = 1.0
_HANDSHAKE_S = 30.0
_TURNS_TO_ACCEPT = 3


class SystemNetwork:
    """TCP on the running loop."""

    def __init__(
        self,
        *,
        high_water_bytes: int = 1024 * 1024,
        max_unsent_bytes: int = 256 * 1024 * 1024,
        max_answer_bytes: int = 512 * 1024 * 1024,
        max_connections: int | None = None,
        max_half_sent_bytes: int = 256 * 1024 * 1024,
    ) -> None:
        """`drain` waits above the first limit. A peer with more than the second unread is closed when it
        should get more. `connect`ed peers may send frames up to the third. Beyond `max_connections` (by
        default as many as leave enough file descriptors), new connections are closed at once. When incoming
        incomplete frames reach `max_half_sent_bytes`, the connection with the most of them is closed.
        """
        self._high_water_bytes = high_water_bytes
        self._max_unsent_bytes = max_unsent_bytes
        self._max_answer_bytes = max_answer_bytes
        self._spares = SpareBuffers()
        self._half_sent = HalfSent(max_half_sent_bytes)
        self._total = ConnectionCount(most_connections() if max_connections is None else max_connections)

    async def listen(
        self, host: str, port: int, acceptor: Acceptor, max_frame_bytes: int, *, tls: TlsFiles | None = None
    ) -> SystemListener:
        connections: ListenerConnections[FramedConnection] = ListenerConnections(self._total)

        def accept() -> FramedConnection:
            return self._connection(acceptor(), max_frame_bytes, connections, self._half_sent)

        server = await asyncio.get_running_loop().create_server(
            accept,
            host,
            port,
            backlog=_BACKLOG,
            ssl=None if tls is None else server_context(tls),
            ssl_handshake_timeout=None if tls is None else _HANDSHAKE_S,
        )
        return SystemListener(server, connections)

    async def connect(
        self, host: str, port: int, handler: FrameHandler, timeout_s: float, *, tls: TlsFiles | None = None
    ) -> FramedConnection:
        connection = self._connection(
            handler, self._max_answer_bytes, ListenerConnections(ConnectionCount(1))
        )
        async with asyncio.timeout(timeout_s):
            await asyncio.get_running_loop().create_connection(
                lambda: connection, host, port, ssl=None if tls is None else client_context(tls)
            )
        return connection

    def _connection(
        self,
        handler: FrameHandler,
        max_frame_bytes: int,
        connections: ListenerConnections[FramedConnection],
        half_sent: HalfSent | None = None,
    ) -> FramedConnection:
        return FramedConnection(
            handler,
            connections,
            FrameCutter(max_frame_bytes, self._spares),
            half_sent or HalfSent(max_frame_bytes),
            high_water_bytes=self._high_water_bytes,
            max_unsent_bytes=self._max_unsent_bytes,
        )


class SystemListener:
    """A listening TCP port."""

    def __init__(self, server: asyncio.Server, connections: ListenerConnections[FramedConnection]) -> None:
        self._server = server
        self._connections = connections
        self.host, self.port = server.sockets[0].getsockname()[:2]

    @property
    def is_closed(self) -> bool:
        return self._connections.is_closed

    @property
    def connections(self) -> tuple[FramedConnection, ...]:
        """Return the accepted connections that are open."""
        return tuple(self._connections.open)

    async def close(self) -> None:
        """Close the listener. Peers that do not read their responses within a second lose them."""
        self._connections.is_closed = True
        self._accept_no_more()
        await _turn()
        self._server.close()
        await _turn()
        members = tuple(self._connections.open)
        for connection in members:
            connection.close()
        gone = [connection.gone for connection in members]
        if gone:
            await asyncio.wait(gone, timeout=_FAREWELL_S)
            for connection in members:
                connection.abort(None)
            await asyncio.wait(gone)

    def _accept_no_more(self) -> None:
        """Stop accepting. asyncio's server would lose connections that it is just accepting, so it stops
        listening some turns earlier. uvloop's loses none, and this does nothing to it.
        """
        for listening in self._server.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())


async def _turn() -> None:
    """Let connections that are being accepted be made."""
    for _ in range(_TURNS_TO_ACCEPT):
        await asyncio.sleep(0)


class FramedConnection(asyncio.BufferedProtocol):
    """One TCP connection: frames in both directions, with flow control."""

    peer = "nobody yet"

    def __init__(
        self,
        handler: FrameHandler,
        connections: ListenerConnections[FramedConnection],
        cutter: FrameCutter,
        half_sent: HalfSent,
        *,
        high_water_bytes: int,
        max_unsent_bytes: int,
    ) -> None:
        self.handler = handler
        self._connections = connections
        self._high_water_bytes = high_water_bytes
        self._max_unsent_bytes = max_unsent_bytes
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._cutter = cutter
        self._half_sent = half_sent
        self._half_sent_bytes = 0
        self._admitted = False
        self._reading = True
        self._hung_up = False
        self._reason: Exception | None = None
        self._drained: asyncio.Future[None] | None = None
        self._outbox: list[Buffer] = []
        self._outbox_bytes = 0
        self._is_post_due = False

    # Called by the handler's side.

    @property
    def unsent_bytes(self) -> int:
        waiting = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return waiting + self._outbox_bytes

    @property
    def certificate(self) -> bytes | None:
        secured = None if self._transport is None else self._transport.get_extra_info("ssl_object")
        found: bytes | None = None if secured is None else secured.getpeercert(binary_form=True)
        return found

    def send(self, *parts: Buffer) -> None:
        transport = self._transport
        if transport is None or self._hung_up:
            return
        if self._drained is not None and transport.get_write_buffer_size() > self._max_unsent_bytes:
            self.abort(SlowReader(f"{self.peer} left {self.unsent_bytes} bytes unread"))
            return
        size = sum(map(len, parts))
        if size < _SMALL_BYTES:
            self._post(size, parts)
        else:
            self._write_outbox()
            transport.writelines((LENGTH.pack(size), *parts))

    async def drain(self) -> None:
        self._write_outbox()
        if self._drained is not None:
            await asyncio.shield(self._drained)

    def pause_reading(self) -> None:
        self._reading = False
        if self._transport is not None and not self._hung_up and self._transport.is_reading():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            self._loop.call_soon(self._catch_up)

    def close(self) -> None:
        self._write_outbox()
        self._hung_up = True
        if self._transport is not None:
            self._transport.close()

    def abort(self, reason: Exception | None) -> None:
        self._hung_up = True
        self._reason = reason
        if self._transport is not None:
            self._transport.abort()

    def hold(self, *, incoming: bool, outgoing: bool) -> None:
        """Let bytes wait in these directions, as when packets are lost on the way, until told otherwise."""
        if self._transport is not None and not self._hung_up:
            self._write_outbox()
            self._transport = HeldTransport.over(self._transport).hold(incoming=incoming, outgoing=outgoing)

    def reset(self, reason: Exception | None) -> None:
        """Close at once; the peer gets a reset."""
        if self._transport is not None and not self._hung_up:
            close_with_reset(self._transport)
        self.abort(reason)

    def _post(self, size: int, parts: tuple[Buffer, ...]) -> None:
        """Send the small frames of one loop turn together, because a system call costs more than they do."""
        self._outbox += (LENGTH.pack(size), *parts)
        self._outbox_bytes += LENGTH.size + size
        if self._outbox_bytes >= _OUTBOX_BYTES:
            self._write_outbox()
        elif not self._is_post_due:
            self._is_post_due = True
            self._loop.call_soon(self._post_is_due)

    def _post_is_due(self) -> None:
        self._is_post_due = False
        self._write_outbox()

    def _write_outbox(self) -> None:
        if self._outbox:
            if self._transport is not None and not self._hung_up:
                self._transport.write(b"".join(self._outbox))
            self._outbox.clear()
            self._outbox_bytes = 0

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=self._high_water_bytes)
        self.peer = "{}:{}".format(*(transport.get_extra_info("peername") or ("?", "?"))[:2])
        self._admitted = self._connections.admit(self)
        if not self._admitted:
            self.abort(None)
            return
        self.handler.opened(self)
        if self._connections.is_closed:
            self.abort(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._hung_up = True
        self._cutter.close()
        self._note_half_sent()
        if not self._admitted:
            return
        self._connections.dismiss(self)
        self._write_outbox()
        self.resume_writing()
        if not self.gone.done():
            self.gone.set_result(None)
        self.handler.closed(self._reason or exc)

    def eof_received(self) -> None:
        if not (self._hung_up or self._cutter.is_between_frames):
            self._reason = BadFrame(f"{self.peer} hung up in the middle of a frame")

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None

    def get_buffer(self, _: int) -> memoryview:
        return self._cutter.room()

    def buffer_updated(self, nbytes: int) -> None:
        self._cutter.received(nbytes)
        self._deliver()
        if self._half_sent_bytes or self._cutter.large_bytes:
            self._note_half_sent()

    def _note_half_sent(self) -> None:
        self._half_sent_bytes = self._cutter.large_bytes
        self._half_sent.note(self, self._half_sent_bytes)

    def _catch_up(self) -> None:
        """Deliver frames held back by a pause first; then the buffer has room again."""
        self._deliver()
        if self._transport is not None and self._reading and not self._hung_up:
            self._transport.resume_reading()

    def _deliver(self) -> None:
        next_frame = self._cutter.next_frame
        deliver = self.handler.frame
        was_due, self._is_post_due = self._is_post_due, True
        try:
            while self._reading and not self._hung_up and (frame := next_frame()) is not None:
                deliver(frame)
        except Exception as error:
            self.abort(error)
            if not isinstance(error, BadFrame):
                raise
        finally:
            self._is_post_due = was_due
            self._write_outbox()
