"""What is asked of the search, and what it answers: arrays in, arrays out."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A cluster in numbers, the bands to bring it into, and what may be touched for that.

    Loads are in whatever units the goals have. The first goal is bytes on disk: what moving costs.
    """

    rack: Ints
    """Each broker's rack."""
    offsets: Ints
    """The replicas of partition p are those from offsets[p] to offsets[p + 1]."""
    home: Ints
    """The broker of each replica; -1 for one that does not exist yet."""
    leader: Ints
    """Which replica leads each partition."""
    leading: Floats
    """Partitions × goals: what the leader carries."""
    following: Floats
    """Partitions × goals: what each other replica carries."""
    lower: Floats
    """Brokers × goals: the bands."""
    upper: Floats
    room: Floats
    """The most bytes each broker may have."""
    racks_wanted: Ints
    """Over how many racks each partition should be spread."""
    receives: Bools
    """Which brokers may be given replicas."""
    may_lead: Bools
    """Which brokers may lead."""
    forced: Bools
    """Replicas that must go somewhere else."""
    movable: Bools
    """Replicas that may, if that helps."""
    may_change_leader: Bools
    """Partitions whose leader may change."""
    importance: Floats | None = None
    """Goal by goal how much being out of band counts; all the same if None."""
    pinned: Ints | None = None
    """Where a forced replica has to go, -1 if that is open; open for all if None."""
    topic: Ints | None = None
    """Each partition's topic."""
    topic_replicas: Ints | None = None
    """The most replicas of each topic that one broker should have; empty or None if that does not matter."""
    topic_leaders: Ints | None = None
    """The same of leaders."""
    sheds: bool = True
    """Whether brokers with too much give of it; else only what is forced moves."""
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Where every replica is to be and which one leads."""

    holder: Ints
    leader: Ints
    homeless: Ints
    """Replicas that had to move and fit nowhere; if there are any, the rest is not looked for."""
    wrong: float
    """How far out of the bands that still is; 0 if it is not."""
    finished: bool = True
    """Whether the search came to its end by itself and not because time was up."""
