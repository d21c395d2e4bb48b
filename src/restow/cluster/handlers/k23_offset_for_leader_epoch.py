"""OffsetForLeaderEpoch: return where a leader epoch ended, so that a consumer detects truncation.

Versions: 3 adds the replica id, 4 compact lengths. Our own followers get the same from Fetch.
"""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.replication import EpochQuestion, FoundOffset
from restow.model import TopicPartition
from restow.wire.messages import Message, OffsetForLeaderEpochResponse

_Topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult


@handles(23, range(2, 5))
async def handle(request: Request, context: RequestContext) -> Message:
    topics = request.body.topics
    found = context.broker.replicas.offsets_for_leader_epoch(
        {
            TopicPartition(topic.topic, each.partition): EpochQuestion(
                each.leader_epoch, each.current_leader_epoch
            )
            for topic in topics
            for each in topic.partitions
        }
    )
    return OffsetForLeaderEpochResponse(
        topics=[
            _Topic(
                topic=topic.topic,
                partitions=[
                    _partition(each.partition, found[TopicPartition(topic.topic, each.partition)])
                    for each in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


def _partition(number: int, found: FoundOffset) -> Message:
    return _Topic.EpochEndOffset(
        error_code=found.error_code,
        partition=number,
        leader_epoch=found.leader_epoch,
        end_offset=found.offset,
    )
