"""Kafka's uniform assignor, the default of the group protocol `consumer` (KIP-848): it runs in the broker.

If all members subscribe to the same topics, each may have P div M partitions, and P mod M members one more.

1. Member after member keeps the first of its partitions: one more than the quota while some of the extra ones
   are left, else the quota.
2. What nobody holds comes first in a row, in order; what step 1 took away follows, member by member.
3. The members that have room take consecutive pieces of the row, up to their quota. Extra partitions that
   step 1 left over go to the last of them.

With different subscriptions Kafka's answer depends on topic ids, and is not always the most balanced. Restow
balances exactly instead, as `sticky` does: no assignment is more balanced, and none that is as balanced takes
fewer partitions from their owners.

Kafka's assignor ignores racks, and so does this one.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from restow.assignors.base import NumberedAssignor
from restow.assignors.claims import read_claims
from restow.assignors.deal import deal
from restow.assignors.group import NOBODY, NumberedGroup
from restow.assignors.kinds import Kinds
from restow.assignors.sticky import answer, balance_exactly
from restow.assignors.user_data import Claim

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from restow.assignors.base import Dealt, PartitionRacks
    from restow.assignors.claims import Claims
    from restow.assignors.rows import PartitionRow


class Uniform(NumberedAssignor):
    """The broker's default since Kafka 4: even, and what can stay stays."""

    name = "uniform"

    def share_out(self, group: NumberedGroup, partition_racks: PartitionRacks | None) -> Dealt:  # noqa: ARG002 (Kafka's ignores racks too)
        if not group.members or not group.partition_count:
            return group.assignment([[] for _ in group.members])
        if group.uniform and not any(member.owned != () for member in group.members):
            return group.assignment(_pieces(group))
        claims = read_claims(group, lambda member: Claim(member.owned, member.generation))
        if not group.uniform:
            return answer(group, claims, _balanced(Kinds.of(group, None), group, claims))
        return answer(group, claims, _within_quotas(group, claims))


class RackUniform(Uniform):
    """Like uniform, and among equally even assignments one in which members read within their racks."""

    name = "rack-uniform"

    def share_out(self, group: NumberedGroup, partition_racks: PartitionRacks | None) -> Dealt:
        kinds = Kinds.of(group, partition_racks) if group.members and group.partition_count else None
        if kinds is None or (kinds.far is None and kinds.racks is None):
            return super().share_out(group, partition_racks)
        claims = read_claims(group, lambda member: Claim(member.owned, member.generation))
        return answer(group, claims, _balanced(kinds, group, claims))


def _pieces(group: NumberedGroup) -> list[PartitionRow]:
    """Return all partitions in one row, cut into pieces: the longer ones last."""
    quota, extras = divmod(group.partition_count, len(group.members))
    sizes = np.full(len(group.members), quota)
    sizes[len(sizes) - extras :] += 1
    return [group.row(range(start, end)) for start, end in pairwise((0, *np.cumsum(sizes).tolist()))]


def _within_quotas(group: NumberedGroup, claims: Claims) -> NDArray[np.int64]:
    """Return the owner of each partition, given the owner of each before."""
    before, had = claims.owner, claims.had
    members = len(group.members)
    quota, extras = divmod(len(before), members)
    free = np.flatnonzero(before == NOBODY)
    wants_more = had > quota
    has_extra = wants_more & (np.cumsum(wants_more) <= extras)
    kept = np.minimum(had, quota + has_extra)
    owner = before.copy()
    row = free
    if (kept < had).any():
        revoked = _beyond(before, had, kept)
        owner[revoked] = NOBODY
        row = np.concatenate((free, revoked))
    room = np.where(has_extra, 0, quota - kept)
    extras_left = extras - int(has_extra.sum())
    if extras_left:
        room[np.flatnonzero(~has_extra)[-extras_left:]] += 1
    owner[row] = np.repeat(np.arange(members), room)
    return owner


def _beyond(before: NDArray[np.int64], had: NDArray[np.int64], kept: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the partitions after the first ones that each member keeps, member by member."""
    losing = np.append(kept < had, False)  # -1, no owner, is the last index
    held = np.flatnonzero(losing[before])
    held = held[np.argsort(before[held], kind="stable")]
    mine = before[held]
    starts = np.flatnonzero(np.diff(mine, prepend=-1))
    rank = np.arange(len(held)) - np.repeat(starts, np.diff(starts, append=len(held)))
    return held[rank >= kept[mine]]


def _balanced(kinds: Kinds, group: NumberedGroup, claims: Claims) -> NDArray[np.int64]:
    ledger = kinds.ledger(claims.owner)
    balance_exactly(ledger, kinds.shares(group, claims.owner))
    return deal(kinds, claims, ledger.held)
