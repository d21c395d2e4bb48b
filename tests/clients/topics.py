"""What a group in these tests reads. No client is imported here, so that fixtures may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

Held = frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Topics:
    """What a group reads."""

    bootstrap: str
    group: str
    names: tuple[str, ...]
    partitions_each: int
    nudge: Callable[[], None]
    """Write a record to every partition, so that whoever waits for one wakes up."""

    @property
    def everything(self) -> Held:
        return frozenset((name, p) for name in self.names for p in range(self.partitions_each))
