"""Kafka's sticky and cooperative-sticky assignors: balanced first, then as little moved as possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.assignors.base import Assignor
from restow.assignors.claims import read_claims
from restow.assignors.cycles import settle
from restow.assignors.deal import deal
from restow.assignors.gentle import level_gently
from restow.assignors.group import NOBODY, Group, java_order
from restow.assignors.kinds import Kinds
from restow.assignors.leveling import level
from restow.assignors.user_data import (
    Claim,
    decode_claim,
    decode_generation,
    encode_claim,
    encode_generation,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from restow.assignors.base import Assignment, PartitionRacks
    from restow.assignors.claims import Claims
    from restow.model import Member, TopicPartition


class Sticky(Assignor):
    """Members let go of everything and get back what they can: the eager protocol."""

    name = "sticky"

    def assign(
        self,
        partitions: Mapping[str, int],
        members: Sequence[Member],
        partition_racks: PartitionRacks | None = None,
    ) -> Assignment:
        group = Group.of(partitions, members)
        claims = read_claims(group, self.claim)
        return group.assignment(self.hand_over(claims, _rebalance(group, claims.owner, partition_racks, self.cooperative, claims.contested)))

    def claim(self, member: Member) -> Claim:
        """What the member held: from its user data where there is any."""
        if member.user_data is not None:
            return decode_claim(member.user_data)
        return Claim(member.owned, member.generation)

    def hand_over(self, claims: Claims, owner: NDArray[np.int64]) -> NDArray[np.int64]:  # noqa: ARG002
        """What of the new assignment may take effect at once."""
        return owner

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        return None if owned is None else encode_claim(tuple(owned), generation)


class CooperativeSticky(Sticky):
    """Members keep reading what they keep; what changes hands is first only let go of.

    The group rebalances once more when it has been, and then it is handed out.
    """

    name = "cooperative-sticky"
    cooperative = True

    def claim(self, member: Member) -> Claim:
        """The subscription says what is owned; user data, where given, says since when."""
        if member.user_data is not None:
            return Claim(member.owned, decode_generation(member.user_data))
        return Claim(member.owned, member.generation)

    def hand_over(self, claims: Claims, owner: NDArray[np.int64]) -> NDArray[np.int64]:
        owner = np.where((claims.owner != NOBODY) & (claims.owner != owner), NOBODY, owner)
        for partition, claimants in claims.contested.items():
            if owner[partition] not in claimants:
                owner[partition] = NOBODY
        return owner

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:  # noqa: ARG002
        return encode_generation(generation)


def _rebalance(group: Group, before: NDArray[np.int64], partition_racks, coop, contested) -> NDArray[np.int64]:
    """The new owner of each partition."""
    if not group.members or not group.partition_count:
        return np.full(group.partition_count, NOBODY, dtype=np.int64)
    kinds = Kinds.of(group, partition_racks)
    by_id = np.array(sorted(range(len(group.members)), key=lambda m: java_order(group.members[m].id)))
    ledger = kinds.ledger(before)
    ledger.share_out(kinds.shares(group, ledger, before), by_id)
    if coop:
        level_gently(ledger)
        if ledger.moved and ledger.held.size <= 4096:
            narrow = by_id[np.argsort(kinds.allowed.sum(axis=0)[by_id], kind="stable")]
            for order in (by_id[::-1], narrow, narrow[::-1]):
                other = kinds.ledger(before)
                other.share_out(kinds.shares(group, other, before), order)
                level_gently(other)
                if other.moved < ledger.moved: ledger = other
            from restow.assignors.leveling import level as lv
            other = kinds.ledger(before)
            other.share_out(kinds.shares(group, other, before), by_id)
            lv(other); settle(other)
            from restow.assignors.gentle import _give_back
            while _give_back(other): pass
            if other.moved < ledger.moved: ledger = other
    else:
        level(ledger)
        if not ledger.surely_best():
            settle(ledger)
    return deal(kinds, before, ledger.held, contested)
