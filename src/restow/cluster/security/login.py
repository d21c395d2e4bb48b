"""A client's login on one connection, and its renewal.

    START ──handshake──► NAMED ──tokens──► DONE ──handshake──► NAMED …      again, before the session expires
                           └──a bad token──► FAILED                        the connection is closed

Until the login is done, a client may only ask for ApiVersions and log in, as in Kafka.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from restow._frozen import frozen
from restow.cluster.security.oauth import OAuthServer
from restow.cluster.security.plain import PlainServer
from restow.cluster.security.principal import USER, Principal
from restow.cluster.security.refusal import SaslRefused
from restow.cluster.security.scram import SCRAM_MECHANISMS, ScramServer
from restow.cluster.security.settings import OAUTHBEARER, PLAIN
from restow.wire.codec import API_VERSIONS
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.cluster.security.refusal import SaslReply
    from restow.cluster.security.scram import ScramCredential
    from restow.cluster.security.settings import LoginSettings
    from restow.cluster.security.users import ScramUsers
    from restow.runtime.chance import Chance
    from restow.runtime.clock import Clock

log = logging.getLogger(__name__)

SASL_HANDSHAKE = 17
SASL_AUTHENTICATE = 36
MAX_FRAME_BYTES = 512 * 1024
"""Of a request before the login is done."""
_NONCE_BYTES = 20
_AGAIN_AFTER_S = 1.0


class LoginStage(Enum):
    START = "start"
    NAMED = "named"
    DONE = "done"
    FAILED = "failed"


class SaslServer(Protocol):
    """One mechanism's side of the broker."""

    async def answer(self, token: bytes) -> SaslReply:
        """Answer a client's token. Raises SaslRefused."""


@frozen
class LoginParts:
    """What logins of a listener share."""

    settings: LoginSettings
    users: ScramUsers
    clock: Clock
    chance: Chance


class SaslLogin:
    """The login of one connection."""

    def __init__(self, parts: LoginParts, peer: str, logged_in: Callable[[Principal], None]) -> None:
        """`logged_in` is called with the client's name whenever a login is done."""
        self._parts = parts
        self._peer = peer
        self._logged_in = logged_in
        self._principal: Principal | None = None
        self._mechanism = ""
        self._server: SaslServer | None = None
        self._renewal_refused = ""
        self._began_s = float("-inf")
        self._expires_s: float | None = None
        self.stage = LoginStage.START
        self.takes_tokens = False
        """Whether the next frame is a bare token, as after a handshake of version 0."""

    @property
    def is_done(self) -> bool:
        return self.stage is LoginStage.DONE

    @property
    def has_begun(self) -> bool:
        """Return whether the client has named a mechanism, and has not logged in with it yet."""
        return self.stage is LoginStage.NAMED

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that are enabled."""
        return self._parts.settings.mechanisms

    @property
    def has_failed(self) -> bool:
        return self.stage is LoginStage.FAILED

    def may_ask(self, api_key: int) -> bool:
        """Return whether a client in this stage may send that request."""
        if api_key in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            return True
        if self.stage is not LoginStage.DONE:
            return api_key == API_VERSIONS
        return self._expires_s is None or self._parts.clock.monotonic_s() < self._expires_s

    def handshake(self, mechanism: str, version: int) -> ErrorCode:
        """Begin a login with this mechanism."""
        now_s = self._parts.clock.monotonic_s()
        if self.stage is LoginStage.NAMED or now_s - self._began_s < _AGAIN_AFTER_S:
            self._fail_unless_done()
            return ErrorCode.ILLEGAL_SASL_STATE
        if mechanism not in self._parts.settings.mechanisms:
            log.info("%s asked for the SASL mechanism %r, which is not enabled", self._peer, mechanism)
            self.stage = LoginStage.FAILED
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM
        if self._principal is not None:
            self._began_s = now_s
            if mechanism != self._mechanism:
                self._renewal_refused = (
                    f"SASL mechanism '{mechanism}' requested by client is not supported for "
                    f"re-authentication of mechanism '{self._mechanism}'"
                )
        else:
            self._mechanism = mechanism
        self._server = self._new_server(mechanism)
        self.takes_tokens = version == 0
        self.stage = LoginStage.NAMED
        return ErrorCode.NONE

    async def authenticate(self, token: bytes) -> tuple[bytes, int]:
        """Return the answer to a token and the session's length, 0 if it has no end. Raises SaslRefused."""
        try:
            return await self._step(token)
        except SaslRefused as refused:
            self.stage = LoginStage.FAILED
            log.info("%s failed to log in by %s: %s", self._peer, self._mechanism, refused.reason)
            await self._parts.clock.sleep(self._parts.settings.failure_delay_ms / 1000)
            raise

    async def _step(self, token: bytes) -> tuple[bytes, int]:
        if self._server is None or self._renewal_refused:
            raise SaslRefused(self._renewal_refused or "no mechanism was named")
        reply = await self._server.answer(token)
        lifetime_ms = 0
        if reply.name is not None:
            lifetime_ms = self._done(Principal(USER, reply.name), reply.expires_ms)
        return reply.token, lifetime_ms

    def _done(self, principal: Principal, expires_ms: int | None) -> int:
        """Record who has logged in, and return how long the session lasts."""
        if self._principal not in (None, principal):
            raise SaslRefused(
                f"Cannot change principals during re-authentication from {self._principal}: {principal}"
            )
        self._principal = principal
        self._server = None
        self.takes_tokens = False
        self.stage = LoginStage.DONE
        lifetime_ms = self._lifetime_ms(expires_ms)
        self._expires_s = None
        if lifetime_ms is not None:
            self._expires_s = self._parts.clock.monotonic_s() + lifetime_ms / 1000
        self._logged_in(principal)
        return lifetime_ms or 0

    def _lifetime_ms(self, expires_ms: int | None) -> int | None:
        most_ms = self._parts.settings.max_reauth_ms.get(self._mechanism, 0)
        ends = [most_ms] if most_ms else []
        if expires_ms is not None:
            ends.append(max(expires_ms - self._parts.clock.now_ms(), 0))
        return min(ends) if ends else None

    def _fail_unless_done(self) -> None:
        if self.stage is not LoginStage.DONE:
            self.stage = LoginStage.FAILED

    def _new_server(self, mechanism: str) -> SaslServer:
        parts = self._parts
        users = parts.settings.users.get(mechanism, {})
        if mechanism == PLAIN:
            return PlainServer(users)
        if mechanism == OAUTHBEARER:
            return OAuthServer(parts.settings.tokens, parts.clock)
        scram = SCRAM_MECHANISMS[mechanism]

        async def credential_of(user: str) -> ScramCredential | None:
            return await parts.users.credential(scram, user, users)

        return ScramServer(scram, credential_of, parts.chance.randbytes(_NONCE_BYTES).hex())
