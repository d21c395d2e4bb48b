"""OffsetCommit: store a group's offsets in `__consumer_offsets`, then acknowledge.

Behaviour: unknown partitions are refused one by one; the others are committed.
Versions: 2 to 4 have a retention time; 6 adds the leader epoch, 7 static members, 9 member epochs of KIP-848.
Not supported: versions 0 and 1, which store offsets elsewhere.
"""

from __future__ import annotations

from restow.cluster.groups import CommitRequest, OffsetToCommit
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import Message, OffsetCommitResponse

_LAST_WITH_RETENTION = 4
_FIRST_WITH_MEMBER_EPOCH = 9


@handles(8, range(2, 10))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    errors: dict[TopicPartition, ErrorCode] = {}
    offsets: dict[TopicPartition, OffsetToCommit] = {}
    for topic in body.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if context.broker.metadata.partition(partition) is None:
                errors[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                offsets[partition] = OffsetToCommit(
                    each.committed_offset, each.committed_leader_epoch, each.committed_metadata or ""
                )
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
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponse.OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponse.OffsetCommitResponseTopic.OffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=errors[TopicPartition(topic.name, each.partition_index)],
                    )
                    for each in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )
