"""Frames over connections: an int32 length, then that many bytes.

    Network.listen  ──►  Listener       one FrameHandler per connection that comes in
    Network.connect ──►  Connection     with the handler that was given

A handler gets `opened` once, then `frame` for each frame, then `closed` once. It answers with
`Connection.send`, from within `frame` or later. Everything happens on one loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.runtime.frames import Buffer
    from restow.runtime.tls import TlsFiles


class Connection(Protocol):
    """One end of an open or closed connection."""

    @property
    def peer(self) -> str:
        """Address of the other end, as `host:port`."""

    @property
    def unsent_bytes(self) -> int:
        """Bytes given to `send` that the kernel has not taken yet."""

    @property
    def certificate(self) -> bytes | None:
        """The verified certificate of the other end (DER), if it has shown one."""

    def send(self, *parts: Buffer) -> None:
        """Queue one frame made of these parts; the length is written here.

        The parts are not copied if possible, so they must not change afterwards. On a closed connection the
        frame is dropped: `closed` has been called, or soon will be.
        """

    async def drain(self) -> None:
        """Wait until the unsent bytes have fallen below the mark, or the connection is closed."""

    def pause_reading(self) -> None:
        """Deliver no more frames, not even received ones, until resumed."""

    def resume_reading(self) -> None:
        """Resume the delivery."""

    def close(self) -> None:
        """Send queued frames, then close. No further frame is delivered."""

    def abort(self, reason: Exception | None) -> None:
        """Close at once and drop unsent bytes; `closed` gets the reason."""


class FrameHandler(Protocol):
    """Receives the events of a connection."""

    def opened(self, connection: Connection) -> None:
        """Handle the open connection."""

    def frame(self, payload: bytes) -> None:
        """Handle a complete frame, without its length. An exception closes the connection."""

    def closed(self, reason: Exception | None) -> None:
        """Handle the closed connection; the reason is None after a normal close."""


Acceptor: TypeAlias = "Callable[[], FrameHandler]"
"""Makes the handler of a connection that comes in."""


class Listener(Protocol):
    """A listening port."""

    @property
    def host(self) -> str:
        """The resolved address."""

    @property
    def port(self) -> int:
        """The port; a real one even if 0 was requested."""

    async def close(self) -> None:
        """Close the port and its connections."""


class Network(Protocol):
    """Connects brokers and clients. The simulator has its own."""

    async def listen(
        self, host: str, port: int, acceptor: Acceptor, max_frame_bytes: int, *, tls: TlsFiles | None = None
    ) -> Listener:
        """Accept connections, each with its own handler. Raises OSError if the port is not available."""

    async def connect(
        self, host: str, port: int, handler: FrameHandler, timeout_s: float, *, tls: TlsFiles | None = None
    ) -> Connection:
        """Open a connection. Raises OSError (including TimeoutError) without an answer."""
