"""Tokens of viewers and operators, and the sessions that they are exchanged for.

A token is made when the server starts, shown once, and never written to a file. A browser exchanges it for a
cookie; a program sends it with every request.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.runtime.clock import Clock

_IDLE_S = 12 * 3600.0
_MOST_SESSIONS = 1_000
_FAILURES, _WITHIN_S = 20, 60.0


class UiRole(IntEnum):
    """What a session may do. An operator may also see."""

    VIEWER = 1
    OPERATOR = 2


class TooManyAttempts(RestowError):
    """Somebody guesses tokens."""


@frozen
class UiSession:
    """Somebody who has shown a token. `csrf` has to come back with every change, unless a token did."""

    role: UiRole
    name: str
    """A short name for the audit log, which gives nothing away."""
    csrf: str | None

    @property
    def may_change(self) -> bool:
        return self.role is UiRole.OPERATOR


@dataclass(slots=True)
class _Open:
    session: UiSession
    used_s: float


def new_token() -> str:
    """Return a secret that nobody guesses."""
    return secrets.token_urlsafe(32)


class Sessions:
    """The tokens of this server, and the open sessions by the hash of their cookie."""

    def __init__(self, clock: Clock, tokens: Mapping[str, UiRole]) -> None:
        self._clock = clock
        self._tokens = {_hash(token): role for token, role in tokens.items()}
        self._open: dict[str, _Open] = {}
        self._failures: deque[float] = deque(maxlen=_FAILURES)

    def enter(self, token: str) -> str | None:
        """Exchange a token for the value of a cookie; None if the token is wrong."""
        role = self._role_of(token)
        if role is None:
            return None
        self._forget_idle()
        cookie = new_token()
        name = f"{role.name.lower()} {_hash(cookie)[:6]}"
        session = UiSession(role=role, name=name, csrf=new_token())
        self._open[_hash(cookie)] = _Open(session, self._clock.monotonic_s())
        return cookie

    def of_cookie(self, cookie: str) -> UiSession | None:
        """Return the session of a cookie; None if it has ended."""
        found = self._open.get(_hash(cookie))
        now_s = self._clock.monotonic_s()
        if found is None or now_s - found.used_s > _IDLE_S:
            return None
        found.used_s = now_s
        return found.session

    def of_token(self, token: str) -> UiSession | None:
        """Return a session for one request of a program that sends its token."""
        role = self._role_of(token)
        return None if role is None else UiSession(role=role, name=f"{role.name.lower()} token", csrf=None)

    def leave(self, cookie: str) -> None:
        """End a session."""
        self._open.pop(_hash(cookie), None)

    def _role_of(self, token: str) -> UiRole | None:
        now_s = self._clock.monotonic_s()
        if len(self._failures) == _FAILURES and now_s - self._failures[0] < _WITHIN_S:
            raise TooManyAttempts("too many wrong tokens: wait a minute, then try again")
        given = _hash(token)
        for known, role in self._tokens.items():
            if hmac.compare_digest(known, given):
                return role
        self._failures.append(now_s)
        return None

    def _forget_idle(self) -> None:
        now_s = self._clock.monotonic_s()
        gone = [key for key, each in self._open.items() if now_s - each.used_s > _IDLE_S]
        gone += sorted(self._open, key=lambda key: self._open[key].used_s)[
            : len(self._open) - _MOST_SESSIONS + 1
        ]
        for key in gone:
            self._open.pop(key, None)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
