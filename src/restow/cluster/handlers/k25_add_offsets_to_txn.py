"""AddOffsetsToTxn: make a group's partition of `__consumer_offsets` part of a producer's transaction.

Versions: from 2 on PRODUCER_FENCED, before INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from restow.cluster.broker.metadata import GROUP_OFFSETS_TOPIC
from restow.cluster.groups import partition_of_group
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.handlers.transactional import fenced_as_of
from restow.cluster.transactions import ProducerIdAndEpoch
from restow.model import TopicPartition
from restow.wire.messages import AddOffsetsToTxnResponse, Message


@handles(25, range(5))
async def handle(request: Request, context: RequestContext) -> Message:
    body, broker = request.body, context.broker
    count = broker.metadata.partition_count(GROUP_OFFSETS_TOPIC)
    count = count or broker.configs.integer("offsets.topic.num.partitions")
    partition = TopicPartition(GROUP_OFFSETS_TOPIC, partition_of_group(body.group_id, count))
    producer = ProducerIdAndEpoch(body.producer_id, body.producer_epoch)
    code = await broker.transactions.add_partitions(body.transactional_id, producer, (partition,))
    return AddOffsetsToTxnResponse(error_code=fenced_as_of(request, code))
