"""Give units to the least loaded, as water finds its level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def pour(loads: NDArray[np.int64], units: int) -> NDArray[np.int64]:
    """Return the units for each so that the loads end as level as possible; ties go to the first."""
    lowest = (loads == loads.min()).nonzero()[0]
    poured: NDArray[np.int64]
    if units <= len(lowest):  # mostly, as all but the first shares are small
        poured = np.zeros(len(loads), dtype=np.int64)
        poured[lowest[:units]] = 1
        return poured
    rising = loads.copy()
    rising.sort()
    # Room below each step: what it takes to lift all lower ones to this one's height.
    below = rising.cumsum() - rising
    room = rising * np.arange(len(rising)) - below
    wet = int(room.searchsorted(units, side="right"))
    level, left = divmod(units + int(below[wet - 1] + rising[wet - 1]), wet)
    poured = np.maximum(level - loads, 0)
    if left:  # exactly those that got wet stand at the level now, or stood there before
        poured[(loads <= level).nonzero()[0][:left]] += 1
    return poured
