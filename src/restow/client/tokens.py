"""Bearer tokens for OAUTHBEARER: from a token endpoint, from a file, or unsigned for development.

A token endpoint is asked with the client-credentials grant (RFC 6749, 4.4). Its token is used for four fifths
of its lifetime. No error contains the client's secret or a token.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from restow._frozen import frozen
from restow.client.errors import LoginRefused, Unreachable
from restow.runtime.secrets import Secret

if TYPE_CHECKING:
    from collections.abc import Mapping

_TIMEOUT_S = 10.0
_USED_UP = 0.8
_MOST_BYTES = 1 << 20
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)
_ERROR = re.compile(r"[a-z_]{1,40}", re.ASCII)


@frozen
class Token:
    """A token, and until when it may be reused; None to ask each time."""

    value: Secret
    fresh_until: datetime | None = None


class TokenSource(Protocol):
    """A source of tokens."""

    def fetch(self) -> Token:
        """Return a token. Raise LoginRefused or Unreachable if there is none."""


@frozen
class TokenFile:
    """A file that another program renews before the token expires, so it is read each time."""

    path: str

    def fetch(self) -> Token:
        try:
            text = Path(self.path).read_text(encoding="ascii").strip()
        except OSError as error:
            raise LoginRefused(f"the token file {self.path!r} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            text = ""
        return Token(value=_checked(text, f"the token file {self.path!r}"))


@frozen
class Unsecured:
    """Tokens without a signature, which only brokers for development accept."""

    claims: Mapping[str, str]
    lifetime_s: float = 3600.0

    def fetch(self) -> Token:
        now = datetime.now(UTC)
        life = timedelta(seconds=self.lifetime_s)
        claims = {**self.claims, "iat": now.timestamp(), "exp": (now + life).timestamp()}
        text = f"{_base64url({'alg': 'none'})}.{_base64url(claims)}."
        return Token(value=Secret(text), fresh_until=now + life * _USED_UP)


def _base64url(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@frozen
class TokenEndpoint:
    """A token endpoint, and our credentials for it."""

    url: str
    client_id: str
    client_secret: Secret
    scope: str = ""
    url_encoded: bool = False
    """Encode id and secret before they are joined, as RFC 6749 asks and few servers expect."""

    def fetch(self) -> Token:
        now = datetime.now(UTC)
        answer = self._ask()
        value = answer.get("access_token") or answer.get("id_token")
        life = answer.get("expires_in")
        return Token(
            value=_checked(value if isinstance(value, str) else "", self._name),
            fresh_until=now + timedelta(seconds=life * _USED_UP)
            if isinstance(life, int | float) and 0 < life < 10**9
            else None,
        )

    @property
    def _name(self) -> str:
        """The URL without the query, which may hold keys."""
        return f"the token endpoint {self.url.partition('?')[0]}"

    def _ask(self) -> Mapping[str, Any]:
        form = {"grant_type": "client_credentials", **({"scope": self.scope} if self.scope else {})}
        who = (self.client_id, self.client_secret.reveal())
        pair = ":".join(quote(each, safe="") for each in who) if self.url_encoded else ":".join(who)
        request = Request(  # noqa: S310  (`logins` lets https through, and http to this machine)
            self.url,
            data=urlencode(form).encode(),
            headers={
                "Accept": "application/json",
                "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}",
                "Content-Type": "application/x-www-form-urlencoded",
            },
        )
        opener = build_opener(_NoRedirects, HTTPSHandler(context=ssl.create_default_context()))
        try:
            with opener.open(request, timeout=_TIMEOUT_S) as response:
                answer = json.loads(response.read(_MOST_BYTES))
        except HTTPError as error:
            with error:
                raise self._refusal(error.code, error.read(_MOST_BYTES)) from None
        except (URLError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise Unreachable(f"{self._name} does not answer: {reason}") from None
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise Unreachable(f"{self._name} answers, but not with JSON: check the URL")
        return answer

    def _refusal(self, status: int, body: bytes) -> Unreachable:
        """Report the status and OAuth's error code; the rest of a response may repeat our request."""
        try:
            word = json.loads(body).get("error", "")
        except (ValueError, AttributeError):
            word = ""
        said = f"{status} {word}" if isinstance(word, str) and _ERROR.fullmatch(word) else f"{status}"
        if status in {400, 401, 403}:
            return LoginRefused(f"{self._name} refuses the client ({said}): check its id, secret and scope")
        return Unreachable(f"{self._name} has no token ({said}): check the URL")


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects, which would send the client's secret to another server."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _checked(text: str, where: str) -> Secret:
    if not _TOKEN.fullmatch(text):
        raise LoginRefused(f"{where} holds no bearer token")
    return Secret(text)


@dataclass(slots=True)
class Tokens:
    """Hands out tokens and caches one while it is fresh, for several connections at once."""

    source: TokenSource = field(repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)
    _kept: Token | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def token(self) -> str:
        """Return the plain token."""
        with self._lock:
            kept = self._kept
            if kept is None or kept.fresh_until is None or datetime.now(UTC) >= kept.fresh_until:
                kept = self._kept = self.source.fetch()
            return kept.value.reveal()


def as_provider(tokens: Tokens) -> Any:
    """Return a token provider for kafka-python."""
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return tokens.token()

        def extensions(self) -> dict[str, str]:
            return dict(tokens.extensions)

        def __repr__(self) -> str:
            return "<tokens>"

    return Provider()
