"""ListOffsets: return the offset for a timestamp in partitions that this broker leads.

Behaviour:
- Special timestamps stand for the start, the end, and the record with the highest timestamp.
- For read_committed (2), the end is the last stable offset.
- A new leader returns no end to consumers before its high watermark has reached its epoch's start.
Versions: 4 adds leader epochs; below 5 OFFSET_NOT_AVAILABLE becomes LEADER_NOT_AVAILABLE; 7, 8 and 9 add the
highest timestamp, the earliest local offset and the latest tiered one.
Not supported: tiered storage, so all records are local.
"""

from __future__ import annotations

from restow.cluster.handlers.isolation import reads_committed_only
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.replication import FoundOffset, OffsetQuestion
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import ListOffsetsResponse, Message

_FIRST_WITH_NOT_AVAILABLE = 5
_KNOWN_SINCE = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9}
_Topic = ListOffsetsResponse.ListOffsetsTopicResponse


@handles(2, range(1, 10))
async def handle(request: Request, context: RequestContext) -> Message:
    body, version = request.body, request.api_version
    questions = {
        TopicPartition(topic.name, each.partition_index): OffsetQuestion(
            each.timestamp, each.current_leader_epoch
        )
        for topic in body.topics
        for each in topic.partitions
    }
    known = {key: it for key, it in questions.items() if _is_known(it.timestamp, version)}
    found = await context.broker.replicas.list_offsets(
        known, body.replica_id, committed_only=reads_committed_only(body, body.replica_id)
    )
    unknown = FoundOffset(ErrorCode.UNSUPPORTED_VERSION)
    return ListOffsetsResponse(
        topics=[
            _Topic(
                name=topic.name,
                partitions=[
                    _partition(
                        each.partition_index,
                        found.get(TopicPartition(topic.name, each.partition_index), unknown),
                        version,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _is_known(timestamp: int, version: int) -> bool:
    return timestamp >= 0 or version >= _KNOWN_SINCE.get(timestamp, version + 1)


def _partition(number: int, found: FoundOffset, version: int) -> Message:
    code = found.error_code
    if code == ErrorCode.OFFSET_NOT_AVAILABLE and version < _FIRST_WITH_NOT_AVAILABLE:
        code = ErrorCode.LEADER_NOT_AVAILABLE
    return _Topic.ListOffsetsPartitionResponse(
        partition_index=number,
        error_code=code,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )
