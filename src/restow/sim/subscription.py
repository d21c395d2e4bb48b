"""What consumers say when they join, and what their leader tells them: Kafka's consumer protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.assignors import assign
from restow.assignors.user_data import encode_claim, encode_generation
from restow.model import Member, TopicPartition
from restow.wire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.wire.messages import Message

COOPERATIVE = "cooperative-sticky"
_STICKY = "sticky"


def subscription(assignor: str, topic: str, owned: Iterable[int], generation: int) -> bytes:
    """Return the metadata of a member that has these partitions since that generation."""
    partitions = tuple(sorted(owned))
    named = tuple(TopicPartition(topic, each) for each in partitions)
    user_data = None
    if assignor == _STICKY:
        user_data = encode_claim(named, generation)
    elif assignor == COOPERATIVE:
        user_data = encode_generation(generation)
    listed = [ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=list(partitions))]
    said = ConsumerProtocolSubscription(
        version=1, topics=[topic], user_data=user_data, owned_partitions=listed if partitions else []
    )
    return bytes(said.encode())


def assignments(joined: Message, topic: str, partitions: int) -> dict[str, bytes]:
    """Return the assignment of each member, as the leader of the group computes it.

    Kafka lets a leader assign as it likes. So every leader turns the shares round by its own place among the
    members, and an assignment that does not come from the leader shows. Cooperative members keep theirs.
    """
    answer = assign(joined.protocol_name, {topic: partitions}, map(_member, joined.members))
    members, shares = sorted(answer), [answer[member] for member in sorted(answer)]
    turn = 0 if joined.protocol_name == COOPERATIVE else members.index(joined.leader)
    turned = [*shares[turn:], *shares[:turn]]
    return {
        member: _encoded(topic, [each.partition for each in owned])
        for member, owned in zip(members, turned, strict=True)
    }


def assigned(data: bytes) -> frozenset[int]:
    """Return the partitions in an assignment, of all topics together."""
    if not data:
        return frozenset()
    told = ConsumerProtocolAssignment.decode(data)
    return frozenset(number for each in told.assigned_partitions for number in each.partitions)


def _member(joined: Message) -> Member:
    said = ConsumerProtocolSubscription.decode(bytes(joined.metadata))
    return Member(
        id=joined.member_id,
        topics=tuple(said.topics),
        instance_id=joined.group_instance_id,
        owned=tuple(
            TopicPartition(each.topic, number) for each in said.owned_partitions for number in each.partitions
        ),
        user_data=None if said.user_data is None else bytes(said.user_data),
    )


def _encoded(topic: str, partitions: list[int]) -> bytes:
    listed = [ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=sorted(partitions))]
    return bytes(ConsumerProtocolAssignment(version=1, assigned_partitions=listed, user_data=None).encode())
