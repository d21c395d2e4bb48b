"""DeleteGroups: delete groups without members, with all their offsets."""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.messages import DeleteGroupsResponse, Message


@handles(42, range(3))
async def handle(request: Request, context: RequestContext) -> Message:
    errors = await context.broker.groups.delete_groups(tuple(request.body.groups_names))
    return DeleteGroupsResponse(
        results=[
            DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error)
            for group_id, error in errors.items()
        ]
    )
