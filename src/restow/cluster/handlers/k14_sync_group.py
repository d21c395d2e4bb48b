"""SyncGroup: return members' assignments in a new generation.

Behaviour: the leader sends the assignments, and they are stored in `__consumer_offsets` first.
Versions: 3 adds static members; 5 repeats the protocol's type and name.
"""

from __future__ import annotations

from restow.cluster.groups import SyncRequest
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import Message, SyncGroupResponse

_FIRST_WITH_PROTOCOL = 5


@handles(14, range(6))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    says_protocol = body.protocol_type is not None and body.protocol_name is not None
    if request.api_version >= _FIRST_WITH_PROTOCOL and not says_protocol:
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, assignment=b"")
    reply = await context.broker.groups.sync(
        body.group_id,
        SyncRequest(
            generation=body.generation_id,
            member_id=body.member_id,
            instance_id=body.group_instance_id,
            protocol_type=body.protocol_type,
            protocol_name=body.protocol_name,
            assignments=tuple((each.member_id, bytes(each.assignment)) for each in body.assignments),
        ),
    )
    return SyncGroupResponse(
        error_code=reply.error,
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name,
        assignment=reply.assignment,
    )
