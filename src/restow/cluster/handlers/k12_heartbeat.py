"""Heartbeat: keep a member's session alive, and tell it about a rebalance.

Versions: 3 adds static members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.handlers.registry import handles
from restow.wire.messages import HeartbeatResponse, Message

if TYPE_CHECKING:
    from restow.cluster.broker.services import RequestContext
    from restow.wire.codec import Request


@handles(12, range(5))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    error = await context.broker.groups.heartbeat(
        body.group_id, body.generation_id, body.member_id, body.group_instance_id
    )
    return HeartbeatResponse(error_code=error)
