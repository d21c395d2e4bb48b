"""The judge: what an assignment is worth, and what it cost to get there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentComparison:
    """Two assignments of one group beside each other."""

    balance_score: int
    """Kafka's: the sum over all pairs of members of how much their counts differ; 0 is even."""
    balance_score_before: int
    moved: int
    """Partitions that one member had and another has now."""
    revoked: int
    """Partitions taken from a member that is still there, handed on or not."""
    counts: Mapping[str, int]
    """How many each member has now."""


def compare(
    before: Mapping[str, Sequence[TopicPartition]], after: Mapping[str, Sequence[TopicPartition]]
) -> AssignmentComparison:
    """What changed from one assignment to the next, and how balanced each is."""
    had = {partition: member for member, partitions in before.items() for partition in partitions}
    has = {partition: member for member, partitions in after.items() for partition in partitions}
    taken = [(old, has.get(p)) for p, old in had.items() if has.get(p) != old]
    return AssignmentComparison(
        balance_score=balance_score(map(len, after.values())),
        balance_score_before=balance_score(map(len, before.values())),
        moved=sum(new is not None for _, new in taken),
        revoked=sum(old in after for old, _ in taken),
        counts={member: len(partitions) for member, partitions in after.items()},
    )


def balance_score(counts: Iterable[int]) -> int:
    """The sum of all pairwise differences, without looking at all pairs.

    In ascending order the i-th of n counts is the larger one in i pairs and the smaller in n − 1 − i.
    """
    ascending = sorted(counts)
    last = len(ascending) - 1
    return sum((2 * i - last) * count for i, count in enumerate(ascending))
