"""Direct moves: as long as some member may take a partition from one with at least two more, it does.

Sets of members and of kinds are bits of Python integers here. "Which members at this load may take
something this one holds" is then two machine-speed operations whatever the size of the group.
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from restow.assignors.ledger import Ledger


def level(ledger: Ledger) -> None:
    """Move from the most to the least loaded, one by one, until no direct move improves the balance."""
    if np.ptp(ledger.loads) > 1:
        _Leveling(ledger).run()


def _masks(table: NDArray[np.bool_]) -> list[int]:
    """Each row's set bits as one integer."""
    packed = np.packbits(table, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


class _Leveling:
    """The ledger's state as bit sets, kept in step with it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.takers = _masks(ledger.allowed)
        self.wants = _masks(ledger.allowed.T)
        self.holds = _masks((ledger.held > 0).T)
        self.spare = _masks((ledger.held > ledger.owned).T)
        self.lost = _masks((ledger.held < ledger.owned).T)
        self.at_load: dict[int, int] = {}
        for member, load in enumerate(ledger.loads.tolist()):
            self.at_load[load] = self.at_load.get(load, 0) | 1 << member
        self.heights = sorted(self.at_load)
        self.reach: dict[int, int] = {}

    def run(self) -> None:
        improved = True
        while improved:
            improved = False
            top = self.heights[-1]
            while top - self.heights[0] > 1:
                stuck = 0
                while givers := self.at_load.get(top, 0) & ~stuck:
                    giver = _lowest(givers)
                    taker = self._least_loaded_taker(giver, top - 2)
                    if taker is None:
                        stuck |= 1 << giver
                    else:
                        self._move(giver, taker, top)
                        improved = True
                below = [h for h in self.heights if h < top]
                if not below:
                    break
                top = below[-1]

    def _least_loaded_taker(self, giver: int, at_most: int) -> int | None:
        reach = self.reach.get(giver)
        if reach is None:
            reach = 0
            kinds = self.holds[giver]
            while kinds:
                kind = _lowest(kinds)
                reach |= self.takers[kind]
                kinds &= kinds - 1
            self.reach[giver] = reach
        for height in self.heights:
            if height > at_most:
                return None
            if found := reach & self.at_load[height]:
                return _lowest(found)
        return None

    def _move(self, giver: int, taker: int, load: int) -> None:
        ledger = self.ledger
        kind = self._cheapest_kind(giver, taker)
        taker_load = int(ledger.loads[taker])
        ledger.shift(kind, giver, taker)
        self._climb(giver, load, load - 1)
        self._climb(taker, taker_load, taker_load + 1)
        for member in (giver, taker):
            held, owned = int(ledger.held[kind, member]), int(ledger.owned[kind, member])
            bit = 1 << kind
            if (held > 0) != bool(self.holds[member] & bit):
                self.holds[member] ^= bit
                self.reach.pop(member, None)
            self.spare[member] = self.spare[member] | bit if held > owned else self.spare[member] & ~bit
            self.lost[member] = self.lost[member] | bit if held < owned else self.lost[member] & ~bit

    def _cheapest_kind(self, giver: int, taker: int) -> int:
        """Rather what the giver did not hold before, and what the taker did."""
        kinds = self.holds[giver] & self.wants[taker]
        spare, lost = self.spare[giver], self.lost[taker]
        return _lowest(kinds & spare & lost or kinds & (spare | lost) or kinds)

    def _climb(self, member: int, before: int, after: int) -> None:
        bit = 1 << member
        self.at_load[before] ^= bit
        if not self.at_load[before]:
            del self.at_load[before]
            self.heights.remove(before)
        if after not in self.at_load:
            insort(self.heights, after)
        self.at_load[after] = self.at_load.get(after, 0) | bit


