"""Give units to the least loaded, as water finds its level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def pour(loads: NDArray[np.int64], units: int) -> NDArray[np.int64]:
    """Return the units for each so that the loads end as level as possible; ties go to the first."""
    order = np.argsort(loads, kind="stable")
    rising = loads[order]
    # Room below each step: what it takes to lift all lower ones to this one's height.
    room = rising * np.arange(len(rising)) - np.concatenate(([0], np.cumsum(rising)[:-1]))
    wet = int(np.searchsorted(room, units, side="right"))
    level, left = divmod(units + int(rising[:wet].sum()), wet)
    poured = np.zeros(len(loads), dtype=np.int64)
    poured[order[:wet]] = level - rising[:wet]
    poured[np.sort(order[:wet])[:left]] += 1
    return poured
