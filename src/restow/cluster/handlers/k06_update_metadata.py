"""UpdateMetadata: the controller sends the live brokers and the partitions' leaders.

Behaviour:
- Groups lose their offsets of deleted partitions.
- The first request of a new controller starts a search for stray replicas, whose StopReplica may have been
  lost.
Versions: partitions are grouped by topic, with the topic id.
Not supported: versions below 7; our own controller uses the latest.
"""

from __future__ import annotations

from restow.cluster.broker.strays import stop_strays
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.messages import Message, UpdateMetadataResponse


@handles(6, range(7, 9))
async def handle(request: Request, context: RequestContext) -> Message:
    broker = context.broker
    async with broker.controller_requests.turn:
        known_epoch = broker.controller_requests.controller_epoch
        refusal = await broker.controller_requests.refusal_of(request.body, context.number)
        if known_epoch < broker.controller_requests.controller_epoch:
            broker.tasks.start(stop_strays(broker), "removal of stray replicas")
        if not refusal:
            gone = broker.metadata.apply(request.body)
            for topic in dict.fromkeys(partition.topic for partition in gone):
                if topic not in broker.metadata.topics:
                    broker.config_store.forget(topic)
            if gone:
                broker.tasks.start(broker.groups.partitions_deleted(gone), "offsets of deleted partitions")
        return UpdateMetadataResponse(error_code=refusal)
