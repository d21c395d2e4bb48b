"""What one step of a login leads to."""

from __future__ import annotations

from typing import NamedTuple

from restow.errors import RestowError


class SaslRefused(RestowError):
    """A login failed. The client gets the message, so it has no secrets."""

    def __init__(self, message: str, reason: str = "") -> None:
        """`reason` is what the broker's log says, if that is more."""
        super().__init__(message)
        self.reason = reason or message


class SaslReply(NamedTuple):
    """The server's token, and who has logged in if that was the last step."""

    token: bytes
    name: str | None = None
    expires_ms: int | None = None
    """When the client's own credential expires, if it does."""
