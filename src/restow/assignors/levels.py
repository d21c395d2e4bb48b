"""A ledger as bit sets: who stands at which load, who holds, wants, has to spare and has lost what.

Sets of members and of kinds are bits of Python integers. "Which members at this load may take something
this one holds" is then a couple of operations at the machine's speed, whatever the size of the group.
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from restow.assignors.ledger import BalanceTable


def lowest(mask: int) -> int:
    """The number of the lowest bit that is set."""
    return (mask & -mask).bit_length() - 1


def bits(mask: int) -> Iterator[int]:
    """The numbers of all bits that are set."""
    while mask:
        yield lowest(mask)
        mask &= mask - 1


def _masks(table: NDArray[np.bool_]) -> list[int]:
    packed = np.packbits(table, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


class Levels:
    """The sets, kept in step with the ledger by `move`."""

    def __init__(self, ledger: BalanceTable) -> None:
        self.ledger = ledger
        self.loads: list[int] = ledger.loads.tolist()
        self.takers = _masks(ledger.allowed)
        self.wants = _masks(ledger.allowed.T)
        self.holds = _masks((ledger.held > 0).T)
        self.spare = _masks((ledger.held > ledger.owned).T)
        self.lost = _masks((ledger.held < ledger.owned).T)
        self.at_load: dict[int, int] = {}
        for member, load in enumerate(self.loads):
            self.at_load[load] = self.at_load.get(load, 0) | 1 << member
        self.heights = sorted(self.at_load)
        self._reach: dict[int, int] = {}

    def members_up_to(self, load: int) -> int:
        """All members with at most this load."""
        return sum(self.at_load[height] for height in self.heights if height <= load)

    def reach(self, giver: int) -> int:
        """All who may take something that this one holds."""
        reach = self._reach.get(giver)
        if reach is None:
            reach = 0
            for kind in bits(self.holds[giver]):
                reach |= self.takers[kind]
            self._reach[giver] = reach
        return reach

    def least_loaded_taker(self, giver: int) -> int | None:
        """Who would best take something from this member, if anybody has at least two less."""
        reach = self.reach(giver)
        for height in self.heights:
            if height > self.loads[giver] - 2:
                return None
            if found := reach & self.at_load[height]:
                return lowest(found)
        return None

    def cheapest_kind(self, giver: int, taker: int) -> int:
        """What to give: rather what the giver did not hold before, and what the taker did."""
        kinds = self.holds[giver] & self.wants[taker]
        spare, lost = self.spare[giver], self.lost[taker]
        return lowest(kinds & spare & lost or kinds & (spare | lost) or kinds)

    def move(self, kind: int, giver: int, taker: int) -> None:
        """One partition of this kind changes hands."""
        ledger = self.ledger
        ledger.shift(kind, giver, taker)
        self._climb(giver, -1)
        self._climb(taker, +1)
        bit = 1 << kind
        for member in (giver, taker):
            held, owned = int(ledger.held[kind, member]), int(ledger.owned[kind, member])
            if (held > 0) != bool(self.holds[member] & bit):
                self.holds[member] ^= bit
                self._reach.pop(member, None)
            self.spare[member] = self.spare[member] | bit if held > owned else self.spare[member] & ~bit
            self.lost[member] = self.lost[member] | bit if held < owned else self.lost[member] & ~bit

    def _climb(self, member: int, by: int) -> None:
        before = self.loads[member]
        after = self.loads[member] = before + by
        self.at_load[before] ^= 1 << member
        if not self.at_load[before]:
            del self.at_load[before]
            self.heights.remove(before)
        if after not in self.at_load:
            insort(self.heights, after)
        self.at_load[after] = self.at_load.get(after, 0) | 1 << member
