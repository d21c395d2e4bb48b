"""The table as bit sets: members by load, and kinds that are held, wanted, spare and lost.

Sets of members and of kinds are bits of Python integers. "Which members at this load may take something that
this one holds" is then a few fast operations, whatever the size of the group.
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
    """Return the index of the lowest bit that is set."""
    return (mask & -mask).bit_length() - 1


def bits(mask: int) -> Iterator[int]:
    """Yield the indices of all bits that are set."""
    while mask:
        yield lowest(mask)
        mask &= mask - 1


def _masks(table: NDArray[np.bool_]) -> list[int]:
    packed = np.packbits(np.ascontiguousarray(table), axis=1, bitorder="little")
    width, data = packed.shape[1], packed.tobytes()
    return [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]


class Levels:
    """The sets; `move` keeps them in step with the table."""

    def __init__(self, ledger: BalanceTable) -> None:
        self.ledger = ledger
        self.loads: list[int] = ledger.loads.tolist()
        self.takers = _masks(ledger.allowed)
        self.wants = _masks(ledger.allowed.T)
        self.holds = _masks((ledger.held > 0).T)
        if ledger.had.any():
            self.spare = _masks((ledger.held > ledger.owned).T)
            self.lost = _masks((ledger.held < ledger.owned).T)
        else:
            self.spare = self.holds.copy()
            self.lost = [0] * len(self.holds)
        self.at_load: dict[int, int] = {}
        for member, load in enumerate(self.loads):
            self.at_load[load] = self.at_load.get(load, 0) | 1 << member
        self.heights = sorted(self.at_load)
        self._reach: dict[int, int] = {}

    def members_up_to(self, load: int) -> int:
        """Return all members with at most this load."""
        return sum(self.at_load[height] for height in self.heights if height <= load)

    def reach(self, giver: int) -> int:
        """Return all members that may take something from this one."""
        reach = self._reach.get(giver)
        if reach is None:
            reach = 0
            for kind in bits(self.holds[giver]):
                reach |= self.takers[kind]
            self._reach[giver] = reach
        return reach

    def least_loaded_taker(self, giver: int) -> int | None:
        """Return the best member to take something from this one; None if none has at least two fewer."""
        reach = self.reach(giver)
        for height in self.heights:
            if height > self.loads[giver] - 2:
                return None
            if found := reach & self.at_load[height]:
                return lowest(found)
        return None

    def cheapest_kind(self, giver: int, taker: int) -> int:
        """Return the kind to give: preferably new to the giver, and previously owned by the taker."""
        kinds = self.holds[giver] & self.wants[taker]
        spare, lost = self.spare[giver], self.lost[taker]
        return lowest(kinds & spare & lost or kinds & (spare | lost) or kinds)

    def move(self, kind: int, giver: int, taker: int) -> None:
        """Move one partition of this kind."""
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
