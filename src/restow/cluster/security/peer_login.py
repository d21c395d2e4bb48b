"""A broker's login to another broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from restow.cluster.security.login import SASL_AUTHENTICATE, SASL_HANDSHAKE
from restow.cluster.security.plain import plain_token
from restow.cluster.security.refusal import SaslRefused
from restow.cluster.security.scram import SCRAM_MECHANISMS, ScramClient
from restow.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest

if TYPE_CHECKING:
    from restow.cluster.security.settings import PeerCredentials
    from restow.runtime.chance import Chance
    from restow.wire.messages import Message

_HANDSHAKE_VERSION = 1
_AUTHENTICATE_VERSION = 1
_NONCE_BYTES = 20
_TIMEOUT_S = 10.0


class Asks(Protocol):
    """A connection to the other broker."""

    async def ask(self, api_key: int, version: int, body: Message, timeout_s: float) -> Message:
        """Return the response. Raises OSError."""


class PeerLogin:
    """Logs in on new connections to other brokers, and again before a session ends."""

    def __init__(self, credentials: PeerCredentials, chance: Chance) -> None:
        self._credentials = credentials
        self._chance = chance

    async def log_in(self, link: Asks) -> float | None:
        """Log in, and return after how many seconds to do so again, if ever. Raises OSError."""
        mechanism = self._credentials.mechanism
        request = SaslHandshakeRequest(mechanism=mechanism)
        answer = await link.ask(SASL_HANDSHAKE, _HANDSHAKE_VERSION, request, _TIMEOUT_S)
        if answer.error_code:
            raise ConnectionError(
                f"the other broker does not take the SASL mechanism {mechanism} (error {answer.error_code})"
            )
        try:
            lifetime_ms = await self._exchange(link)
        except SaslRefused as refused:
            raise ConnectionError(f"the login to the other broker failed: {refused}") from refused
        return lifetime_ms / 1000 if lifetime_ms else None

    async def _exchange(self, link: Asks) -> int:
        user, password = self._credentials.user, self._credentials.password
        scram = SCRAM_MECHANISMS.get(self._credentials.mechanism)
        if scram is None:
            _, lifetime_ms = await _send(link, plain_token(user, password))
            return lifetime_ms
        client = ScramClient(scram, user, password, self._chance.randbytes(_NONCE_BYTES).hex())
        first, _ = await _send(link, client.first())
        proof, expected = client.final(first)
        last, lifetime_ms = await _send(link, proof)
        if last != expected:
            raise SaslRefused("it does not know the password itself")
        return lifetime_ms


async def _send(link: Asks, token: bytes) -> tuple[bytes, int]:
    request = SaslAuthenticateRequest(auth_bytes=token)
    answer = await link.ask(SASL_AUTHENTICATE, _AUTHENTICATE_VERSION, request, _TIMEOUT_S)
    if answer.error_code:
        raise SaslRefused(answer.error_message or f"error {answer.error_code}")
    return answer.auth_bytes, answer.session_lifetime_ms
