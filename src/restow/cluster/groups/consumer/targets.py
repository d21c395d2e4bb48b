"""Ask an assignor for the target assignment of a group."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from restow.assignors import Member, TopicPartition, assign_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.cluster.groups.consumer.members import ConsumerGroupMember, TopicIdPartition
    from restow.cluster.groups.consumer.subscriptions import Refreshed
    from restow.cluster.groups.consumer.topics import TopicDirectory

_NOTHING: frozenset[TopicIdPartition] = frozenset()


def preferred_assignor(members: Iterable[ConsumerGroupMember], default: str) -> str:
    """Return the assignor that most members ask for; the default if none does."""
    votes = Counter(member.server_assignor for member in members if member.server_assignor is not None)
    return max(votes, key=lambda name: (votes[name], name)) if votes else default


def _same(mine: Sequence[TopicPartition], held: Sequence[TopicPartition]) -> bool:
    return mine is held or mine == held or list(mine) == list(held)


class Targets:
    """Asks assignors of one group, and keeps the names of the partitions in the last answer.

    Most targets stay when a member comes or goes, and translating them would take longer than assigning.
    """

    def __init__(self, topics: TopicDirectory) -> None:
        self._topics = topics
        self._named: dict[str, tuple[frozenset[TopicIdPartition], Sequence[TopicPartition]]] = {}
        self._version = -1

    def ask(
        self,
        assignor: str,
        members: Mapping[str, ConsumerGroupMember],
        before: Mapping[str, frozenset[TopicIdPartition]],
        subscribed: Refreshed,
        committed: Mapping[TopicPartition, int],
    ) -> dict[str, frozenset[TopicIdPartition]]:
        """Return each member's target, given the targets before.

        The assignor is told the racks of replicas, if members have racks, and the lag of the partitions that
        have a replica here. Kafka's own two assignors make use of neither.
        """
        topics = self._topics
        if topics.version != self._version:  # a topic may have come back under its name, with another id
            self._named, self._version = {}, topics.version
        wanted = {
            each: tuple(sorted(subscribed.topics_of((each,))))
            for each in {member.subscription for member in members.values()}
        }
        ids = {topic: topics.id_of(topic) for topic in frozenset().union(*wanted.values())}
        known = {topic: topic_id for topic, topic_id in ids.items() if topic_id is not None}
        counts = {topic: topics.partition_count(topic) for topic in known}
        held = {member_id: self._held(member_id, before.get(member_id, _NOTHING)) for member_id in members}
        joined = [
            Member(
                id=member_id,
                topics=wanted[member.subscription],
                instance_id=member.instance_id,
                rack=member.rack,
                owned=held[member_id],
            )
            for member_id, member in members.items()
        ]
        racks = {topic: topics.racks_of(topic) for topic in counts} if any(m.rack for m in joined) else None
        lag = {
            partition: float(max(end - offset, 0))
            for partition, offset in committed.items()
            if partition.topic in counts and (end := topics.end_of(partition)) is not None
        }
        answer = assign_rows(assignor, counts, joined, racks, lag)
        targets = {}
        for member_id, mine in answer.items():
            last = before.get(member_id)
            if last is not None and len(mine) == len(last) and _same(mine, held[member_id]):
                targets[member_id] = last
            else:
                targets[member_id] = frozenset((known[topic], number) for topic, number in mine)
                self._named[member_id] = targets[member_id], mine
        return targets

    def forget(self, member_id: str) -> None:
        """Forget a member that has left."""
        self._named.pop(member_id, None)

    def _held(self, member_id: str, target: frozenset[TopicIdPartition]) -> Sequence[TopicPartition]:
        known = self._named.get(member_id)
        if known is None or known[0] is not target:
            named = [
                TopicPartition(name, number)
                for topic_id, number in target
                if (name := self._topics.name_of(topic_id)) is not None
            ]
            known = self._named[member_id] = target, tuple(sorted(named))
        return known[1]
