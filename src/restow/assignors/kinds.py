"""Which partitions are interchangeable: same possible readers, and replicas in the same racks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from restow.assignors.group import NOBODY
from restow.assignors.ledger import Ledger

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from restow.assignors.base import PartitionRacks
    from restow.assignors.group import Group
    from restow.model import Rack

# Beyond this many kinds × members, partitions are not told apart by racks: the table would not pay.
_CELLS_FOR_RACKS = 1 << 22


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kind of each partition, and who may read each kind."""

    kind_of: NDArray[np.int64]
    allowed: NDArray[np.bool_]
    far: NDArray[np.bool_] | None

    @classmethod
    def of(cls, group: Group, partition_racks: PartitionRacks | None) -> Kinds:
        """Tell the partitions of a group apart only where it matters."""
        columns, kind_of_topic = _distinct_columns(group.subscriptions)
        allowed = columns[group.subscription_of].T.copy()
        kind_of = np.repeat(kind_of_topic, group.counts)
        if partition_racks is None or not any(member.rack for member in group.members):
            return cls(kind_of, allowed, None)
        return _split_by_racks(group, cls(kind_of, allowed, None), partition_racks)

    def shares(self, group: Group, owner: NDArray[np.int64]) -> list[tuple[int, int]]:
        """What is to be shared out, as (kind, how many), in Kafka's order.

        Topics with fewer possible readers come first, since they leave less choice; then by name.
        """
        kept = (owner != NOBODY) & self.allowed[self.kind_of, owner]
        topic_of = np.repeat(np.arange(len(group.topics)), group.counts)[~kept]
        kind_of = self.kind_of[~kept]
        readers = self.allowed.sum(axis=1)[kind_of]
        order = np.lexsort((kind_of, topic_of, readers))
        kinds = kind_of[order]
        starts = np.flatnonzero(np.diff(kinds, prepend=-1))
        lengths = np.diff(starts, append=len(kinds))
        return list(zip(kinds[starts].tolist(), lengths.tolist(), strict=True))

    def ledger(self, owner: NDArray[np.int64]) -> Ledger:
        """The table to balance, with what each member held and may keep."""
        kinds, members = self.allowed.shape
        had = owner != NOBODY
        cell = self.kind_of[had] * members + owner[had]
        owned = np.bincount(cell, minlength=kinds * members).reshape(kinds, members)
        return Ledger(
            supply=np.bincount(self.kind_of, minlength=kinds),
            allowed=self.allowed,
            owned=np.where(self.allowed, owned, 0),
            far=self.far,
        )


def _distinct_columns(table: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """The distinct columns of a table, and for each column which of them it is."""
    packed = np.packbits(table, axis=0).T
    number: dict[bytes, int] = {}
    which = [number.setdefault(column.tobytes(), len(number)) for column in packed]
    first = {kind: column for column, kind in reversed(list(enumerate(which)))}
    return table[:, [first[kind] for kind in range(len(number))]], np.array(which, dtype=np.int64)


def _split_by_racks(group: Group, kinds: Kinds, partition_racks: PartitionRacks) -> Kinds:
    """Kinds told apart by their replicas' racks too, if Kafka would look at racks here.

    It does when some member stands in a replica's rack and not every partition is in all racks.
    """
    number: dict[frozenset[Rack], int] = {}
    racks_of: list[int] = []
    for topic, count in zip(group.topics, group.counts.tolist(), strict=True):
        given = partition_racks.get(topic) or [()] * count
        named = [frozenset(r for r in racks if r is not None) for racks in given]
        racks_of += [number.setdefault(racks, len(number)) for racks in named]
    everywhere = frozenset().union(*number)
    stands = [member.rack or None for member in group.members]
    if everywhere.isdisjoint(stands) or set(number) == {everywhere}:
        return kinds
    pair = kinds.kind_of * len(number) + np.array(racks_of, dtype=np.int64)
    pairs, kind_of = np.unique(pair, return_inverse=True)
    if len(pairs) * len(group.members) > _CELLS_FOR_RACKS:
        return kinds
    away = np.array([[rack is not None and rack not in racks for rack in stands] for racks in number])
    return Kinds(kind_of, kinds.allowed[pairs // len(number)], away[pairs % len(number)])
