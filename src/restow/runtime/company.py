"""Connections that came in: through which door, and how many may through all of them, and with how much."""

from __future__ import annotations

import resource
from typing import Generic, Protocol, TypeVar

from restow.runtime.frames import NetworkError

Member = TypeVar("Member")

_KEPT_DESCRIPTORS = 640


def most_connections() -> int:
    """As many as leave descriptors for files: a broker that cannot open its logs would give up its disks."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return 1 << 30
    return max(limit - _KEPT_DESCRIPTORS, limit // 2)


class Crowd:
    """How many connections came through all doors, and may."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 0


class TooMuchHalfSent(NetworkError):
    """Frames that are not whole yet take more memory than all connections together may use for them."""


class Sender(Protocol):
    """A connection that may be hung up on."""

    def abort(self, reason: Exception | None) -> None: ...


class HalfSent:
    """What has come of large frames that are not whole yet, of all connections together.

    To wait until there is room would let those who never finish their frames stop everybody. When it is too
    much, whoever has sent the most of an unfinished frame is hung up on.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held: dict[Sender, int] = {}
        self.total_bytes = 0

    def note(self, sender: Sender, held_bytes: int) -> None:
        """The connection holds so much now, 0 if its frame is whole or it is gone."""
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
    """The connections that came through one door, and whether it is shut."""

    def __init__(self, crowd: Crowd) -> None:
        self.members: set[Member] = set()
        self.is_over = False
        self._crowd = crowd

    def admit(self, connection: Member) -> bool:
        """Whether there is room for one more."""
        if self._crowd.count >= self._crowd.most:
            return False
        self._crowd.count += 1
        self.members.add(connection)
        return True

    def dismiss(self, connection: Member) -> None:
        self._crowd.count -= 1
        self.members.discard(connection)
