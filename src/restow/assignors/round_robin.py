"""Kafka's roundrobin assignor.

All partitions are in one row, topic by topic, and the members in a circle; each partition goes to the next
member in the circle that subscribes to its topic. Members with the same subscriptions get counts that differ
by at most one; with different ones the circle may be unfair, as in Kafka.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from restow.assignors.base import Assignor
from restow.assignors.group import NumberedGroup, in_line
from restow.assignors.names import partitions_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from restow.assignors.base import Dealt, PartitionRacks
    from restow.model import Member, TopicPartition


class RoundRobin(Assignor):
    """Partitions in a row, members in a circle."""

    name = "roundrobin"

    def assign(
        self,
        partitions: Mapping[str, int],
        members: Sequence[Member],
        partition_racks: PartitionRacks | None = None,  # noqa: ARG002 (Kafka's ignores racks too)
    ) -> Dealt:
        group = NumberedGroup.of(partitions, members, in_line)
        return group.assignment(group.around() if group.uniform else _around_the_circle(group))


def _around_the_circle(group: NumberedGroup) -> list[list[TopicPartition]]:
    dealt: list[list[TopicPartition]] = [[] for _ in group.members]
    at = 0
    for number, (topic, count) in enumerate(zip(group.topics, group.counts.tolist(), strict=True)):
        wanting = group.subscribers[number]
        first = bisect_left(wanting, at)
        turns = wanting[first:] + wanting[:first]
        row = partitions_of(topic, count)
        for turn, member in enumerate(turns[:count]):
            dealt[member] += row[turn :: len(turns)]
        at = (turns[(count - 1) % len(turns)] + 1) % len(group.members)
    return dealt
