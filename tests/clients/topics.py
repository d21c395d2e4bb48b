"""What a group in these tests reads. No client is imported here, so that fixtures may."""

from __future__ import annotations

from dataclasses import dataclass

Held = frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Topics:
    """What a group reads."""

    bootstrap: str
    group: str
    names: tuple[str, ...]
    partitions_each: int

    @property
    def everything(self) -> Held:
        return frozenset((name, p) for name in self.names for p in range(self.partitions_each))
