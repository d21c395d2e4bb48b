"""DeleteRecords: delete records before an offset. Served by the partitions' leaders.

Behaviour:
- Answers when all in-sync replicas have deleted them, or with REQUEST_TIMED_OUT.
- An offset of -1 stands for the high watermark.
- Compacted topics are refused with POLICY_VIOLATION, internal ones with INVALID_TOPIC_EXCEPTION.
"""

from __future__ import annotations

from restow.cluster.broker.metadata import INTERNAL_TOPICS
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.replication import LowWatermark
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import DeleteRecordsResponse, Message

_Topic = DeleteRecordsResponse.DeleteRecordsTopicResult


@handles(21, range(3))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    asked = {
        TopicPartition(topic.name, each.partition_index): each.offset
        for topic in body.topics
        for each in topic.partitions
    }
    refusals = {topic.name: _refusal(topic.name, context) for topic in body.topics}
    refused = {key: LowWatermark(code) for key in asked if (code := refusals[key.topic])}
    wanted = {key: offset for key, offset in asked.items() if key not in refused}
    results = {**await context.broker.replicas.delete_records(wanted, body.timeout_ms), **refused}
    return DeleteRecordsResponse(
        topics=[
            _Topic(
                name=topic.name,
                partitions=[
                    _partition(
                        each.partition_index, results[TopicPartition(topic.name, each.partition_index)]
                    )
                    for each in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _refusal(topic: str, context: RequestContext) -> ErrorCode:
    if topic in INTERNAL_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if topic not in context.broker.metadata.topics:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    is_deleted_from = context.broker.configs.log_config(topic).cleanup_delete
    return ErrorCode.NONE if is_deleted_from else ErrorCode.POLICY_VIOLATION


def _partition(number: int, result: LowWatermark) -> Message:
    return _Topic.DeleteRecordsPartitionResult(
        partition_index=number, low_watermark=result.offset, error_code=result.error_code
    )
