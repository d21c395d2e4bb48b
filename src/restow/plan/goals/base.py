"""What a goal is: something that brokers should have equally much of, each by its strength."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from restow.model.load import Resource

    Floats = NDArray[np.float64]

DEFAULT_BAND = 0.09


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What goals are made of: sizes and loads of all partitions, and how strong brokers are."""

    size_bytes: Floats
    """Of one replica of each partition."""
    disk_bytes: Floats
    """Of each broker's file systems, all equal where they are unknown."""
    brokers: tuple[int, ...]
    resources: Mapping[str, Resource] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A goal in numbers: what each partition's leader and followers carry, and each broker's strength."""

    leading: Floats
    following: Floats
    strength: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """`columns` makes the numbers, or None where nothing is known of the matter."""

    name: str
    unit: str
    columns: Callable[[Facts], Columns | None]
    band: float = DEFAULT_BAND
    """How far from its share a broker may be, by default, as a share of it."""
    counted: bool = False
    """Whether it comes in whole numbers, so that no band can be narrower than from one to the next."""
