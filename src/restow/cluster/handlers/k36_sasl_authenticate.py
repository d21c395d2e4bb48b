"""SaslAuthenticate: one token of a login, and the broker's answer to it.

Behaviour: a login that fails is answered with SASL_AUTHENTICATION_FAILED, a tenth of a second later, as in
Kafka (`connection.failed.authentication.delay.ms`), then the connection is closed.
Versions: 1 has the session's length, after which the client must log in again.
"""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.security.refusal import SaslRefused
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import Message, SaslAuthenticateResponse


@handles(36, range(3))
async def handle(request: Request, context: RequestContext) -> Message:
    login = context.login
    if login is None or not login.has_begun:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
            auth_bytes=b"",
        )
    try:
        token, lifetime_ms = await login.authenticate(request.body.auth_bytes)
    except SaslRefused as refused:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(refused), auth_bytes=b""
        )
    return SaslAuthenticateResponse(error_code=0, auth_bytes=token, session_lifetime_ms=lifetime_ms)
