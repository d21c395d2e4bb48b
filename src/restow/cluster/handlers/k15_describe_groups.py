"""DescribeGroups: return state, protocol and members of groups that this broker coordinates.

Behaviour: a missing group is described as Dead.
Versions: 3 tells what the client may do to a group, if it asks; 4 returns instance ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.messages import DescribeGroupsResponse, Message
from restow.wire.operations import ON_GROUPS

if TYPE_CHECKING:
    from restow.cluster.groups import GroupDescription


@handles(15, range(6))
async def handle(request: Request, context: RequestContext) -> Message:
    groups = context.broker.groups
    described = [await groups.describe(group_id) for group_id in request.body.groups]
    tells = request.body.include_authorized_operations
    return DescribeGroupsResponse(groups=[_group(each, tells=tells) for each in described])


def _group(it: GroupDescription, *, tells: bool) -> Message:
    return DescribeGroupsResponse.DescribedGroup(
        error_code=it.error,
        group_id=it.group_id,
        group_state="" if it.state is None else it.state.value,
        protocol_type=it.protocol_type,
        protocol_data=it.protocol_name,
        members=[
            DescribeGroupsResponse.DescribedGroup.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in it.members
        ],
        authorized_operations=ON_GROUPS if tells and not it.error else None,
    )
