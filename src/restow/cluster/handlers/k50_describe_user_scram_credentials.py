"""DescribeUserScramCredentials: which SCRAM credentials users have, without the credentials themselves.

Behaviour: users in the broker's own configs are not listed, as in Kafka. A user named twice is refused alone.
"""

from __future__ import annotations

from collections import Counter

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import DescribeUserScramCredentialsResponse, Message

_RESULT = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult


@handles(50, range(1))
async def handle(request: Request, context: RequestContext) -> Message:
    users = context.broker.users
    asked = Counter(each.name for each in request.body.users or ())
    stored = await users.stored(asked or await users.names())
    results = []
    for user, credentials in stored.items():
        infos = [
            _RESULT.CredentialInfo(mechanism=mechanism, iterations=found.iterations)
            for mechanism, found in credentials.items()
        ]
        if asked[user] > 1:
            code = ErrorCode.DUPLICATE_RESOURCE
            message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
            results.append(_RESULT(user=user, error_code=code, error_message=message, credential_infos=[]))
        elif infos:
            results.append(_RESULT(user=user, credential_infos=infos))
        elif user in asked:
            code = ErrorCode.RESOURCE_NOT_FOUND
            message = f"Attempt to describe a user credential that does not exist: {user}"
            results.append(_RESULT(user=user, error_code=code, error_message=message, credential_infos=[]))
    return DescribeUserScramCredentialsResponse(results=results)
