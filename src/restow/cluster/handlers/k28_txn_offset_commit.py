"""TxnOffsetCommit: store a group's offsets in `__consumer_offsets` as part of a transaction.

Behaviour: they count when the transaction is committed. Unknown partitions are refused one by one.
Versions: 2 adds the leader epoch, 3 the member, which must then be a present one of its generation, 4
TRANSACTION_ABORTABLE.
Not supported: transactions that begin with this request (5, transaction version 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.broker.metadata import GROUP_OFFSETS_TOPIC
from restow.cluster.groups import CommitRequest, OffsetToCommit, TransactionalProducer, partition_of_group
from restow.cluster.handlers.k08_offset_commit import offsets_in, topics_answered
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.model import TopicPartition
from restow.wire.batches import MAGIC, TRANSACTIONAL_BIT, BatchHeader
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import Message, TxnOffsetCommitResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIRST_WITH_MEMBERS = 3
_FIRST_WITH_LOADING = 2
_FIRST_WITH_ABORTABLE = 4


@handles(28, range(5))
async def handle(request: Request, context: RequestContext) -> Message:
    codes, offsets = offsets_in(request, context)
    if offsets:
        codes |= await _commit(request, context, offsets)
    if request.api_version < _FIRST_WITH_LOADING:
        loading, unavailable = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE
        codes = {each: unavailable if code is loading else code for each, code in codes.items()}
    topic_class = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    return TxnOffsetCommitResponse(
        topics=topics_answered(topic_class, topic_class.TxnOffsetCommitResponsePartition, request, codes)
    )


async def _commit(
    request: Request, context: RequestContext, offsets: Mapping[TopicPartition, OffsetToCommit]
) -> Mapping[TopicPartition, ErrorCode]:
    body, broker = request.body, context.broker
    count = broker.metadata.partition_count(GROUP_OFFSETS_TOPIC)
    if not body.group_id or not count:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE if body.group_id else ErrorCode.INVALID_GROUP_ID
        return dict.fromkeys(offsets, code)
    stored_in = TopicPartition(GROUP_OFFSETS_TOPIC, partition_of_group(body.group_id, count))
    verified = await broker.verifier.verify(
        body.transactional_id,
        {stored_in: _header(body.producer_id, body.producer_epoch)},
        knows_abortable=request.api_version >= _FIRST_WITH_ABORTABLE,
        retriable=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    )
    if stored_in in verified.errors:
        return dict.fromkeys(offsets, verified.errors[stored_in])
    has_members = request.api_version >= _FIRST_WITH_MEMBERS
    commit = CommitRequest(
        generation=body.generation_id if has_members else -1,
        member_id=body.member_id if has_members else "",
        instance_id=body.group_instance_id if has_members else None,
        has_member_epoch=True,
        offsets=offsets,
        producer=TransactionalProducer(
            body.producer_id, body.producer_epoch, verified.verifications.get(stored_in)
        ),
    )
    return await broker.groups.commit_offsets(body.group_id, commit)


def _header(producer_id: int, producer_epoch: int) -> BatchHeader:
    """Return the header of the batch that will be appended, as far as its verification needs it."""
    return BatchHeader(0, 0, -1, MAGIC, 0, TRANSACTIONAL_BIT, 0, 0, 0, producer_id, producer_epoch, 0, 0)
