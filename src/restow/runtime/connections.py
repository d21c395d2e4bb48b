"""Accepted connections: their number per listener and in total, and the memory of their incomplete frames."""

from __future__ import annotations

import resource
from typing import Generic, Protocol, TypeVar

from restow.runtime.frames import NetworkError

Connection = TypeVar("Connection")

_KEPT_DESCRIPTORS = 640


def most_connections() -> int:
    """Return a limit that leaves descriptors for files: a broker that cannot open its logs loses disks."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return 1 << 30
    return max(limit - _KEPT_DESCRIPTORS, limit // 2)


class ConnectionCount:
    """Number of connections over all listeners, and its limit."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 0


class TooMuchHalfSent(NetworkError):
    """Incomplete frames take more memory than all connections together may use for them."""


class Sender(Protocol):
    """A connection that may be closed."""

    def abort(self, reason: Exception | None) -> None: ...


class HalfSent:
    """Bytes of large incomplete frames, over all connections.

    Waiting for room would let clients that never finish their frames block all others. So beyond the limit,
    the connection with the most incomplete bytes is closed.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held: dict[Sender, int] = {}
        self.total_bytes = 0

    def note(self, sender: Sender, held_bytes: int) -> None:
        """Set a connection's incomplete bytes; 0 if its frame is complete or the connection is gone."""
        self.total_bytes += held_bytes - self._held.pop(sender, 0)
        if held_bytes:
            self._held[sender] = held_bytes
        while self.total_bytes > self._most_bytes:
            largest = max(self._held, key=self._held.__getitem__)
            taken = self._held.pop(largest)
            self.total_bytes -= taken
            largest.abort(
                TooMuchHalfSent(
                    f"{taken} bytes of an unfinished frame, more than any other connection, where all "
                    f"together may hold {self._most_bytes}"
                )
            )


class ListenerConnections(Generic[Connection]):
    """The connections of one listener, and whether it is closed."""

    def __init__(self, total: ConnectionCount) -> None:
        self.open: set[Connection] = set()
        self.is_closed = False
        self._total = total

    def admit(self, connection: Connection) -> bool:
        """Add a connection. Return whether there was room."""
        if self._total.count >= self._total.most:
            return False
        self._total.count += 1
        self.open.add(connection)
        return True

    def dismiss(self, connection: Connection) -> None:
        self._total.count -= 1
        self.open.discard(connection)
