"""Find interchangeable partitions: the same subscribers, and replicas in the same racks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from restow.assignors.group import NOBODY, distinct_columns
from restow.assignors.ledger import BalanceTable
from restow.assignors.racks import Racks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from restow.assignors.base import PartitionRacks
    from restow.assignors.group import NumberedGroup

# Beyond this many kinds × members, racks do not distinguish partitions: the table would be too large.
_CELLS_FOR_RACKS = 1 << 22


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kind of each partition, and the possible readers of each kind."""

    kind_of: NDArray[np.int64]
    allowed: NDArray[np.bool_]
    far: NDArray[np.bool_] | None
    """Kinds × members: whether no replica is in the member's rack, if racks distinguish kinds."""
    racks: Racks | None
    """The racks, if there are too many for that."""

    @classmethod
    def of(cls, group: NumberedGroup, partition_racks: PartitionRacks | None) -> Kinds:
        """Distinguish the partitions of a group only where it matters."""
        columns, kind_of_topic = distinct_columns(group.subscriptions)
        allowed = columns[group.subscription_of].T.copy()
        kind_of = np.repeat(kind_of_topic, group.counts)
        kinds = cls(kind_of, allowed, None, None)
        racks = Racks.of(group, partition_racks)
        return kinds if racks is None else _split_by_racks(kinds, racks)

    @property
    def indifferent(self) -> bool:
        """Whether it makes no difference who reads what."""
        return bool(self.allowed.all()) and self.far is None and self.racks is None

    def shares(self, group: NumberedGroup, owner: NDArray[np.int64]) -> list[tuple[int, int]]:
        """Return what to share out, as (kind, count), in Kafka's order.

        Topics with fewer subscribers come first, because they leave less choice; then by name.
        """
        kinds = len(self.allowed)
        both = np.repeat(np.arange(len(group.topics)) * kinds, group.counts) + self.kind_of
        held = owner != NOBODY
        if held.any():
            both = both[~(held & self.allowed[self.kind_of, owner])]
        both, free = np.unique(both, return_counts=True)
        kind_of = both % kinds
        readers = np.count_nonzero(self.allowed, axis=1)[kind_of]
        order = np.lexsort((both, readers))
        in_order = kind_of[order]
        starts = np.flatnonzero(np.diff(in_order, prepend=-1))
        amounts = np.add.reduceat(free[order], starts) if starts.size else free
        return list(zip(in_order[starts].tolist(), amounts.tolist(), strict=True))

    def ledger(self, owner: NDArray[np.int64]) -> BalanceTable:
        """Return the table to balance, with the previous partitions that each member may keep."""
        kinds, members = self.allowed.shape
        had = owner != NOBODY
        owned = np.zeros((kinds, members), dtype=np.int64)
        if had.any():
            cell = self.kind_of[had] * members + owner[had]
            owned = np.bincount(cell, minlength=kinds * members).reshape(kinds, members)
            owned *= self.allowed
        return BalanceTable(
            supply=np.bincount(self.kind_of, minlength=kinds),
            allowed=self.allowed,
            owned=owned,
            far=self.far,
        )


def _split_by_racks(kinds: Kinds, racks: Racks) -> Kinds:
    """Return kinds that also differ by their replicas' racks, unless the table would get too large."""
    pairs, kind_of = np.unique(kinds.kind_of * len(racks.sets) + racks.set_of, return_inverse=True)
    if len(pairs) * len(racks.stands) > _CELLS_FOR_RACKS:
        return Kinds(kinds.kind_of, kinds.allowed, None, racks)
    away = np.array([[rack is not None and rack not in near for rack in racks.stands] for near in racks.sets])
    return Kinds(kind_of, kinds.allowed[pairs // len(racks.sets)], away[pairs % len(racks.sets)], None)
