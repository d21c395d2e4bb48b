"""Compare assignments: their balance, and the movement between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow._frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.model import TopicPartition


@frozen
class AssignmentComparison:
    """The comparison of two assignments of one group."""

    balance_score: int
    """Kafka's score: the sum over all pairs of members of the difference of their counts; 0 is even."""
    balance_score_before: int
    moved: int
    """Partitions that changed from one member to another."""
    revoked: int
    """Partitions taken from a member that is still there, given to another or not."""
    counts: Mapping[str, int]
    """The number of partitions of each member now."""


def compare(
    before: Mapping[str, Sequence[TopicPartition]], after: Mapping[str, Sequence[TopicPartition]]
) -> AssignmentComparison:
    """Return the changes from one assignment to the next, and the balance of each."""
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
    """Return the sum of all pairwise differences, without visiting all pairs.

    In ascending order the i-th of n counts is the larger one in i pairs and the smaller in n − 1 − i.
    """
    ascending = sorted(counts)
    last = len(ascending) - 1
    return sum((2 * i - last) * count for i, count in enumerate(ascending))
