"""Share links among the copies that pass them: max-min fair, as followers that fetch in turn get it.

A link is one way through one broker, or a disk. Each copy passes a few links. No copy can get more without
taking from one that has less, or passing its own ceiling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

OWN_CEILING = -1


class Shares(NamedTuple):
    """What each copy gets, and which link holds it back: an index, or `OWN_CEILING`."""

    rates: Floats
    held_by: Ints


def max_min(links: Ints, capacity: Floats, ceilings: Floats) -> Shares:
    """Return the rates of copies, each a column of `links` without repeats.

    In each round, a link whose equal share is the least that any of its copies could get is full, and its
    copies get that share. Many links are full in one round, so there are few rounds.
    """
    rates = np.zeros(links.shape[1])
    held_by = np.full(links.shape[1], OWN_CEILING, dtype=np.int64)
    left, size = np.maximum(capacity, 0.0), len(capacity)
    here, most, rest = links, ceilings, np.arange(links.shape[1])
    while len(rest):
        counts = sum(np.bincount(column, minlength=size) for column in here)
        share = np.divide(left, counts, out=np.full(size, np.inf), where=counts > 0)
        level, by = most, np.full(len(rest), OWN_CEILING, dtype=np.int64)
        for column in here:
            offer = share[column]
            by = np.where(offer < level, column, by)
            level = np.minimum(offer, level)
        held = np.zeros(size)
        for column in here:
            held += np.bincount(column, share[column] <= level, minlength=size)
        full = np.append((held == counts) & (counts > 0), [True])  # the last one stands for OWN_CEILING
        done = full[by]
        for column in here:
            done |= full[column] & (share[column] <= level)
        gone = np.flatnonzero(done)
        rates[rest[gone]], held_by[rest[gone]] = level[gone], by[gone]
        with np.errstate(invalid="ignore"):
            for column in here:
                left = left - np.bincount(column[gone], level[gone], minlength=size)
        left = np.maximum(left, 0.0)
        stay = np.flatnonzero(~done)
        here, most, rest = here[:, stay], most[stay], rest[stay]
    return Shares(rates, held_by)
