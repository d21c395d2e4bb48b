"""A cooperative-sticky assignor that balances expected work, not only counts of partitions.

Work is what a partition's reader has to do soon: its lag, and what arrives meanwhile (`work.expected_work`).
Each member tells the work of its own partitions in its user data; brokers and tools pass it in. Where nothing
is known of a partition, the mean of the others counts; if nothing is known at all, it is cooperative-sticky.

1. Members keep what they have, up to the count that the given skew allows.
2. What nobody has is dealt by work, the heaviest partition first, to the member with the least.
3. Members with too few partitions get the lightest of the busiest ones.
4. If the busiest member has more work than the tolerance allows, partitions move (`evening`).

The tolerance damps: a group moves nothing while its work is about even, and not for a small gain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.assignors.claims import read_claims
from restow.assignors.deal import deal
from restow.assignors.evening import Evening, EveningLimits, share_out
from restow.assignors.group import NumberedGroup, by_id
from restow.assignors.kinds import Kinds
from restow.assignors.sticky import CooperativeSticky, answer, balance_exactly
from restow.assignors.user_data import Claim
from restow.assignors.work import decode_work, encode_work
from restow.errors import InvalidGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from restow.assignors.base import Dealt, PartitionRacks
    from restow.model import Member, TopicPartition


class LagAware(CooperativeSticky):
    """Like cooperative-sticky, but balances expected work; counts stay within a bound.

    `measure` returns the work of partitions that this process reads, for the user data of its consumer.
    """

    name = "lag-aware"
    cooperative = True

    def __init__(
        self,
        measure: Callable[[], Mapping[TopicPartition, float]] | None = None,
        *,
        tolerance: float = 0.25,
        most_skew: int = 4,
        most_moved: float = 0.5,
    ) -> None:
        """`most_moved` is the share of all partitions that one rebalance may move for the sake of work."""
        if not tolerance > 0 or most_skew < 1 or not 0 <= most_moved <= 1:
            raise InvalidGroup(
                "lag-aware: the tolerance must be above 0, the skew at least 1, the share that moves 0 to 1"
            )
        self._measure = measure
        self._tolerance = tolerance
        self._spread = (most_skew - 1) // 2
        self._most_moved = most_moved

    def claim(self, member: Member) -> Claim:
        if member.user_data is not None:
            return Claim(member.owned, decode_work(member.user_data)[0])
        return Claim(member.owned, member.generation)

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        measured = {} if self._measure is None else self._measure()
        return encode_work(generation, {each: measured[each] for each in owned or () if each in measured})

    def assign(
        self,
        partitions: Mapping[str, int],
        members: Sequence[Member],
        partition_racks: PartitionRacks | None = None,
    ) -> Dealt:
        return self.assign_by_work(partitions, members, {}, partition_racks)

    def assign_by_work(
        self,
        partitions: Mapping[str, int],
        members: Sequence[Member],
        work: Mapping[TopicPartition, float],
        partition_racks: PartitionRacks | None = None,
    ) -> Dealt:
        group = NumberedGroup.of(partitions, members, by_id)
        if not group.members or not group.partition_count:
            return group.assignment([[] for _ in group.members])
        told = {
            where: amount
            for member in members
            if member.user_data is not None
            for where, amount in decode_work(member.user_data)[1].items()
        }
        known = {**told, **work}
        if not known:
            return super().assign(partitions, members, partition_racks)
        claims = read_claims(group, self.claim)
        kinds = Kinds.of(group, partition_racks)
        even = kinds.ledger(claims.owner)
        balance_exactly(even, kinds.shares(group, claims.owner))
        limits = self._limits(group, even.held.sum(axis=0))
        amounts = _amounts(group, known)
        owner = share_out(claims.owner, amounts, kinds, limits)
        if owner is None:  # the subscriptions leave no room for that
            owner = deal(kinds, claims, even.held)
        Evening(owner, amounts, kinds.allowed, kinds.kind_of, limits).run()
        return answer(group, claims, self.hand_over(claims, owner))

    def _limits(self, group: NumberedGroup, even: NDArray[np.int64]) -> EveningLimits:
        """Return how many partitions each member may have, given the counts of the most even assignment."""
        low, high = even, even
        if group.uniform:
            low, high = np.full_like(even, even.min()), np.full_like(even, even.max())
        return EveningLimits(
            fewest=np.maximum(low - self._spread, 0),
            most=high + self._spread,
            tolerance=self._tolerance,
            least_gain=self._tolerance / 5,
            most_moves=int(self._most_moved * group.partition_count),
        )


def _amounts(group: NumberedGroup, work: Mapping[TopicPartition, float]) -> NDArray[np.float64]:
    """Return the work of each partition by number; the mean of the known ones where nothing is known."""
    start = {topic: int(group.starts[at]) for at, topic in enumerate(group.topics)}
    count = dict(zip(group.topics, group.counts.tolist(), strict=True))
    amounts = np.full(group.partition_count, np.nan)
    for (topic, number), amount in work.items():
        if 0 <= number < count.get(topic, 0):
            amounts[start[topic] + number] = max(float(amount), 0.0)
    known = amounts[~np.isnan(amounts)]
    return np.where(np.isnan(amounts), known.mean() if known.size else 1.0, amounts)
