"""Ports for servers that are not there yet, or are away for a while."""

from __future__ import annotations

import socket
import sys

_SEVERAL_MAY_BIND = sys.platform == "linux"
"""Where a port that nobody listens on may be bound to by a second socket that also wants it so."""


class HeldPort:
    """A free port of an address that, until it is let go of, is dealt to nobody else who wants any port.

    It is bound to and never listened on: who connects is refused, and a server that is told the number can
    listen there, end, and listen there again. Only Linux has this; elsewhere the port is free when it is
    found, and no more.
    """

    def __init__(self, host: str) -> None:
        """Raises OSError if the address is not one of this machine's."""
        family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        self._socket = socket.socket(family, kind, protocol)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(address)
            self.number: int = self._socket.getsockname()[1]
        except BaseException:
            self._socket.close()
            raise
        if not _SEVERAL_MAY_BIND:
            self._socket.close()

    def let_go(self) -> None:
        """It may be let go of twice."""
        self._socket.close()
