"""The topics of a group in these tests. No client is imported here, so that fixtures may import it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

Held = frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of a group."""

    bootstrap: str
    group: str
    names: tuple[str, ...]
    partitions_each: int
    nudge: Callable[[], None]
    """Write a record to every partition, to wake up consumers that wait for one."""

    @property
    def everything(self) -> Held:
        return frozenset((name, p) for name in self.names for p in range(self.partitions_each))
