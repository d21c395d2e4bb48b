"""Share links among the copies that pass them: max-min fair, as followers that fetch in turn get it.

A link is one way through one broker, or a disk. Each copy passes a few links. No copy can get more without
taking from one that has less, or passing its own ceiling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from restow.plan.search.problem import Floats, Ints

OWN_CEILING = -1


class Shares(NamedTuple):
    """What each copy gets, and which link holds it back: an index, or `OWN_CEILING`."""

    rates: Floats
    held_by: Ints
    link_rates: Floats
    """What passes each link."""


if TYPE_CHECKING:
    Sharing: TypeAlias = Callable[[Ints, Floats, Floats], Shares]


def sharing(*, often: bool) -> Sharing:
    """Return `max_min`; if it is needed often and numba is there, compiled, which takes a while to load."""
    if often:
        from restow.plan.flow.sharing_loops import max_min_by_loops
        from restow.plan.search.compiled import COMPILES

        if COMPILES:
            return max_min_by_loops
    return max_min


def max_min(links: Ints, capacity: Floats, ceilings: Floats) -> Shares:
    """Return the rates of copies, each a column of `links` without repeats.

    In each round, a link whose equal share is the least that any of its copies could get is full, and its
    copies get that share. Many links are full in one round, so there are few rounds.
    """
    rates = np.zeros(links.shape[1])
    held_by = np.full(links.shape[1], OWN_CEILING, dtype=np.int64)
    left, size = np.maximum(capacity, 0.0), len(capacity)
    limited = np.isfinite(capacity)[links].any(axis=1)
    here, most, rest = links[limited if limited.any() else [0]], ceilings, np.arange(links.shape[1])
    width = len(here)
    counts = np.bincount(here.ravel(), minlength=size)
    while len(rest):
        share = np.divide(left, counts, out=np.full(size, np.inf), where=counts > 0)
        offers = share[here]
        level = np.minimum(offers.min(axis=0), most)
        tight = offers <= level
        full = np.ones(size, dtype=bool)
        full[here[~tight]] = False
        done = (full[here] & tight).any(axis=0)
        own = most <= level
        done |= own
        gone = np.flatnonzero(done)
        out, got = here[:, gone], level[gone]
        rates[rest[gone]] = got
        by = out[offers[:, gone].argmin(axis=0), np.arange(len(gone))]
        held_by[rest[gone]] = np.where(own[gone], OWN_CEILING, by)
        counts -= np.bincount(out.ravel(), minlength=size)
        with np.errstate(invalid="ignore"):
            left = np.maximum(left - np.bincount(out.ravel(), np.tile(got, width), minlength=size), 0.0)
        stay = np.flatnonzero(~done)
        here, most, rest = here[:, stay], most[stay], rest[stay]
    passing = np.bincount(links.ravel(), np.tile(rates, len(links)), minlength=size)
    return Shares(rates, held_by, passing.astype(np.float64, copy=False))
