"""DeleteGroups: delete groups without members, with all their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.handlers.registry import handles
from restow.wire.messages import DeleteGroupsResponse, Message

if TYPE_CHECKING:
    from restow.cluster.broker.services import RequestContext
    from restow.wire.codec import Request


@handles(42, range(3))
async def handle(request: Request, context: RequestContext) -> Message:
    errors = await context.broker.groups.delete_groups(tuple(request.body.groups_names))
    return DeleteGroupsResponse(
        results=[
            DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error)
            for group_id, error in errors.items()
        ]
    )
