"""The members of a group of the protocol `consumer`, and who holds what."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from restow.cluster.groups.consumer.members import ConsumerGroupMember, Subscription, TopicIdPartition


class ConsumerGroupRoster:
    """Members by id and by instance id, and the partitions that somebody holds."""

    def __init__(self) -> None:
        self.members: dict[str, ConsumerGroupMember] = {}
        self._static: dict[str, str] = {}
        """The member of each instance id."""
        self._holders: Counter[TopicIdPartition] = Counter()
        """How many members hold each partition, or have not yet given it up."""
        self._subscriptions: Counter[Subscription] = Counter()
        """How many members have each subscription."""
        self.classic_count = 0
        """How many members use the classic protocol."""
        self._speakers: Counter[str] = Counter()
        """How many of these name each client-side assignor."""

    def static(self, instance_id: str | None) -> ConsumerGroupMember | None:
        """Return the member with that instance id."""
        return None if instance_id is None else self.members.get(self._static.get(instance_id, ""))

    def is_held(self, partition: TopicIdPartition) -> bool:
        return partition in self._holders

    def subscriptions(
        self, member: ConsumerGroupMember | None = None, known: ConsumerGroupMember | None = None
    ) -> set[Subscription]:
        """Return the distinct subscriptions, as if the member had taken the place of the known one."""
        distinct = set(self._subscriptions)
        if known is not None and self._subscriptions[known.subscription] == 1:
            distinct.discard(known.subscription)
        if member is not None:
            distinct.add(member.subscription)
        return distinct

    def put(self, member: ConsumerGroupMember) -> None:
        """Add or update a member."""
        before = self.members.get(member.id)
        self.members[member.id] = member
        if before is None or before.subscription != member.subscription:
            self._unsubscribe(before)
            self._subscriptions[member.subscription] += 1
        if before is None or before.classic is not member.classic:
            self._count_classic(before, -1)
            self._count_classic(member, 1)
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
        self._unsubscribe(member)
        self._count_classic(member, -1)
        self._release(member)

    def all_classic_but(self, *members: ConsumerGroupMember) -> bool:
        """Return whether all members but these use the classic protocol."""
        leaving = sum(member.classic is not None for member in members)
        return self.classic_count - leaving == len(self.members) - len(members)

    def all_classic_speak(self, assignor: str) -> bool:
        """Return whether every classic member names that client-side assignor."""
        return self._speakers[assignor] == self.classic_count

    def _count_classic(self, member: ConsumerGroupMember | None, by: int) -> None:
        if member is None or member.classic is None:
            return
        self.classic_count += by
        for name in {name for name, _ in member.classic.protocols}:
            self._speakers[name] += by
            if not self._speakers[name]:
                del self._speakers[name]

    def _unsubscribe(self, member: ConsumerGroupMember | None) -> None:
        if member is not None:
            self._subscriptions[member.subscription] -= 1
            if not self._subscriptions[member.subscription]:
                del self._subscriptions[member.subscription]

    def _release(self, member: ConsumerGroupMember | None) -> None:
        for partition in () if member is None else (*member.assigned, *member.revoking):
            self._holders[partition] -= 1
            if self._holders[partition] <= 0:
                del self._holders[partition]
