"""OAUTHBEARER (RFC 7628): a signed or unsigned JSON web token in one message.

For tests there are unsigned tokens, as Kafka's own unsecured login has them. With a shared secret, tokens are
signed by HMAC, and unsigned ones are refused.
"""

from __future__ import annotations

import hmac
import json
import re
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from dataclasses import field
from typing import TYPE_CHECKING, Any

from restow._frozen import frozen
from restow.cluster.security.refusal import SaslRefused, SaslReply

if TYPE_CHECKING:
    from restow.runtime.clock import Clock

_FIRST = re.compile(rb"n,(?:a=([^,]*))?,\x01(?:[A-Za-z]+=[^\x01]*\x01)*\x01")
_BEARER = re.compile(rb"\x01auth=Bearer +([-_\w.]+)\x01", re.IGNORECASE | re.ASCII)
_ABORT = b"\x01"
_REFUSAL = '{"status":"invalid_token"}'
_DIGESTS = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}


@frozen
class TokenRules:
    """Which tokens are accepted."""

    secret: bytes | None = field(default=None, repr=False)
    """The key of signatures; without it tokens are unsigned."""
    audiences: tuple[str, ...] = ()
    """One of them must be in the token's `aud`; none allow any token."""
    issuer: str | None = None
    principal_claim: str = "sub"
    clock_skew_s: float = 30.0


class InvalidToken(SaslRefused):
    """A token that is not accepted."""


class OAuthServer:
    """The server's side. After a bad token the client learns why, and says that it gives up."""

    def __init__(self, rules: TokenRules, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock
        self._why: str | None = None

    async def answer(self, token: bytes) -> SaslReply:
        """Return the next token. Raises SaslRefused."""
        if self._why is not None:
            given_up = token == _ABORT
            refusal = _REFUSAL if given_up else "Invalid OAUTHBEARER client message: expected 0x01"
            raise SaslRefused(refusal, self._why)
        first = _FIRST.fullmatch(token)
        bearer = _BEARER.search(token)
        if first is None or bearer is None:
            raise SaslRefused("Invalid OAUTHBEARER client first message")
        try:
            name, expires_ms = check_token(bearer[1].decode(), self._rules, self._clock.now_ms())
        except InvalidToken as error:
            self._why = str(error)
            return SaslReply(_REFUSAL.encode())
        if first[1] and first[1] != name.encode():
            raise SaslRefused(
                "Authentication failed: Client requested an authorization id that is different from the "
                "token's principal name"
            )
        return SaslReply(b"", name, expires_ms)


def check_token(token: str, rules: TokenRules, now_ms: int) -> tuple[str, int]:
    """Return the token's principal and the time of its end. Raises InvalidToken."""
    parts = token.split(".")
    if len(parts) != 3:
        raise InvalidToken("the token does not have three parts")
    header, claims = _document(parts[0], "header"), _document(parts[1], "claims")
    _check_signature(header, parts, rules)
    name = claims.get(rules.principal_claim)
    if not isinstance(name, str) or not name:
        raise InvalidToken(f"the token has no claim {rules.principal_claim!r}")
    skew_ms = rules.clock_skew_s * 1000
    expires_ms = _time_ms(claims, "exp")
    if expires_ms is None:
        raise InvalidToken("the token has no time of its end (exp)")
    if expires_ms + skew_ms <= now_ms:
        raise InvalidToken("the token has expired")
    for early in ("iat", "nbf"):
        begins_ms = _time_ms(claims, early)
        if begins_ms is not None and begins_ms - skew_ms > now_ms:
            raise InvalidToken(f"the token is not valid yet ({early})")
    audience = claims.get("aud")
    given = audience if isinstance(audience, list) else [audience]
    if rules.audiences and not any(each in given for each in rules.audiences):
        raise InvalidToken("the token is for another audience")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise InvalidToken("the token is from another issuer")
    return name, int(expires_ms)


def _check_signature(header: dict[str, Any], parts: list[str], rules: TokenRules) -> None:
    algorithm = header.get("alg")
    if rules.secret is None:
        if algorithm != "none" or parts[2]:
            raise InvalidToken("the token is signed, but this listener has no secret to check it with")
        return
    digest = _DIGESTS.get(algorithm) if isinstance(algorithm, str) else None
    if digest is None:
        raise InvalidToken(f"the token is not signed by one of {', '.join(_DIGESTS)}")
    expected = hmac.digest(rules.secret, f"{parts[0]}.{parts[1]}".encode(), digest)
    if not hmac.compare_digest(expected, _decoded(parts[2], "signature")):
        raise InvalidToken("the token's signature is wrong")


def _decoded(part: str, which: str) -> bytes:
    try:
        return urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (NotBase64, ValueError):
        raise InvalidToken(f"the token's {which} cannot be read") from None


def _document(part: str, which: str) -> dict[str, Any]:
    try:
        found = json.loads(_decoded(part, which))
    except (ValueError, RecursionError):
        raise InvalidToken(f"the token's {which} cannot be read") from None
    if not isinstance(found, dict):
        raise InvalidToken(f"the token's {which} cannot be read")
    return found


def _time_ms(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        raise InvalidToken(f"the token's claim {name} is not a time in seconds")
    return value * 1000
