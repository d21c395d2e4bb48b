"""Kafka's roundrobin assignor.

All partitions are in one row, topic by topic, and the members in a circle; each partition goes to the next
member in the circle that subscribes to its topic. Members with the same subscriptions get counts that differ
by at most one; with different ones the circle may be unfair, as in Kafka.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from restow.assignors.base import NumberedAssignor
from restow.assignors.names import partitions_of

if TYPE_CHECKING:
    from restow.assignors.base import Dealt, PartitionRacks
    from restow.assignors.group import NumberedGroup
    from restow.model import TopicPartition


class RoundRobin(NumberedAssignor):
    """Partitions in a row, members in a circle."""

    name = "roundrobin"
    in_line = True

    def share_out(self, group: NumberedGroup, partition_racks: PartitionRacks | None) -> Dealt:  # noqa: ARG002 (Kafka's ignores racks too)
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
