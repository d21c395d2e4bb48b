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
    from restow.plan.search.problem import Floats, Ints


def max_min_by_loops(links: Ints, capacity: Floats, ceilings: Floats) -> Shares:
    """Return what `max_min` returns."""
    many = links.shape[1]
    rates, held_by = np.empty(many), np.empty(many, dtype=np.int64)
    passing = np.zeros(len(capacity))
    _share(links, capacity, ceilings, rates, held_by, passing)
    return Shares(rates, held_by, passing)


@compiled
def _share(
    links: Ints, capacity: Floats, ceilings: Floats, rates: Floats, held_by: Ints, passing: Floats
) -> None:
    width, many = links.shape
    size = len(capacity)
    left = np.maximum(capacity, 0.0)
    counts, share, used = np.zeros(size, np.int64), np.empty(size), np.empty(size)
    full = np.empty(size, np.bool_)
    rest, gone, level = np.arange(many), np.empty(many, np.int64), np.empty(many)
    rows = _limited(links, capacity)
    for row in rows:
        for flow in range(many):
            counts[links[row, flow]] += 1
    while many:
        for link in range(size):
            share[link] = left[link] / counts[link] if counts[link] > 0 else np.inf
            full[link] = True
            used[link] = 0.0
        for flow in rest[:many]:
            level[flow], held_by[flow] = ceilings[flow], -1
            for row in rows:
                if share[links[row, flow]] < level[flow]:
                    level[flow] = share[links[row, flow]]
                    held_by[flow] = row
            for row in rows:
                if share[links[row, flow]] > level[flow]:
                    full[links[row, flow]] = False
        done = stay = 0
        for flow in rest[:many]:
            ends = ceilings[flow] <= level[flow]
            for row in rows:
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
        for row in rows:
            for flow in gone[:done]:
                counts[links[row, flow]] -= 1
                used[links[row, flow]] += level[flow]
        for link in range(size):
            left[link] = max(left[link] - used[link], 0.0)
    for row in range(width):
        for flow in range(links.shape[1]):
            passing[links[row, flow]] += rates[flow]


@compiled
def _limited(links: Ints, capacity: Floats) -> Ints:
    """Return the rows in which any link has a limit: the others hold nothing back."""
    rows, found = np.empty(len(links), np.int64), 0
    for row in range(len(links)):
        for link in links[row]:
            if capacity[link] < np.inf:
                rows[found] = row
                found += 1
                break
    return rows[:found]
