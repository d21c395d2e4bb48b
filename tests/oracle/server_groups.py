"""Groups as a broker's assignors see them, and rounds of them, for comparisons and for recordings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.assignors.group import java_order

if TYPE_CHECKING:
    from restow.model import TopicPartition
    from tests.judge import Group


def as_brokers_see(group: Group) -> Group:
    """Return the group without what only clients can say: two owners, unknown partitions, generations.

    A broker's assignors know no racks either, and no topics without partitions.
    """
    taken: set[TopicPartition] = set()
    members = []
    for member in sorted(group.members, key=lambda member: java_order(member.id)):
        exists = [p for p in member.owned if p.partition < group.partitions.get(p.topic, 0)]
        owned = tuple(sorted(p for p in exists if p not in taken))
        taken.update(owned)
        members.append(replace(member, owned=owned, generation=None))
    return replace(group, members=tuple(members), partition_racks=None)
