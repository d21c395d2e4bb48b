"""DescribeAcls: return the ACLs that a filter picks.

Behaviour: without an authorizer the request is refused with SECURITY_DISABLED.
Versions: 1 adds the type of patterns.
"""

from __future__ import annotations

from restow.cluster.handlers.acl_messages import NO_AUTHORIZER, filter_of
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.security.acls import InvalidAcl
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import DescribeAclsResponse, Message

_RESOURCE = DescribeAclsResponse.DescribeAclsResource


@handles(29, range(4))
async def handle(request: Request, context: RequestContext) -> Message:
    acls = context.broker.acls
    if acls is None:
        code = ErrorCode.SECURITY_DISABLED
        return DescribeAclsResponse(error_code=code, error_message=NO_AUTHORIZER, resources=[])
    try:
        which = filter_of(request.body, request.api_version)
    except InvalidAcl as error:
        code = ErrorCode.INVALID_REQUEST
        return DescribeAclsResponse(error_code=code, error_message=str(error), resources=[])
    resources = []
    for pattern, entries in acls.rules.acls.items():
        picked = [each for each in sorted(entries) if which.picks(pattern, each)]
        if picked:
            resources.append(
                _RESOURCE(
                    resource_type=pattern.resource,
                    resource_name=pattern.name,
                    pattern_type=pattern.type,
                    acls=[
                        _RESOURCE.AclDescription(
                            principal=each.principal,
                            host=each.host,
                            operation=each.operation,
                            permission_type=each.permission,
                        )
                        for each in picked
                    ],
                )
            )
    return DescribeAclsResponse(error_code=0, resources=resources)
