"""LeaveGroup: members leave, or an administrator removes static ones.

Versions: up to 2 one member, with one error code; from 3 on many, each with its own.
"""

from __future__ import annotations

from restow.cluster.groups import LeavingMember
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.messages import LeaveGroupResponse, Message

_FIRST_BATCHED = 3


@handles(13, range(6))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    batched = request.api_version >= _FIRST_BATCHED
    leaving = (
        tuple(LeavingMember(each.member_id, each.group_instance_id) for each in body.members)
        if batched
        else (LeavingMember(body.member_id),)
    )
    reply = await context.broker.groups.leave(body.group_id, leaving)
    if not batched:
        error = reply.error or next((each for _, each in reply.members), reply.error)
        return LeaveGroupResponse(error_code=error)
    return LeaveGroupResponse(
        error_code=reply.error,
        members=[
            LeaveGroupResponse.MemberResponse(
                member_id=member.member_id, group_instance_id=member.instance_id, error_code=error
            )
            for member, error in reply.members
        ],
    )
