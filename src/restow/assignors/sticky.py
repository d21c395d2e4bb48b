"""Kafka's sticky and cooperative-sticky assignors: balanced, and as little moved as possible.

Kafka has two algorithms for this, one for groups whose members all have the same topics and a quadratic
search for the others. Here it is one: the group becomes a table of counts (`ledger`), which is balanced
exactly (`cycles`) or gently (`gentle`) and then turned back into partitions (`deal`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from restow.assignors.base import NumberedAssignor
from restow.assignors.claims import read_claims
from restow.assignors.cycles import settle, swap
from restow.assignors.deal import deal
from restow.assignors.gentle import share_out_gently
from restow.assignors.group import NOBODY, NumberedGroup
from restow.assignors.kinds import Kinds
from restow.assignors.leveling import is_level, level
from restow.assignors.rows import PartitionRow
from restow.assignors.user_data import (
    Claim,
    decode_claim,
    decode_generation,
    encode_claim,
    encode_generation,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from restow.assignors.base import Dealt, PartitionRacks
    from restow.assignors.claims import Claims
    from restow.assignors.ledger import BalanceTable
    from restow.model import Member, TopicPartition


class _Sticking(NumberedAssignor):
    """The common part of both: previous owners, the new balance, the partitions that are kept."""

    def share_out(self, group: NumberedGroup, partition_racks: PartitionRacks | None) -> Dealt:
        if not group.members or not group.partition_count:
            return group.assignment([[] for _ in group.members])
        claims = read_claims(group, self.claim)
        kinds = Kinds.of(group, partition_racks)
        if not claims.claimed.size and kinds.indifferent:
            return group.assignment(group.around())
        ledger = kinds.ledger(claims.owner)
        self.balance(ledger, kinds.shares(group, claims.owner))
        return answer(group, claims, self.hand_over(claims, deal(kinds, claims, ledger.held)))

    @abstractmethod
    def claim(self, member: Member) -> Claim:
        """Return a member's previous partitions and their generation."""

    @abstractmethod
    def balance(self, ledger: BalanceTable, shares: Sequence[tuple[int, int]]) -> None:
        """Share out unassigned partitions and move those that have to move."""

    @abstractmethod
    def hand_over(self, claims: Claims, owner: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the part of the new assignment that takes effect at once."""


class Sticky(_Sticking):
    """The eager protocol: members revoke everything and get back what they can.

    The balance is optimal, and no assignment with that balance moves less.
    """

    name = "sticky"

    def claim(self, member: Member) -> Claim:
        if member.user_data is not None:
            return decode_claim(member.user_data)
        return Claim(member.owned, member.generation)

    def balance(self, ledger: BalanceTable, shares: Sequence[tuple[int, int]]) -> None:
        balance_exactly(ledger, shares)

    def hand_over(self, claims: Claims, owner: NDArray[np.int64]) -> NDArray[np.int64]:  # noqa: ARG002
        return owner

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        return None if owned is None else encode_claim(tuple(owned), generation)


class CooperativeSticky(_Sticking):
    """The cooperative protocol: members keep reading; a partition that changes owner is only revoked at
    first.

    The group rebalances again after that, and only then is the partition given out. Since that costs a group
    time, balance stops where Kafka's does, and little is taken to get there.
    """

    name = "cooperative-sticky"
    cooperative = True

    def claim(self, member: Member) -> Claim:
        """Return the owned partitions from the subscription, and the generation from user data if given."""
        if member.user_data is not None:
            return Claim(member.owned, decode_generation(member.user_data))
        return Claim(member.owned, member.generation)

    def balance(self, ledger: BalanceTable, shares: Sequence[tuple[int, int]]) -> None:
        if not ledger.owned.any():  # no member has anything to lose
            balance_exactly(ledger, shares)
            return
        share_out_gently(ledger, shares)
        if ledger.far is not None:
            nearer = ledger.copy()
            swap(nearer)
            if not np.array_equal(nearer.held, ledger.held) and is_level(nearer):
                ledger.adopt(nearer)

    def hand_over(self, claims: Claims, owner: NDArray[np.int64]) -> NDArray[np.int64]:
        owner = np.where((claims.owner != NOBODY) & (claims.owner != owner), NOBODY, owner)
        for partition, claimants in claims.contested.items():
            if owner[partition] not in claimants:
                owner[partition] = NOBODY
        return owner

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:  # noqa: ARG002
        return encode_generation(generation)


def balance_exactly(ledger: BalanceTable, shares: Sequence[tuple[int, int]]) -> None:
    """Balance a table as well as possible, and with the least movement for that."""
    ledger.share_out(shares)
    level(ledger)
    if not ledger.surely_best():
        settle(ledger)


def answer(group: NumberedGroup, claims: Claims, owner: NDArray[np.int64]) -> Dealt:
    """Return each member's row; members without a change get back their own objects."""
    same = claims.unchanged(owner)
    made = iter(group.rows(owner, of=~same))
    return group.assignment(
        [
            (said if isinstance(said, PartitionRow) else list(said)) if kept else next(made)
            for said, kept in zip(claims.said, same.tolist(), strict=True)
        ]
    )
