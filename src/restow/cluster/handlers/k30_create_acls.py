"""CreateAcls: store ACLs where Kafka's AclAuthorizer keeps them.

Behaviour: an ACL that cannot be is refused alone. This broker obeys the new ones before it answers, the
  others as soon as they hear of them. Without an authorizer each is refused with SECURITY_DISABLED.
Versions: 1 adds the type of patterns.
"""

from __future__ import annotations

from restow.cluster.handlers.acl_messages import NO_AUTHORIZER, acl_of
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.security.acls import InvalidAcl
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import CreateAclsResponse, Message

_RESULT = CreateAclsResponse.AclCreationResult


@handles(30, range(4))
async def handle(request: Request, context: RequestContext) -> Message:
    acls = context.broker.acls
    results, wanted = [], []
    for each in request.body.creations:
        code, message = ErrorCode.NONE, None
        if acls is None:
            code, message = ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER
        else:
            try:
                wanted.append(acl_of(each, request.api_version))
            except InvalidAcl as error:
                code, message = ErrorCode.INVALID_REQUEST, str(error)
        results.append(_RESULT(error_code=code, error_message=message))
    if acls is not None and wanted:
        await acls.create(wanted)
    return CreateAclsResponse(results=results)
