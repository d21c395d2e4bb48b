"""Connections that came in: through which door, and how many may through all of them."""

from __future__ import annotations

import resource
from typing import Generic, TypeVar

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
