"""JoinGroup: a member joins the group's next generation, and waits until it is complete.

Versions:
- 0 has no rebalance timeout; the session timeout counts.
- From 4 on a new member first gets its id and joins with it (KIP-394).
- 5 adds static members; 9 lets a returning leader keep the assignment.
"""

from __future__ import annotations

from restow.cluster.groups import JoinRequest
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.messages import JoinGroupResponse, Message

_FIRST_WITH_REBALANCE_TIMEOUT = 1
_FIRST_WITH_KNOWN_ID = 4
_FIRST_WITH_NULL_PROTOCOL = 7
_FIRST_WITH_SKIP = 9


@handles(11, range(10))
async def handle(request: Request, context: RequestContext) -> Message:
    body, version = request.body, request.api_version
    has_timeout = version >= _FIRST_WITH_REBALANCE_TIMEOUT
    reply = await context.broker.groups.join(
        body.group_id,
        JoinRequest(
            member_id=body.member_id,
            instance_id=body.group_instance_id,
            client_id=request.client_id or "",
            client_host=context.client_host,
            session_timeout_ms=body.session_timeout_ms,
            rebalance_timeout_ms=body.rebalance_timeout_ms if has_timeout else body.session_timeout_ms,
            protocol_type=body.protocol_type,
            protocols=tuple((each.name, bytes(each.metadata)) for each in body.protocols),
            needs_known_id=version >= _FIRST_WITH_KNOWN_ID,
            can_skip_assignment=version >= _FIRST_WITH_SKIP,
        ),
    )
    name = reply.protocol_name
    return JoinGroupResponse(
        error_code=reply.error,
        generation_id=reply.generation,
        protocol_type=reply.protocol_type,
        protocol_name="" if name is None and version < _FIRST_WITH_NULL_PROTOCOL else name,
        leader=reply.leader,
        skip_assignment=reply.skip_assignment,
        member_id=reply.member_id,
        members=[
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=each.member_id, group_instance_id=each.instance_id, metadata=each.metadata
            )
            for each in reply.members
        ],
    )
