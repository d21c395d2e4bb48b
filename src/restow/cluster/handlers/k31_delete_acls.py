"""DeleteAcls: delete the ACLs that filters pick, and return them.

Behaviour: as CreateAcls. An ACL that two filters pick is named by the first.
Versions: 1 adds the type of patterns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.handlers.acl_messages import NO_AUTHORIZER, filter_of
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.security.acls import InvalidAcl
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import DeleteAclsResponse, Message

if TYPE_CHECKING:
    from restow.cluster.security.acls import AclEntry, AclPattern

_RESULT = DeleteAclsResponse.DeleteAclsFilterResult


@handles(31, range(4))
async def handle(request: Request, context: RequestContext) -> Message:
    acls = context.broker.acls
    results = []
    for each in request.body.filters:
        if acls is None:
            code = ErrorCode.SECURITY_DISABLED
            results.append(_RESULT(error_code=code, error_message=NO_AUTHORIZER, matching_acls=[]))
            continue
        try:
            gone = await acls.delete(filter_of(each, request.api_version))
        except InvalidAcl as error:
            code = ErrorCode.INVALID_REQUEST
            results.append(_RESULT(error_code=code, error_message=str(error), matching_acls=[]))
        else:
            results.append(_RESULT(error_code=0, matching_acls=[_matching(*it) for it in gone]))
    return DeleteAclsResponse(filter_results=results)


def _matching(pattern: AclPattern, entry: AclEntry) -> Message:
    return _RESULT.DeleteAclsMatchingAcl(
        error_code=0,
        resource_type=pattern.resource,
        resource_name=pattern.name,
        pattern_type=pattern.type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
