"""StopReplica: the controller takes replicas away from this broker, with their logs if it says so.

Versions: from 3 on each partition comes with its leader's epoch. Earlier ones are not served: our own
controller speaks the latest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.handlers.registry import handles
from restow.wire.messages import Message, StopReplicaResponse

if TYPE_CHECKING:
    from restow.cluster.broker.services import RequestContext
    from restow.wire.codec import Request


@handles(5, range(3, 5))
async def handle(request: Request, context: RequestContext) -> Message:
    broker = context.broker
    async with broker.orders.turn:
        refusal = await broker.orders.refusal_of(request.body)
        if refusal:
            return StopReplicaResponse(error_code=refusal, partition_errors=[])
        return broker.replicas.stop_replicas(request.body)
