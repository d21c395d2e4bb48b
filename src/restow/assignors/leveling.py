"""Direct moves: while a member may take a partition from one with at least two more, it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.assignors.levels import Levels, lowest

if TYPE_CHECKING:
    from restow.assignors.ledger import BalanceTable


def level(ledger: BalanceTable) -> None:
    """Move from the most to the least loaded, one by one, until no direct move improves the balance."""
    if np.ptp(ledger.loads) < 2:
        return
    levels = Levels(ledger)
    while _sweep(levels):
        pass


def is_level(ledger: BalanceTable) -> bool:
    """Return whether no direct move would improve the balance."""
    levels = Levels(ledger)
    return all(levels.least_loaded_taker(member) is None for member in range(len(levels.loads)))


def _sweep(levels: Levels) -> bool:
    """Visit the members once, most loaded first; return whether anything moved."""
    moved = False
    top: int | None = levels.heights[-1]
    while top is not None and top - levels.heights[0] > 1:
        stuck = 0
        while givers := levels.at_load.get(top, 0) & ~stuck:
            giver = lowest(givers)
            taker = levels.least_loaded_taker(giver)
            if taker is None:
                stuck |= 1 << giver
            else:
                levels.move(levels.cheapest_kind(giver, taker), giver, taker)
                moved = True
        top = next((height for height in reversed(levels.heights) if height < top), None)
    return moved
