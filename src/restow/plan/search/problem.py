"""The input and the output of the search, as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from restow._frozen import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


class SearchSpace(NamedTuple):
    """The constant part."""

    weight: Floats
    """Partitions × goals: the load of one replica on any broker."""
    part_of: Ints
    """Each replica's partition."""
    offsets: Ints
    rack: Ints
    """Each broker's rack."""
    racks_wanted: Ints
    """How many racks each partition should span."""
    lower: Floats
    """Brokers × goals: the bands."""
    upper: Floats
    room: Floats
    """The most of the first goal that each broker may have, whatever its band."""
    topic: Ints
    """Each partition's topic."""
    topic_most: Ints
    """The most replicas of each topic that one broker may have; empty without such a limit."""
    home: Ints
    """The broker where each replica may stay; -1 for those that must move or do not exist yet."""
    own: Floats
    """By how much more of the first goal each replica has at home than a new one; empty if none differs."""
    barred: Ints
    """The broker that each replica may not go to, -1 for none: its leader's, if leadership may not change.
    Whoever takes that place would not lead there."""


class SearchState(NamedTuple):
    """The part that the search changes in place."""

    load: Floats
    """Brokers × goals."""
    holder: Ints
    """The broker of each replica."""
    spread: Ints
    """Topics × brokers: each broker's replicas of a topic; empty without a limit."""

    def copied(self) -> SearchState:
        """Return a state of its own."""
        return SearchState(self.load.copy(), self.holder.copy(), self.spread.copy())


@frozen
class Problem:
    """A cluster as arrays, the bands to bring it into, and the allowed changes.

    Loads are in the units of the goals. The first goal is bytes on disk, the cost of moving.
    """

    rack: Ints
    """Each broker's rack."""
    offsets: Ints
    """The replicas of partition p are those from offsets[p] to offsets[p + 1]."""
    home: Ints
    """The broker of each replica; -1 for one that does not exist yet."""
    leader: Ints
    """The leading replica of each partition."""
    leading: Floats
    """Partitions × goals: the load of the leader."""
    following: Floats
    """Partitions × goals: the load of each other replica."""
    lower: Floats
    """Brokers × goals: the bands."""
    upper: Floats
    room: Floats
    """The most bytes that each broker may have."""
    racks_wanted: Ints
    """How many racks each partition should span."""
    receives: Bools
    """Brokers that may receive replicas."""
    may_lead: Bools
    """Brokers that may lead."""
    forced: Bools
    """Replicas that must move."""
    movable: Bools
    """Replicas that may move."""
    may_change_leader: Bools
    """Partitions whose leader may change."""
    own: Floats | None = None
    """By how many bytes each replica at home differs from its leader's size, which a new one gets; None if
    none differs.
    """
    importance: Floats | None = None
    """By goal: how much being out of band counts; all the same if None."""
    pinned: Ints | None = None
    """The target of each forced replica, -1 if open; all open if None."""
    topic: Ints | None = None
    """Each partition's topic."""
    topic_replicas: Ints | None = None
    """The most replicas of each topic that one broker should have; empty or None without such a limit."""
    topic_leaders: Ints | None = None
    """The same for leaders."""
    begin: Ints | None = None
    """The broker of each replica in an earlier plan, where the search begins; None if there was none."""
    begin_leader: Ints | None = None
    """The leading replica of each partition in that plan."""
    sheds: bool = True
    """Whether overloaded brokers give replicas away; otherwise only forced replicas move."""
    seed: int = 0


class Progress(NamedTuple):
    """How far the search is: what the placement that it works on copies, and how far it is out of band."""

    stage: str
    copied_bytes: float
    out_of_band: float
    """In average loads of a broker, added up over brokers and goals of replicas."""


@frozen
class Solution:
    """The broker of every replica, and the leaders."""

    holder: Ints
    leader: Ints
    homeless: Ints
    """Forced replicas that fit nowhere; if there are any, the search stops there."""
    wrong: float
    """The distance from the bands that remains."""
    finished: bool = True
    """Whether the search ended by itself and not because time was up."""
    prices: Floats | None = None
    """Brokers × goals: the prices of load that the search went by, in bytes for a unit; None if it needed
    none.
    """


def differing(problem: Problem, holder: Ints) -> Floats | None:
    """Return by how many bytes replicas differ from their leader's size where they are; None if none does.

    A broker that had a replica of the partition before still has it, whichever replica is counted there.
    """
    if problem.own is None:
        return None
    counts = np.diff(problem.offsets)
    part_of = np.repeat(np.arange(len(counts)), counts)
    home = np.where(problem.forced, -1, problem.home)
    more: Floats = np.where(holder == home, problem.own, 0.0)
    for apart in range(1, int(counts.max(initial=1))):
        same = part_of[apart:] == part_of[:-apart]
        later, earlier = slice(apart, None), slice(None, -apart)
        for one, other in ((later, earlier), (earlier, later)):
            there = same & (holder[one] == home[other]) & (holder[one] >= 0)
            more[one] = np.where(there, problem.own[other], more[one])
    return more
