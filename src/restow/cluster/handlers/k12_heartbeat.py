"""Heartbeat: keep a member's session alive, and tell it about a rebalance.

Versions: 3 adds static members.
"""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.messages import HeartbeatResponse, Message


@handles(12, range(5))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    error = await context.broker.groups.heartbeat(
        body.group_id, body.generation_id, body.member_id, body.group_instance_id
    )
    return HeartbeatResponse(error_code=error)
