"""OffsetCommit: store a group's offsets in `__consumer_offsets`, then acknowledge.

Behaviour: unknown partitions are refused one by one; the others are committed.
Versions: 2 to 4 have a retention time; 6 adds the leader epoch, 7 static members, 9 member epochs of KIP-848.
Not supported: versions 0 and 1, which store offsets elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.groups import CommitRequest, OffsetToCommit
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import Message, OffsetCommitResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

_LAST_WITH_RETENTION = 4
_FIRST_WITH_MEMBER_EPOCH = 9


@handles(8, range(2, 10))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    errors, offsets = offsets_in(request, context)
    keeps = request.api_version <= _LAST_WITH_RETENTION and body.retention_time_ms >= 0
    commit = CommitRequest(
        generation=body.generation_id_or_member_epoch,
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        retention_ms=body.retention_time_ms if keeps else None,
        has_member_epoch=request.api_version >= _FIRST_WITH_MEMBER_EPOCH,
        offsets=offsets,
    )
    if offsets:
        errors |= await context.broker.groups.commit_offsets(body.group_id, commit)
    topic_class = OffsetCommitResponse.OffsetCommitResponseTopic
    return OffsetCommitResponse(
        topics=topics_answered(topic_class, topic_class.OffsetCommitResponsePartition, request, errors)
    )


def offsets_in(
    request: Request, context: RequestContext
) -> tuple[dict[TopicPartition, ErrorCode], dict[TopicPartition, OffsetToCommit]]:
    """Return the errors of unknown partitions, and the offsets to commit of the others."""
    errors: dict[TopicPartition, ErrorCode] = {}
    offsets: dict[TopicPartition, OffsetToCommit] = {}
    for topic in request.body.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if context.broker.metadata.partition(partition) is None:
                errors[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                offsets[partition] = OffsetToCommit(
                    each.committed_offset, each.committed_leader_epoch, each.committed_metadata or ""
                )
    return errors, offsets


def topics_answered(
    topic_class: Message,
    partition_class: Message,
    request: Request,
    errors: Mapping[TopicPartition, ErrorCode],
) -> list[Message]:
    """Return the topics of the response, with each partition's error code."""
    return [
        topic_class(
            name=topic.name,
            partitions=[
                partition_class(
                    partition_index=each.partition_index,
                    error_code=errors[TopicPartition(topic.name, each.partition_index)],
                )
                for each in topic.partitions
            ],
        )
        for topic in request.body.topics
    ]
