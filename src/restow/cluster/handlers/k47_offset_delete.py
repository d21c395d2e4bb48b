"""OffsetDelete: delete a group's offsets of topics that no member is subscribed to."""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.model import TopicPartition, by_topic
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import Message, OffsetDeleteResponse


@handles(47, range(1))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    asked = [
        TopicPartition(topic.name, each.partition_index) for topic in body.topics for each in topic.partitions
    ]
    known = tuple(each for each in asked if context.broker.metadata.partition(each) is not None)
    reply = await context.broker.groups.delete_offsets(body.group_id, known)
    if reply.error:
        return OffsetDeleteResponse(error_code=reply.error, topics=[])
    make = OffsetDeleteResponse.OffsetDeleteResponseTopic
    codes = ((each, reply.partitions.get(each, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)) for each in asked)
    topics = by_topic(
        (topic, make.OffsetDeleteResponsePartition(partition_index=number, error_code=code))
        for (topic, number), code in codes
    )
    return OffsetDeleteResponse(topics=[make(name=name, partitions=each) for name, each in topics.items()])
