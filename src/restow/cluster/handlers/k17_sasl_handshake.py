"""SaslHandshake: the client names the mechanism with which it will log in.

Behaviour:
- An unknown mechanism is answered with those that there are, then the connection is closed.
- On a listener without logins, and in the middle of one, the request is refused with ILLEGAL_SASL_STATE.
- After a login it begins another one, before the session expires; at most once a second.
Versions: after 0, tokens come in bare frames; after 1, in SaslAuthenticate.
"""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import Message, SaslHandshakeResponse


@handles(17, range(2))
async def handle(request: Request, context: RequestContext) -> Message:
    login = context.login
    if login is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    code = login.handshake(request.body.mechanism, request.api_version)
    return SaslHandshakeResponse(error_code=code, mechanisms=list(login.mechanisms))
