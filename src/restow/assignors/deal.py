"""Turn counts back into partitions: which ones a member keeps, and who gets the rest."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from restow.assignors.group import NOBODY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from restow.assignors.claims import Claims
    from restow.assignors.kinds import Kinds
    from restow.assignors.racks import Racks


def deal(kinds: Kinds, claims: Claims, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return an owner for each partition such that each member has its count of each kind.

    Members keep the first of their previous partitions, up to their count. The rest goes round the members of
    its kind that still need some, so that neighbours in a topic go to different members.
    """
    members = counts.shape[1]
    if claims.claimed.size:
        owner, kept = _keep(kinds, claims.owner, counts)
        wanted = counts - kept
    else:
        owner, wanted = claims.owner.copy(), counts
    _prefer_claimants(kinds, claims, owner, wanted)
    free = np.flatnonzero(owner == NOBODY)
    cells = np.flatnonzero(wanted)
    if not free.size or not cells.size:
        return owner
    shares = wanted.ravel()[cells]
    cell = np.repeat(cells, shares)
    turn = np.arange(len(cell)) - np.repeat(np.cumsum(shares) - shares, shares)
    # By kind, then turn by turn; within a turn the cells are already in the members' order.
    slots = cell[np.argsort(cell // members * (int(turn.max()) + 1) + turn, kind="stable")]
    free = free[np.argsort(kinds.kind_of[free], kind="stable")]
    takers = slots % members
    if kinds.racks is not None:
        takers = _near(kinds, kinds.racks, free, takers)
    owner[free] = takers
    return owner


def _near(
    kinds: Kinds, racks: Racks, free: NDArray[np.int64], takers: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the takers of each kind in an order that lets many read within their rack."""
    starts = np.flatnonzero(np.diff(kinds.kind_of[free], prepend=-1)).tolist()
    reordered: list[int] = []
    for start, end in pairwise((*starts, len(free))):
        reordered += racks.deal_near(free[start:end].tolist(), takers[start:end].tolist())
    return np.array(reordered, dtype=np.int64)


def _keep(
    kinds: Kinds, before: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the partitions that stay with their owner, and their number per kind and member."""
    members = counts.shape[1]
    owner = np.full(len(before), NOBODY, dtype=np.int64)
    held = np.flatnonzero(before != NOBODY)
    cell = kinds.kind_of[held] * members + before[held]
    had = np.bincount(cell, minlength=counts.size)
    if (had <= counts.ravel()).all():
        owner[held] = before[held]
        return owner, had.reshape(counts.shape)
    order = np.argsort(cell, kind="stable")
    rank = np.empty(len(held), dtype=np.int64)
    rank[order] = np.arange(len(held)) - (np.cumsum(had) - had)[cell[order]]
    keeps = held[rank < counts.ravel()[cell]]
    owner[keeps] = before[keeps]
    return owner, np.minimum(had.reshape(counts.shape), counts)


def _prefer_claimants(
    kinds: Kinds, claims: Claims, owner: NDArray[np.int64], wanted: NDArray[np.int64]
) -> None:
    """Give a contested partition to one of its claimants, who need not wait for it."""
    for partition, claimants in claims.contested.items():
        kind = kinds.kind_of[partition]
        for member in claimants:
            if wanted[kind, member] > 0:
                wanted[kind, member] -= 1
                owner[partition] = member
                break
