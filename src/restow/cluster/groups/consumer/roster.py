"""The members of a group of the protocol `consumer`, and who holds what."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from restow.cluster.groups.consumer.members import ConsumerGroupMember, TopicIdPartition


class ConsumerGroupRoster:
    """Members by id and by instance id, and the partitions that somebody holds."""

    def __init__(self) -> None:
        self.members: dict[str, ConsumerGroupMember] = {}
        self._static: dict[str, str] = {}
        """The member of each instance id."""
        self._holders: Counter[TopicIdPartition] = Counter()
        """How many members hold each partition, or have not yet given it up."""

    def static(self, instance_id: str | None) -> ConsumerGroupMember | None:
        """Return the member with that instance id."""
        return None if instance_id is None else self.members.get(self._static.get(instance_id, ""))

    def is_held(self, partition: TopicIdPartition) -> bool:
        return partition in self._holders

    def put(self, member: ConsumerGroupMember) -> None:
        """Add or update a member."""
        before = self.members.get(member.id)
        self.members[member.id] = member
        if member.instance_id is not None:
            self._static[member.instance_id] = member.id
        if before is None or (before.assigned, before.revoking) != (member.assigned, member.revoking):
            self._release(before)
            self._holders.update((*member.assigned, *member.revoking))

    def drop(self, member: ConsumerGroupMember) -> None:
        """Remove a member; its partitions are free."""
        del self.members[member.id]
        if member.instance_id is not None and self._static.get(member.instance_id) == member.id:
            del self._static[member.instance_id]
        self._release(member)

    def _release(self, member: ConsumerGroupMember | None) -> None:
        for partition in () if member is None else (*member.assigned, *member.revoking):
            self._holders[partition] -= 1
            if self._holders[partition] <= 0:
                del self._holders[partition]
