"""StopReplica: the controller stops replicas on this broker, and deletes their logs if requested.

Versions: each partition has its leader epoch.
Not supported: versions below 3; our own controller uses the latest.
"""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.messages import Message, StopReplicaResponse


@handles(5, range(3, 5))
async def handle(request: Request, context: RequestContext) -> Message:
    broker = context.broker
    async with broker.controller_requests.turn:
        refusal = await broker.controller_requests.refusal_of(request.body, context.number)
        if refusal:
            return StopReplicaResponse(error_code=refusal, partition_errors=[])
        return broker.replicas.stop_replicas(request.body)
