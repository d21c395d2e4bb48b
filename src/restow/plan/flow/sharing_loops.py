"""The same sharing as `max_min`, as loops that numba compiles: for rehearsals that share thousands of times.

It adds and subtracts in the order in which `max_min` does, so both give the same rates to the last bit.
Interpreted, these loops are slower than numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.flow.sharing import Shares
from restow.plan.search.compiled import compiled

if TYPE_CHECKING:
    from restow.plan.flow.sharing import Floats, Ints


def max_min_by_loops(links: Ints, capacity: Floats, ceilings: Floats) -> Shares:
    """Return what `max_min` returns."""
    many = links.shape[1]
    rates, held_by = np.zeros(many), np.full(many, -1, dtype=np.int64)
    _share(np.ascontiguousarray(links), np.maximum(capacity, 0.0), ceilings.copy(), rates, held_by)
    return Shares(rates, held_by)


@compiled
def _share(links: Ints, left: Floats, ceilings: Floats, rates: Floats, held_by: Ints) -> None:
    width, many = links.shape
    size = len(left)
    counts, share, used = np.zeros(size, np.int64), np.empty(size), np.empty(size)
    full = np.empty(size, np.bool_)
    rest, gone, level = np.arange(many), np.empty(many, np.int64), np.empty(many)
    for row in range(width):
        for flow in range(many):
            counts[links[row, flow]] += 1
    while many:
        for link in range(size):
            share[link] = left[link] / counts[link] if counts[link] > 0 else np.inf
            full[link] = True
            used[link] = 0.0
        for flow in rest[:many]:
            level[flow] = ceilings[flow]
            for row in range(width):
                if share[links[row, flow]] < level[flow]:
                    level[flow] = share[links[row, flow]]
                    held_by[flow] = row
            for row in range(width):
                if share[links[row, flow]] > level[flow]:
                    full[links[row, flow]] = False
        done = stay = 0
        for flow in rest[:many]:
            ends = ceilings[flow] <= level[flow]
            for row in range(width):
                ends = ends or (full[links[row, flow]] and share[links[row, flow]] <= level[flow])
            if ends:
                gone[done] = flow
                done += 1
                rates[flow] = level[flow]
                held_by[flow] = -1 if ceilings[flow] <= level[flow] else links[held_by[flow], flow]
            else:
                rest[stay] = flow
                stay += 1
        many = stay
        for row in range(width):
            for flow in gone[:done]:
                counts[links[row, flow]] -= 1
                used[links[row, flow]] += level[flow]
        for link in range(size):
            left[link] = max(left[link] - used[link], 0.0)
