"""ListGroups: return the groups that this broker coordinates.

Versions: 4 returns and filters by states, 5 by types: classic and consumer.
"""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.messages import ListGroupsResponse, Message

_FIRST_WITH_STATES = 4
_FIRST_WITH_TYPES = 5


@handles(16, range(6))
async def handle(request: Request, context: RequestContext) -> Message:
    body, version = request.body, request.api_version
    states = {each.lower() for each in body.states_filter} if version >= _FIRST_WITH_STATES else set()
    types = {each.lower() for each in body.types_filter} if version >= _FIRST_WITH_TYPES else set()
    reply = await context.broker.groups.list()
    return ListGroupsResponse(
        error_code=reply.error,
        groups=[
            ListGroupsResponse.ListedGroup(
                group_id=each.group_id,
                protocol_type=each.protocol_type,
                group_state=each.state,
                group_type=each.type,
            )
            for each in reply.groups
            if (not states or each.state.lower() in states) and (not types or each.type in types)
        ],
    )
