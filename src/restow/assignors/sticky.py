"""Kafka's sticky and cooperative-sticky assignors: balanced, and as little moved as possible.

Kafka has two algorithms for this, one for groups whose members all want the same topics and a quadratic
search for the others. Here it is one: the group becomes a table of counts (`ledger`), which is balanced
exactly (`cycles`) or gently (`gentle`) and then turned back into partitions (`deal`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from restow.assignors.base import Assignor
from restow.assignors.claims import read_claims
from restow.assignors.cycles import settle, swap
from restow.assignors.deal import deal
from restow.assignors.gentle import share_out_gently
from restow.assignors.group import NOBODY, NumberedGroup, by_id
from restow.assignors.kinds import Kinds
from restow.assignors.leveling import is_level, level
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
    from restow.assignors.ledger import BalanceTable
    from restow.model import Member, TopicPartition


class _Sticking(Assignor):
    """What the two have in common: who held what, the new balance, who keeps what."""

    def assign(
        self,
        partitions: Mapping[str, int],
        members: Sequence[Member],
        partition_racks: PartitionRacks | None = None,
    ) -> Assignment:
        group = NumberedGroup.of(partitions, members, by_id)
        if not group.members or not group.partition_count:
            return group.assignment([[] for _ in group.members])
        claims = read_claims(group, self.claim)
        kinds = Kinds.of(group, partition_racks)
        if not claims.claimed.size and kinds.indifferent:
            return group.assignment(group.around())
        ledger = kinds.ledger(claims.owner)
        self.balance(ledger, kinds.shares(group, claims.owner))
        return _answer(group, claims, self.hand_over(claims, deal(kinds, claims, ledger.held)))

    @abstractmethod
    def claim(self, member: Member) -> Claim:
        """What a member held, and since when."""

    @abstractmethod
    def balance(self, ledger: BalanceTable, shares: Sequence[tuple[int, int]]) -> None:
        """Share out what is nobody's and move what has to be moved."""

    @abstractmethod
    def hand_over(self, claims: Claims, owner: NDArray[np.int64]) -> NDArray[np.int64]:
        """What of the new assignment may take effect at once."""


class Sticky(_Sticking):
    """Members let go of everything and get back what they can: the eager protocol.

    The balance is the best there is, and no assignment with that balance moves less.
    """

    name = "sticky"

    def claim(self, member: Member) -> Claim:
        if member.user_data is not None:
            return decode_claim(member.user_data)
        return Claim(member.owned, member.generation)

    def balance(self, ledger: BalanceTable, shares: Sequence[tuple[int, int]]) -> None:
        _balance_exactly(ledger, shares)

    def hand_over(self, claims: Claims, owner: NDArray[np.int64]) -> NDArray[np.int64]:  # noqa: ARG002
        return owner

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        return None if owned is None else encode_claim(tuple(owned), generation)


class CooperativeSticky(_Sticking):
    """Members go on reading what they keep; what changes hands is first only let go of.

    The group meets again when that is done, and only then is it handed out. Since that is what costs a
    group its time, balance stops where Kafka's does, and little is taken to get there.
    """

    name = "cooperative-sticky"
    cooperative = True

    def claim(self, member: Member) -> Claim:
        """The subscription says what is owned; user data, where given, says since when."""
        if member.user_data is not None:
            return Claim(member.owned, decode_generation(member.user_data))
        return Claim(member.owned, member.generation)

    def balance(self, ledger: BalanceTable, shares: Sequence[tuple[int, int]]) -> None:
        if not ledger.owned.any():  # nobody has anything to lose
            _balance_exactly(ledger, shares)
            return
        share_out_gently(ledger, shares)
        if ledger.far is not None:
            nearer = ledger.copy()
            swap(nearer)
            if is_level(nearer):
                ledger.adopt(nearer)

    def hand_over(self, claims: Claims, owner: NDArray[np.int64]) -> NDArray[np.int64]:
        owner = np.where((claims.owner != NOBODY) & (claims.owner != owner), NOBODY, owner)
        for partition, claimants in claims.contested.items():
            if owner[partition] not in claimants:
                owner[partition] = NOBODY
        return owner

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:  # noqa: ARG002
        return encode_generation(generation)


def _balance_exactly(ledger: BalanceTable, shares: Sequence[tuple[int, int]]) -> None:
    ledger.share_out(shares)
    level(ledger)
    if not ledger.surely_best():
        settle(ledger)


def _answer(group: NumberedGroup, claims: Claims, owner: NDArray[np.int64]) -> Assignment:
    """Each member's list; who has what they had gets back their own words, which need not be made again."""
    same = claims.unchanged(owner)
    made = iter(group.lists(owner, of=~same))
    return group.assignment(
        [list(said) if kept else next(made) for said, kept in zip(claims.said, same.tolist(), strict=True)]
    )
