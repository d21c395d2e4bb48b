"""Ports for servers: reserved while these are not running yet or are down for a while, or listened on."""

from __future__ import annotations

import ipaddress
import socket
import sys

_SEVERAL_MAY_BIND = sys.platform == "linux"
"""Whether a second socket can bind to a port on which nothing listens."""
_BACKLOG = 256


class HeldPort:
    """A free port that no one else is dealt until it is released.

    The port is bound but not listened on: connections are refused, and a server that knows the number can
    listen there, end, and listen there again. Only Linux has this; elsewhere the port is merely free when it
    is found.
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
        """Release the port. A second call does nothing."""
        self._socket.close()


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this address; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches the address, which may be a name or in brackets."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
