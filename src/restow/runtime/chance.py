"""Chance: what makes ids unlike each other and spreads first replicas over brokers."""

from __future__ import annotations

import random
from typing import Protocol
from uuid import UUID


class Chance(Protocol):
    """Where everything comes from that nobody should foresee. The simulator's can be played again."""

    def randrange(self, below: int) -> int:
        """A number from 0 on, below that."""

    def randbytes(self, count: int) -> bytes:
        """That many bytes."""

    def uuid(self) -> UUID:
        """A random one, of version 4."""


class _Drawn:
    """Drawn from one of Python's generators."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def randrange(self, below: int) -> int:
        return self._source.randrange(below)

    def randbytes(self, count: int) -> bytes:
        return self._source.randbytes(count)

    def uuid(self) -> UUID:
        return UUID(bytes=self.randbytes(16), version=4)


class SystemChance(_Drawn):
    """The operating system's."""

    def __init__(self) -> None:
        super().__init__(random.SystemRandom())


class SeededChance(_Drawn):
    """The same again for the same seed."""

    def __init__(self, seed: int | str) -> None:
        super().__init__(random.Random(seed))  # noqa: S311  foreseeable on purpose
