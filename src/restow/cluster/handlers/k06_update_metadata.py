"""UpdateMetadata: the controller tells every broker who is alive and who leads what.

Groups lose their offsets of partitions that are going away. A controller is heard of here first, so what the
one before it left unsaid, or this one while the broker was away, is made up for.

Versions: from 5 on partitions come by topic, from 7 on with the topic's id. Earlier ones are not served: our
own controller speaks the latest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.broker.strays import stop_strays
from restow.cluster.handlers.registry import handles
from restow.wire.messages import Message, UpdateMetadataResponse

if TYPE_CHECKING:
    from restow.cluster.broker.services import RequestContext
    from restow.wire.codec import Request


@handles(6, range(7, 9))
async def handle(request: Request, context: RequestContext) -> Message:
    broker = context.broker
    async with broker.orders.turn:
        known_epoch = broker.orders.controller_epoch
        refusal = await broker.orders.refusal_of(request.body)
        if known_epoch < broker.orders.controller_epoch:
            broker.tasks.start(stop_strays(broker), "what nobody could be told to delete")
        if not refusal:
            gone = broker.metadata.apply(request.body)
            for topic in dict.fromkeys(partition.topic for partition in gone):
                if topic not in broker.metadata.topics:
                    broker.config_store.forget(topic)
            if gone:
                broker.tasks.start(broker.groups.partitions_deleted(gone), "offsets of deleted partitions")
        return UpdateMetadataResponse(error_code=refusal)
