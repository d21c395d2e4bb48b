"""OffsetFetch: return groups' committed offsets.

Behaviour: without a committed offset the response has offset -1 and no error.
Versions: 1 has errors per partition only; from 2 on null asks for all offsets; 8 asks for several groups; 9
has member epochs of KIP-848. With `require_stable` (7), an offset that an open transaction may change is
answered with UNSTABLE_OFFSET_COMMIT.
Not supported: version 0, which reads offsets stored elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import Message, OffsetFetchResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.groups import FetchedOffsets

_FIRST_WITH_GROUPS = 8
_FIRST_WITH_MEMBER_EPOCH = 9
_FIRST_WITH_GROUP_ERROR = 2
_Topic = OffsetFetchResponse.OffsetFetchResponseTopic
_GroupTopic = OffsetFetchResponse.OffsetFetchResponseGroup.OffsetFetchResponseTopics


@handles(9, range(1, 10))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    groups = context.broker.groups
    if request.api_version < _FIRST_WITH_GROUPS:
        found = await groups.fetch_offsets(body.group_id, _wanted(body.topics))
        found = _as_required(found, body)
        everywhere = found.error if request.api_version < _FIRST_WITH_GROUP_ERROR else ErrorCode.NONE
        return OffsetFetchResponse(
            topics=_topics(_Topic, _Topic.OffsetFetchResponsePartition, found, body.topics, everywhere),
            error_code=found.error,
        )
    answers = []
    for group in body.groups:
        names_itself = request.api_version >= _FIRST_WITH_MEMBER_EPOCH
        found = await groups.fetch_offsets(
            group.group_id,
            _wanted(group.topics),
            member_id=group.member_id if names_itself else None,
            member_epoch=group.member_epoch if names_itself else -1,
        )
        found = _as_required(found, body)
        answers.append(
            OffsetFetchResponse.OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=_topics(_GroupTopic, _GroupTopic.OffsetFetchResponsePartitions, found),
                error_code=found.error,
            )
        )
    return OffsetFetchResponse(groups=answers)


def _as_required(found: FetchedOffsets, body: Message) -> FetchedOffsets:
    """Return the offsets; without `require_stable` also those that an open transaction may change."""
    if not body.require_stable:
        return found._replace(unstable=frozenset())
    return found._replace(offsets={**found.offsets, **dict.fromkeys(found.unstable, None)})


def _wanted(topics: Iterable[Message] | None) -> tuple[TopicPartition, ...] | None:
    """Return the requested partitions; None for all."""
    if topics is None:
        return None
    return tuple(
        TopicPartition(topic.name, partition) for topic in topics for partition in topic.partition_indexes
    )


def _topics(
    topic_class: Message,
    partition_class: Message,
    found: FetchedOffsets,
    asked: Iterable[Message] | None = None,
    error: ErrorCode = ErrorCode.NONE,
) -> list[Message]:
    """Build the topics. In version 1 a group's error is repeated for every partition."""
    by_topic: dict[str, list[Message]] = {}
    offsets = dict(found.offsets)
    if error:
        offsets = dict.fromkeys(_wanted(asked) or (), None)
    for (topic, partition), committed in offsets.items():
        unstable = (topic, partition) in found.unstable
        by_topic.setdefault(topic, []).append(
            partition_class(
                partition_index=partition,
                committed_offset=-1 if committed is None else committed.offset,
                committed_leader_epoch=-1 if committed is None else committed.leader_epoch,
                metadata="" if committed is None else committed.metadata,
                error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT if unstable else error,
            )
        )
    return [topic_class(name=name, partitions=partitions) for name, partitions in by_topic.items()]
