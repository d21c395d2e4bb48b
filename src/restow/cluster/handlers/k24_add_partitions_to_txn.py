"""AddPartitionsToTxn: make partitions part of a producer's transaction, or ask whether they are.

Behaviour: all partitions or none. If one is unknown, the others get OPERATION_NOT_ATTEMPTED.
Versions: up to 3 for producers; from 4 on for brokers, which send several transactions and mostly only verify
(KIP-890). From 2 on PRODUCER_FENCED, before INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.broker.metadata import INTERNAL_TOPICS
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.handlers.transactional import fenced_as_of
from restow.cluster.transactions import ProducerIdAndEpoch
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import AddPartitionsToTxnResponse, Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FIRST_OF_BROKERS = 4
_Transaction = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
_Topic = _Transaction.AddPartitionsToTxnTopicResult
_Partition = _Topic.AddPartitionsToTxnPartitionResult
_TopicBefore4 = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
_PartitionBefore4 = _TopicBefore4.AddPartitionsToTxnPartitionResult


@handles(24, range(6))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    if request.api_version < _FIRST_OF_BROKERS:
        producer = ProducerIdAndEpoch(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch)
        topics = body.v3_and_below_topics
        codes = await _add(context, body.v3_and_below_transactional_id, producer, _partitions(topics))
        codes = {each: fenced_as_of(request, code) for each, code in codes.items()}
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=_results(_TopicBefore4, _PartitionBefore4, topics, codes)
        )
    results = []
    for each in body.transactions:
        producer = ProducerIdAndEpoch(each.producer_id, each.producer_epoch)
        act = _verify if each.verify_only else _add
        codes = await act(context, each.transactional_id, producer, _partitions(each.topics))
        results.append(
            _Transaction(
                transactional_id=each.transactional_id,
                topic_results=_results(_Topic, _Partition, each.topics, codes),
            )
        )
    return AddPartitionsToTxnResponse(results_by_transaction=results)


async def _add(
    context: RequestContext,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: tuple[TopicPartition, ...],
) -> Mapping[TopicPartition, ErrorCode]:
    refused = {}
    for partition in partitions:
        if partition.topic in INTERNAL_TOPICS:
            refused[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif context.broker.metadata.partition(partition) is None:
            refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if refused:
        return {each: refused.get(each, ErrorCode.OPERATION_NOT_ATTEMPTED) for each in partitions}
    code = await context.broker.transactions.add_partitions(transactional_id, producer, partitions)
    return dict.fromkeys(partitions, code)


async def _verify(
    context: RequestContext,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: tuple[TopicPartition, ...],
) -> Mapping[TopicPartition, ErrorCode]:
    answer = context.broker.transactions.verify_partitions(transactional_id, producer, partitions)
    return dict.fromkeys(partitions, answer) if isinstance(answer, ErrorCode) else answer


def _partitions(topics: Iterable[Message]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic.name, number) for topic in topics for number in topic.partitions)


def _results(
    topic_class: Message,
    partition_class: Message,
    topics: Iterable[Message],
    codes: Mapping[TopicPartition, ErrorCode],
) -> list[Message]:
    return [
        topic_class(
            name=topic.name,
            results_by_partition=[
                partition_class(
                    partition_index=number, partition_error_code=codes[TopicPartition(topic.name, number)]
                )
                for number in topic.partitions
            ],
        )
        for topic in topics
    ]
