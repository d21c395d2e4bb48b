"""WriteTxnMarkers: a coordinator ends a transaction in partitions that this broker leads.

Behaviour: a marker of an older producer or coordinator than the last one is refused. With the marker in
`__consumer_offsets`, the offsets of the transaction count, or are dropped.
Versions: 1; brokers before Kafka 2.8 send 0.
"""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.transactions import EndOfTransaction
from restow.model import TopicPartition
from restow.wire.messages import Message, WriteTxnMarkersResponse

_Marker = WriteTxnMarkersResponse.WritableTxnMarkerResult
_Topic = _Marker.WritableTxnMarkerTopicResult
_Partition = _Topic.WritableTxnMarkerPartitionResult


@handles(27, range(1, 2))
async def handle(request: Request, context: RequestContext) -> Message:
    results = []
    for marker in request.body.markers:
        end = EndOfTransaction(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            commits=marker.transaction_result,
        )
        partitions = [
            TopicPartition(topic.name, each) for topic in marker.topics for each in topic.partition_indexes
        ]
        codes = await context.broker.markers.write(end, partitions)
        results.append(
            _Marker(
                producer_id=marker.producer_id,
                topics=[
                    _Topic(
                        name=topic.name,
                        partitions=[
                            _Partition(
                                partition_index=each, error_code=codes[TopicPartition(topic.name, each)]
                            )
                            for each in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
        )
    return WriteTxnMarkersResponse(markers=results)
