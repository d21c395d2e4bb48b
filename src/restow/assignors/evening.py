"""Even out the members' work by few moves and swaps of partitions.

Always the member with the most work gives a partition to one with little, or swaps one with it. What is moved
is worth it: each step must lower the larger of both amounts of work by a share of the mean. Nothing is done
while the busiest member is within the tolerance, and then it is brought well below it. So small changes
of work move nothing, and a group does not swing from one rebalance to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow._frozen import frozen
from restow.assignors.group import NOBODY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from restow.assignors.kinds import Kinds

_PARTNERS = 12
"""Members with the least work that are tried as partners."""


@frozen
class EveningLimits:
    """How far evening may go."""

    fewest: NDArray[np.int64]
    most: NDArray[np.int64]
    """The number of partitions that each member must and may have."""
    tolerance: float
    """The busiest member may have this share more than the mean."""
    least_gain: float
    """Of the mean, by which each step must lower the larger amount of work of the two members."""
    most_moves: int


def share_out(
    before: NDArray[np.int64], work: NDArray[np.float64], kinds: Kinds, limits: EveningLimits
) -> NDArray[np.int64] | None:
    """Return owners within the limits of counts, most of them as before; None if this way finds none."""
    owner = before.copy()
    held = owner != NOBODY
    held[held] = kinds.allowed[kinds.kind_of[held], owner[held]]
    owner[~held] = NOBODY
    members = len(limits.most)
    load = np.bincount(owner[held], work[held], minlength=members)
    count = np.bincount(owner[held], minlength=members)

    def hand(partition: int, taker: int) -> None:
        if (giver := int(owner[partition])) != NOBODY:
            load[giver] -= work[partition]
            count[giver] -= 1
        owner[partition] = taker
        if taker != NOBODY:
            load[taker] += work[partition]
            count[taker] += 1

    for member in np.flatnonzero(count > limits.most).tolist():
        mine = np.flatnonzero(owner == member)
        for partition in mine[np.argsort(work[mine], kind="stable")][: count[member] - limits.most[member]]:
            hand(int(partition), NOBODY)
    free = np.flatnonzero(owner == NOBODY)
    for partition in free[np.argsort(-work[free], kind="stable")].tolist():
        takers = np.flatnonzero(kinds.allowed[kinds.kind_of[partition]] & (count < limits.most))
        if not takers.size:
            return None
        hand(partition, int(takers[np.lexsort((count[takers], load[takers]))[0]]))
    while (short := np.flatnonzero(count < limits.fewest)).size:
        taker = int(short[0])
        mine = np.flatnonzero(kinds.allowed[kinds.kind_of, taker] & (count[owner] > limits.fewest[owner]))
        if not mine.size:
            return None
        busiest = mine[np.lexsort((work[mine], -load[owner[mine]]))[0]]
        hand(int(busiest), taker)
    return owner


class Evening:
    """Owners of partitions, each with its work, that are changed in place."""

    def __init__(
        self,
        owner: NDArray[np.int64],
        work: NDArray[np.float64],
        may_have: NDArray[np.bool_],
        kind_of: NDArray[np.int64],
        limits: EveningLimits,
    ) -> None:
        members = may_have.shape[1]
        self.owner = owner
        self.moves = 0
        self._work = work
        self._may_have = may_have
        self._kind_of = kind_of
        self._limits = limits
        self._load = np.bincount(owner, work, minlength=members)
        self._count = np.bincount(owner, minlength=members)
        self._mean = float(self._load.mean())

    def run(self) -> None:
        """Even out until the busiest member is well within the tolerance, or nothing helps any more."""
        limits, mean = self._limits, self._mean
        if mean <= 0 or self._load.max() <= (1 + limits.tolerance) * mean:
            return
        goal = (1 + limits.tolerance / 2) * mean
        stuck = np.zeros(len(self._load), dtype=np.bool_)
        while self.moves < limits.most_moves:
            busiest = int(np.argmax(np.where(stuck, -1.0, self._load)))
            if stuck[busiest] or self._load[busiest] <= goal:
                return
            if not self._relieve(busiest):
                stuck[busiest] = True

    def _relieve(self, giver: int) -> bool:
        """Take the best step of a member that has too much; return whether there is one."""
        best: tuple[float, int, int, int | None] | None = None
        mine = np.flatnonzero(self.owner == giver)
        mine = mine[self._work[mine] > 0]
        for taker in np.argsort(self._load, kind="stable")[:_PARTNERS].tolist():
            if taker == giver:
                continue
            found = self._step(giver, mine, taker)
            if found is not None and (best is None or found[0] < best[0]):
                best = (found[0], taker, *found[1:])
        if best is None:
            return False
        _, taker, given, taken = best
        self._hand(given, giver, taker)
        if taken is not None:
            self._hand(taken, taker, giver)
        return True

    def _step(self, giver: int, mine: NDArray[np.int64], taker: int) -> tuple[float, int, int | None] | None:
        """Return the larger amount of work after the best step with this partner, and what is exchanged."""
        give = mine[self._may_have[self._kind_of[mine], taker]]
        if not give.size:
            return None
        high, low = float(self._load[giver]), float(self._load[taker])
        wanted = high - self._limits.least_gain * self._mean
        found: tuple[float, int, int | None] | None = None
        room = (
            self._count[taker] < self._limits.most[taker] and self._count[giver] > self._limits.fewest[giver]
        )
        if room:
            after = np.maximum(high - self._work[give], low + self._work[give])
            at = int(np.argmin(after))
            if after[at] <= wanted:
                found = float(after[at]), int(give[at]), None
        theirs = np.flatnonzero(self.owner == taker)
        theirs = theirs[self._may_have[self._kind_of[theirs], giver]]
        if theirs.size and (found is None or found[0] > (1 + self._limits.tolerance / 2) * self._mean):
            swap = self._best_swap(give, theirs, (high - low) / 2)
            if swap is not None:
                given, taken = swap
                shift = float(self._work[given] - self._work[taken])
                after_swap = max(high - shift, low + shift)
                if after_swap <= wanted and (found is None or after_swap < found[0]):
                    found = after_swap, given, taken
        return found

    def _best_swap(
        self, give: NDArray[np.int64], theirs: NDArray[np.int64], shift: float
    ) -> tuple[int, int] | None:
        """Return the pair whose difference of work is nearest to the shift, and positive."""
        theirs = theirs[np.argsort(self._work[theirs], kind="stable")]
        amounts = self._work[theirs]
        right = np.searchsorted(amounts, self._work[give] - shift)
        best: tuple[float, int, int] | None = None
        for offset in (-1, 0):
            at = np.clip(right + offset, 0, len(theirs) - 1)
            difference = self._work[give] - amounts[at]
            miss = np.where(difference > 0, np.abs(difference - shift), np.inf)
            nearest = int(np.argmin(miss))
            if np.isfinite(miss[nearest]) and (best is None or miss[nearest] < best[0]):
                best = float(miss[nearest]), int(give[nearest]), int(theirs[at[nearest]])
        return None if best is None else best[1:]

    def _hand(self, partition: int, giver: int, taker: int) -> None:
        amount = self._work[partition]
        self.owner[partition] = taker
        self._load[giver] -= amount
        self._load[taker] += amount
        self._count[giver] -= 1
        self._count[taker] += 1
        self.moves += 1
