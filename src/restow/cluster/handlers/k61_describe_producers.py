"""DescribeProducers: the idempotent and transactional producers that have written to partitions.

Behaviour: of every replica on this broker, from its own log.
"""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import DescribeProducersResponse, Message

_Topic = DescribeProducersResponse.TopicResponse
_Partition = _Topic.PartitionResponse


@handles(61, range(1))
async def handle(request: Request, context: RequestContext) -> Message:
    return DescribeProducersResponse(
        topics=[
            _Topic(
                name=topic.name,
                partitions=[
                    _described(context, TopicPartition(topic.name, each)) for each in topic.partition_indexes
                ],
            )
            for topic in request.body.topics
        ]
    )


def _described(context: RequestContext, partition: TopicPartition) -> Message:
    found = context.broker.replicas.find(partition)
    if isinstance(found, ErrorCode):
        return _Partition(
            partition_index=partition.partition, error_code=found, error_message=None, active_producers=[]
        )
    return _Partition(
        partition_index=partition.partition,
        error_message=None,
        active_producers=[
            _Partition.ProducerState(
                producer_id=producer_id,
                producer_epoch=it.epoch,
                last_sequence=it.last_sequence,
                last_timestamp=it.timestamp,
                coordinator_epoch=it.coordinator_epoch,
                current_txn_start_offset=it.first_offset,
            )
            for producer_id, it in found.log.producers
        ],
    )
