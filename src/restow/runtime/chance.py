"""Random numbers: for unique ids and to spread preferred replicas over brokers."""

from __future__ import annotations

import random
from typing import Protocol
from uuid import UUID


class Chance(Protocol):
    """A source of random numbers. The simulator's can be replayed."""

    def randrange(self, below: int) -> int:
        """Return a number from 0 to below the limit."""

    def randbytes(self, count: int) -> bytes:
        """Return that many bytes."""

    def uuid(self) -> UUID:
        """Return a random UUID of version 4."""


class _Drawn:
    """Random numbers from one of Python's generators."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def randrange(self, below: int) -> int:
        return self._source.randrange(below)

    def randbytes(self, count: int) -> bytes:
        return self._source.randbytes(count)

    def uuid(self) -> UUID:
        return UUID(bytes=self.randbytes(16), version=4)


class SystemChance(_Drawn):
    """The operating system's random numbers."""

    def __init__(self) -> None:
        super().__init__(random.SystemRandom())


class SeededChance(_Drawn):
    """Random numbers that repeat for the same seed."""

    def __init__(self, seed: int | str) -> None:
        source = random.Random(seed)  # noqa: S311  foreseeable on purpose
        super().__init__(source)
        self._bits = source.getrandbits

    def randrange(self, below: int) -> int:
        """Draw the same as the library, with fewer calls: a simulation draws for every frame."""
        if below <= 0:
            raise ValueError(f"there is no number below {below}")
        bits = below.bit_length()
        number = self._bits(bits)
        while number >= below:
            number = self._bits(bits)
        return number
