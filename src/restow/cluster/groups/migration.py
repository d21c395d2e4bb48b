"""Turn a classic group into one of the protocol `consumer` and back, with its members (online migration)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.groups.consumer.embedded import (
    PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from restow.cluster.groups.consumer.members import ClassicMembership, ConsumerGroupMember
from restow.cluster.groups.consumer.mixed import MixedGroup
from restow.cluster.groups.consumer.requests import HeartbeatRefused
from restow.cluster.groups.fields import InvalidGroupRecord
from restow.cluster.groups.group import ClassicGroup
from restow.cluster.groups.roster import ClassicGroupMember
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.cluster.groups.config import GroupConfig
    from restow.cluster.groups.consumer.topics import TopicDirectory


def to_consumer(group: ClassicGroup, config: GroupConfig, topics: TopicDirectory) -> MixedGroup:
    """Return the group in the protocol `consumer`; members have their last assignments.

    Raise HeartbeatRefused if that may not be done, or would lose what an assignor has told members.
    """
    if not config.may_upgrade:
        raise _refusal(group, "online upgrade is disabled.")
    if group.protocol_type != PROTOCOL_TYPE:
        raise _refusal(group, "the group does not use the consumer embedded protocol.")
    if len(group.roster) > config.consumer_max_size:
        raise _refusal(group, "the group size exceeds the consumer group maximum size.")
    try:
        members = [_as_consumer(member, group, topics) for member in group.roster]
    except InvalidGroupRecord as error:
        raise _refusal(group, f"the embedded consumer protocol is malformed: {error}") from error
    return MixedGroup.taken_over(group.id, group.generation, members, config, topics)


def _as_consumer(
    member: ClassicGroupMember, group: ClassicGroup, topics: TopicDirectory
) -> ConsumerGroupMember:
    name = group.protocol_name
    said = decode_subscription(member.protocols[0][1] if name is None else member.metadata(name))
    partitions, user_data = decode_assignment(member.assignment)
    if user_data:
        raise _refusal(group, "an unsupported custom assignor is in use.")
    assigned = {
        (topic_id, number): group.generation
        for topic, number in partitions
        if (topic_id := topics.id_of(topic)) is not None
    }
    return ConsumerGroupMember(
        id=member.id,
        instance_id=member.instance_id,
        rack=said.rack,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=tuple(sorted(set(said.topics))),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMembership(member.session_timeout_ms, member.protocols),
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned=assigned,
    )


def to_classic(
    group: MixedGroup, config: GroupConfig, make_id: Callable[[], str], now_ms: int
) -> ClassicGroup:
    """Return the group in the classic protocol, stable: each member is assigned its target."""
    members = [
        ClassicGroupMember(
            id=member.id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            session_timeout_ms=member.classic.session_timeout_ms,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            protocols=member.classic.protocols,
        )
        for member in group.members.values()
        if member.classic is not None
    ]
    classic = ClassicGroup.taken_over(group.id, PROTOCOL_TYPE, group.epoch, members, config, make_id, now_ms)
    for member in members:
        version = decode_subscription(member.metadata(classic.protocol_name or "")).version
        member.assignment = encode_assignment(group.named_target(member.id), version)
    return classic


def _refusal(group: ClassicGroup, why: str) -> HeartbeatRefused:
    return HeartbeatRefused(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.id} to consumer group because {why}",
    )
