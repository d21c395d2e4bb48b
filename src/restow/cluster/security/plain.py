"""PLAIN (RFC 4616): name and password in one message."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from restow.cluster.security.refusal import SaslRefused, SaslReply
from restow.cluster.security.scram import OTHER_IDENTITY

if TYPE_CHECKING:
    from collections.abc import Mapping

_PARTS = 3


class PlainServer:
    """The server's side: one token in, an empty one out."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        """`passwords` are those of all users, by name."""
        self._passwords = passwords

    async def answer(self, token: bytes) -> SaslReply:
        """Return the last token. Raises SaslRefused."""
        parts = token.split(b"\0")
        if len(parts) != _PARTS:
            raise SaslRefused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        try:
            authzid, name, _ = (part.decode() for part in parts)
        except UnicodeDecodeError:
            raise SaslRefused("Invalid SASL/PLAIN response: not UTF-8") from None
        if not name:
            raise SaslRefused("Authentication failed: username not specified")
        if not parts[2]:
            raise SaslRefused("Authentication failed: password not specified")
        expected = self._passwords.get(name)
        is_right = hmac.compare_digest((expected or "").encode(), parts[2])
        if expected is None or not is_right:
            raise SaslRefused("Authentication failed: Invalid username or password")
        if authzid not in ("", name):
            raise SaslRefused(OTHER_IDENTITY)
        return SaslReply(b"", name)


def plain_token(user: str, password: str) -> bytes:
    """Return the client's message."""
    return f"\0{user}\0{password}".encode()
