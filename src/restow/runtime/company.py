"""Accepted connections: their number per listener and in total, and the memory of their incomplete frames."""

from __future__ import annotations

import resource
from typing import Generic, Protocol, TypeVar

from restow.runtime.frames import NetworkError

Member = TypeVar("Member")

_KEPT_DESCRIPTORS = 640


def most_connections() -> int:
    """Return a limit that leaves descriptors for files: a broker that cannot open its logs loses disks."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return 1 << 30
    return max(limit - _KEPT_DESCRIPTORS, limit // 2)


class Crowd:
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


class Company(Generic[Member]):
    """The connections of one listener, and whether it is closed."""

    def __init__(self, crowd: Crowd) -> None:
        self.members: set[Member] = set()
        self.is_over = False
        self._crowd = crowd

    def admit(self, connection: Member) -> bool:
        """Add a connection. Return whether there was room."""
        if self._crowd.count >= self._crowd.most:
            return False
        self._crowd.count += 1
        self.members.add(connection)
        return True

    def dismiss(self, connection: Member) -> None:
        self._crowd.count -= 1
        self.members.discard(connection)
