"""DescribeTopicPartitions: describe topics page by page, with at most so many partitions in a response.

Behaviour:
- Topics come in the order of their names. Without names, all topics are described.
- A response that has reached the limit ends with a cursor, and the next request starts there. The limit is
  the request's, and at most `max.request.partition.size.limit`.
- Unknown topics are refused one by one; those that only the cursor names are left out.
- Eligible leader replicas (KIP-966) need KRaft. Their lists are empty and never null, on which clients of
  Kafka 4 fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.broker.metadata import INTERNAL_TOPICS
from restow.cluster.broker.topic_rules import is_legal_name
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import DescribeTopicPartitionsResponse, Message
from restow.wire.operations import ON_TOPICS, bits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.wire.metadata import PartitionMetadata

_Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
_Partition = _Topic.DescribeTopicPartitionsResponsePartition


@handles(75, range(1))
async def handle(request: Request, context: RequestContext) -> Message:
    body, known = request.body, context.broker.metadata.topics
    if not starts_well(body):
        return DescribeTopicPartitionsResponse(
            topics=[_refused(each.name, ErrorCode.INVALID_REQUEST) for each in body.topics]
        )
    names = {each.name for each in body.topics} or set(known)
    first, first_partition = ("", 0)
    if body.cursor is not None:
        first, first_partition = body.cursor.topic_name, body.cursor.partition_index
    limit = context.broker.configs.integer("max.request.partition.size.limit")
    left = max(min(limit, body.response_partition_limit), 1)
    answer = DescribeTopicPartitionsResponse(topics=[])
    for name in sorted(each for each in names if each >= first):
        if not left:
            answer.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=0)
            break
        topic = known.get(name)
        if topic is None:
            if body.topics:
                answer.topics.append(_refused(name, _unknown(name)))
                answer.topics[-1].topic_authorized_operations = bits(ON_TOPICS)
            continue
        start = first_partition if name == first else 0
        partitions = topic.partitions
        shown = partitions[start : start + left]
        left -= len(shown)
        answer.topics.append(
            _Topic(
                name=name,
                topic_id=topic.topic_id,
                is_internal=topic.is_internal,
                partitions=_described(shown),
                topic_authorized_operations=bits(ON_TOPICS),
            )
        )
        if start + len(shown) < len(partitions):
            answer.next_cursor = DescribeTopicPartitionsResponse.Cursor(
                topic_name=name, partition_index=start + len(shown)
            )
            break
    return answer


def starts_well(body: Message) -> bool:
    """Return whether a request has no cursor, or one that is at a partition of a topic that it asks for."""
    cursor = body.cursor
    if cursor is None:
        return True
    is_asked_for = not body.topics or cursor.topic_name in {each.name for each in body.topics}
    return is_asked_for and cursor.partition_index >= 0


def _unknown(name: str) -> ErrorCode:
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION


def _refused(name: str, code: ErrorCode) -> Message:
    return _Topic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS, partitions=[])


def _described(partitions: Iterable[PartitionMetadata]) -> list[Message]:
    return [
        _Partition(
            partition_index=each.partition,
            leader_id=each.leader_id,
            leader_epoch=each.leader_epoch,
            replica_nodes=list(each.replicas),
            isr_nodes=list(each.isr),
            eligible_leader_replicas=[],
            last_known_elr=[],
            offline_replicas=list(each.offline_replicas),
        )
        for each in partitions
    ]
