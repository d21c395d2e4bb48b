"""Connections whose bytes wait, or that end with a reset: network faults on real sockets.

A connection that works pays nothing for this. Only while its bytes are held does it write to a
`HeldTransport` instead of its own transport.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.runtime.frames import Buffer

_LINGER_NOT = struct.pack("ii", 1, 0)


class HeldTransport(asyncio.Transport):
    """Stands before a transport and holds its bytes in one direction or in both.

    Held bytes travel when they are let go, in order, as TCP sends lost packets again. Ending the connection
    drops them. The peer sees that end, though no packet of a cut connection would reach it.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._incoming = False
        self._outgoing = False
        self._wants_to_read = transport.is_reading()
        self._held: list[Buffer] = []
        self._held_bytes = 0

    @classmethod
    def over(cls, transport: asyncio.Transport) -> HeldTransport:
        """Return the transport itself if it holds bytes already, otherwise a new one before it."""
        return transport if isinstance(transport, HeldTransport) else cls(transport)

    def hold(self, *, incoming: bool, outgoing: bool) -> asyncio.Transport:
        """Hold these directions and let go of the others. Return the transport to use from now on."""
        if self._outgoing and not outgoing:
            held, self._held, self._held_bytes = self._held, [], 0
            self._transport.writelines(held)
        self._outgoing = outgoing
        self._incoming = incoming
        self._read_or_not()
        return self if incoming or outgoing else self._transport

    def write(self, data: Buffer) -> None:
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        if not self._outgoing:
            self._transport.writelines(list_of_data)
            return
        parts = tuple(list_of_data)
        self._held += parts
        self._held_bytes += sum(map(len, parts))

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size() + self._held_bytes

    def is_reading(self) -> bool:
        return self._wants_to_read

    def pause_reading(self) -> None:
        self._wants_to_read = False
        self._read_or_not()

    def resume_reading(self) -> None:
        self._wants_to_read = True
        self._read_or_not()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def _read_or_not(self) -> None:
        reads = self._wants_to_read and not self._incoming
        if self._transport.is_closing() or reads == self._transport.is_reading():
            return
        if reads:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()


def close_with_reset(transport: asyncio.Transport) -> None:
    """Let the kernel send a reset instead of an orderly end when this transport is aborted."""
    if transport.is_closing():
        return
    # The option belongs to the socket, so it can be set through another descriptor of it.
    descriptor = os.dup(transport.get_extra_info("socket").fileno())
    with socket.socket(fileno=descriptor) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
