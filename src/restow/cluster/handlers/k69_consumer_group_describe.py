"""ConsumerGroupDescribe: return epochs, members and assignments of groups of the protocol `consumer`.

Behaviour: a missing group, and one of the classic protocol, is not found; clients then ask DescribeGroups.
Versions: 1 tells the protocol of each member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.model import by_topic
from restow.wire.messages import ConsumerGroupDescribeResponse, Message
from restow.wire.metadata import NOT_ASKED_FOR
from restow.wire.operations import ON_GROUPS, bits

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from restow.cluster.broker.metadata import MetadataCache
    from restow.cluster.groups import ConsumerGroupDescription, ConsumerGroupMember

_CLASSIC_MEMBER = 0
_CONSUMER_MEMBER = 1
_Group = ConsumerGroupDescribeResponse.DescribedGroup
_Member = _Group.Member


@handles(69, range(2))
async def handle(request: Request, context: RequestContext) -> Message:
    groups, metadata = context.broker.groups, context.broker.metadata
    described = [await groups.describe_consumer(group_id) for group_id in request.body.group_ids]
    tells = request.body.include_authorized_operations
    return ConsumerGroupDescribeResponse(groups=[_group(each, metadata, tells=tells) for each in described])


def _group(it: ConsumerGroupDescription, metadata: MetadataCache, *, tells: bool) -> Message:
    return _Group(
        error_code=it.error,
        error_message=it.message,
        group_id=it.group_id,
        group_state="" if it.state is None else it.state.value,
        group_epoch=it.epoch,
        assignment_epoch=it.assignment_epoch,
        assignor_name=it.assignor,
        members=[_member(member, target, metadata) for member, target in it.members],
        authorized_operations=bits(ON_GROUPS) if tells and not it.error else NOT_ASKED_FOR,
    )


def _member(
    member: ConsumerGroupMember, target: Collection[tuple[UUID, int]], metadata: MetadataCache
) -> Message:
    return _Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.pattern or "",
        assignment=_assignment((*member.assigned, *member.revoking), metadata),
        target_assignment=_assignment(target, metadata),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _assignment(partitions: Collection[tuple[UUID, int]], metadata: MetadataCache) -> Message:
    """Return the partitions of topics that still exist; a member holds those it has to give up, too."""
    assignment = _Member.Assignment
    return assignment(
        topic_partitions=[
            assignment.TopicPartitions(topic_id=topic_id, topic_name=name, partitions=numbers)
            for topic_id, numbers in by_topic(sorted(partitions)).items()
            if (name := metadata.name_of(topic_id)) is not None
        ]
    )
