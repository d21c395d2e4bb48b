"""What the search works on: arrays, bundled so that compiled loops can be handed them in one piece.

Loads are in shares of what an average broker carries, goal by goal; the first goal is what moving costs, the
bytes on disk. Brokers, partitions and replicas are numbered; the replicas of partition p are those from
`offsets[p]` to `offsets[p + 1]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


class Ground(NamedTuple):
    """What stays as it is."""

    weight: Floats
    """Partitions × goals: what one replica carries wherever it is."""
    part_of: Ints
    """Each replica's partition."""
    offsets: Ints
    rack: Ints
    """Each broker's rack."""
    racks_wanted: Ints
    """Over how many racks each partition should be spread."""
    lower: Floats
    """Brokers × goals: the bands."""
    upper: Floats
    room: Floats
    """The most of the first goal that each broker may have, whatever its band."""
    topic: Ints
    """Each partition's topic."""
    topic_most: Ints
    """The most replicas of each topic that one broker may have; empty if that does not matter."""


class SearchState(NamedTuple):
    """What the search changes, in place."""

    load: Floats
    """Brokers × goals."""
    holder: Ints
    """The broker of each replica."""
    spread: Ints
    """Topics × brokers: how many replicas of a topic each broker has; empty if that does not matter."""
