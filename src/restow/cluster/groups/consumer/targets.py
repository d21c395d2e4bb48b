"""Ask an assignor for the target assignment of a group."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from restow.assignors import Member, TopicPartition, assign

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.cluster.groups.consumer.members import ConsumerGroupMember, TopicIdPartition
    from restow.cluster.groups.consumer.subscriptions import Refreshed
    from restow.cluster.groups.consumer.topics import TopicDirectory


def preferred_assignor(members: Iterable[ConsumerGroupMember], default: str) -> str:
    """Return the assignor that most members ask for; the default if none does."""
    votes = Counter(member.server_assignor for member in members if member.server_assignor is not None)
    return max(votes, key=lambda name: (votes[name], name)) if votes else default


def target_assignment(
    assignor: str,
    members: Mapping[str, ConsumerGroupMember],
    before: Mapping[str, frozenset[TopicIdPartition]],
    subscribed: Refreshed,
    topics: TopicDirectory,
) -> dict[str, frozenset[TopicIdPartition]]:
    """Return each member's target, given the targets before.

    Racks of replicas are not passed on: Kafka's two assignors for brokers ignore them.
    """
    wanted = {member_id: subscribed.topics_of((member,)) for member_id, member in members.items()}
    ids = {topic: topics.id_of(topic) for topic in frozenset().union(*wanted.values())}
    known = {topic: topic_id for topic, topic_id in ids.items() if topic_id is not None}
    counts = {topic: topics.partition_count(topic) for topic in known}
    joined = [
        Member(
            id=member_id,
            topics=tuple(sorted(wanted[member_id])),
            instance_id=member.instance_id,
            rack=member.rack,
            owned=_named(before.get(member_id, frozenset()), topics),
        )
        for member_id, member in members.items()
    ]
    return {
        member_id: frozenset((known[topic], number) for topic, number in partitions)
        for member_id, partitions in assign(assignor, counts, joined).items()
    }


def _named(partitions: frozenset[TopicIdPartition], topics: TopicDirectory) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(name, number)
        for topic_id, number in sorted(partitions)
        if (name := topics.name_of(topic_id)) is not None
    )
