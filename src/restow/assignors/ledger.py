"""The number of partitions of each kind that each member holds: all that balance and movement depend on.

Partitions with the same possible readers (and replicas in the same racks) are of one *kind*. They are
interchangeable except for their previous owners. So a group of a million partitions becomes a table of kinds
× members, often with a single row, and an assignment becomes counts in that table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from restow.assignors.water import pour

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray


@dataclass(slots=True)
class BalanceTable:
    """Counts per kind and member, changed in place by the balancing steps."""

    supply: NDArray[np.int64]
    """By kind: the number of partitions."""
    allowed: NDArray[np.bool_]
    """Kinds × members: whether the member may read it."""
    owned: NDArray[np.int64]
    """Kinds × members: how many the member held before and may keep."""
    far: NDArray[np.bool_] | None
    """Kinds × members: whether no replica is in the member's rack; None if racks do not matter."""
    had: NDArray[np.int64] = field(init=False)
    """By member: how many it held before and may keep."""
    held: NDArray[np.int64] = field(init=False)
    loads: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.loads = self.owned.sum(axis=0)
        self.had = self.loads.copy()
        self.held = self.owned.copy() if self.had.any() else np.zeros_like(self.owned)

    def copy(self) -> BalanceTable:
        """Return a copy to try changes on."""
        other = BalanceTable(self.supply, self.allowed, self.owned, self.far)
        other.adopt(self)
        return other

    def adopt(self, other: BalanceTable) -> None:
        """Take over the counts of another table."""
        self.held, self.loads = other.held.copy(), other.loads.copy()

    def reordered(self, order: NDArray[np.int64]) -> BalanceTable:
        """Return the table with the members in another order, before anything was shared out."""
        far = None if self.far is None else self.far[:, order]
        return BalanceTable(self.supply, self.allowed[:, order], self.owned[:, order], far)

    @property
    def moved(self) -> int:
        """Return the number of partitions that have left their previous owner."""
        if not self.had.any():
            return 0
        return int(self.had.sum() - np.minimum(self.owned, self.held).sum())

    def shift(self, kind: int, giver: int, taker: int) -> None:
        """Move one partition of this kind."""
        self.held[kind, giver] -= 1
        self.held[kind, taker] += 1
        self.loads[giver] -= 1
        self.loads[taker] += 1

    def share_out(self, shares: Iterable[tuple[int, int]]) -> None:
        """Give unassigned partitions to the least loaded members, share by share (a kind and a count).

        Members in a replica's rack come before others, up to a fair load.
        """
        left = list(shares)
        if self.far is not None:
            near = self.allowed & ~self.far
            fair = int(self.supply.sum()) // len(self.loads)
            for i, (kind, units) in sorted(enumerate(left), key=lambda share: near[share[1][0]].sum()):
                room = int(np.maximum(fair - self.loads[near[kind]], 0).sum())
                self._pour(kind, np.flatnonzero(near[kind]), min(units, room))
                left[i] = kind, units - min(units, room)
        for kind, units in left:
            self._pour(kind, self.allowed[kind].nonzero()[0], units)

    def _pour(self, kind: int, takers: NDArray[np.int64], units: int) -> None:
        if units > 0:
            loads = self.loads[takers]
            poured = pour(loads, units)
            self.held[kind][takers] += poured
            self.loads[takers] = loads + poured

    def surely_best(self) -> bool:
        """Return whether balance and movement cannot improve, and nothing else matters."""
        return self.far is None and self.surely_least_moved()

    def surely_least_moved(self) -> bool:
        """Return whether loads differ by at most one and no fewer moves could have achieved that.

        A fast proof that holds for most groups. Loads of q and q + 1 are the best balance; a member that held
        more than q had to give the rest away, except that as many as may have q + 1 keep one more.
        """
        if np.ptp(self.loads) > 1:
            return False
        fair, extras = divmod(int(self.loads.sum()), len(self.loads))
        above = np.maximum(self.had - fair, 0)
        return self.moved == int(above.sum()) - min(extras, int(np.count_nonzero(above)))
