"""Match replicas and members by rack, so that members read within their rack (KIP-881)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from restow.assignors.base import PartitionRacks
    from restow.assignors.group import NumberedGroup
    from restow.model import Rack


@dataclass(frozen=True, slots=True)
class Racks:
    """The racks of each partition, by number, and the rack of each member."""

    sets: tuple[frozenset[Rack], ...]
    set_of: NDArray[np.int64]
    stands: tuple[Rack | None, ...]

    @classmethod
    def of(cls, group: NumberedGroup, partition_racks: PartitionRacks | None) -> Racks | None:
        """Return the racks of a group, or None where Kafka would ignore them.

        Kafka uses them if some member is in a replica's rack and not every partition is in all racks.
        """
        stands = tuple(member.rack or None for member in group.members)
        if partition_racks is None or not any(stands):
            return None
        seen: dict[frozenset[Rack | None], int] = {}
        set_of: list[int] = []
        for topic, count in zip(group.topics, group.counts.tolist(), strict=True):
            given = partition_racks.get(topic) or [()] * count
            set_of += [seen.setdefault(racks, len(seen)) for racks in map(frozenset, given)]
        number: dict[frozenset[Rack], int] = {}
        named = [frozenset(rack for rack in racks if rack is not None) for racks in seen]
        without_none = np.array([number.setdefault(racks, len(number)) for racks in named], dtype=np.int64)
        everywhere = frozenset().union(*number)
        if everywhere.isdisjoint(stands) or set(number) == {everywhere}:
            return None
        return cls(tuple(number), without_none[set_of], stands)

    def deal_near(self, partitions: Sequence[int], members: Sequence[int]) -> list[int]:
        """Return the members in an order such that many partitions meet one in a rack of theirs.

        Each partition takes from its rack with the most members left; partitions without one get the rest.
        """
        waiting: dict[Rack | None, list[int]] = {}
        for member in reversed(members):
            waiting.setdefault(self.stands[member], []).append(member)
        anywhere = waiting.pop(None, [])
        dealt: dict[int, int] = {}
        for partition in partitions:
            near = [waiting[rack] for rack in self.sets[self.set_of[partition]] if waiting.get(rack)]
            if near:
                dealt[partition] = max(near, key=len).pop()
        rest = iter(anywhere + [member for left in waiting.values() for member in left])
        return [dealt[partition] if partition in dealt else next(rest) for partition in partitions]
