"""The guard before every request: it refuses by default.

    Host           must be a name that we listen by; another one is a page that has rebound its DNS name
    size, time     a body has a largest size, and its parts have to arrive
    session        everything but the login, the style and the script needs one
    role           a request that changes something needs an operator, and a server that is not read-only
    origin, CSRF   such a request has to come from our own pages, with the token that they carry

Every answer gets headers that forbid foreign scripts, frames, caches and guesses about types.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from dataclasses import field
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse

from restow._frozen import frozen
from restow.html.plots import PLOT_STYLE
from restow.ui.frame import error_page
from restow.ui.sessions import TooManyAttempts

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from restow.ui.sessions import Sessions, UiSession

_SAFE = ("GET", "HEAD", "OPTIONS")
_OPEN_PATHS = ("/login", "/static/style.css", "/static/script.js", "/static/icon.svg")
_FORM_BYTES = 64 * 1024
UPLOAD_BYTES = 64 * 1024 * 1024
UPLOADS = ("/plans/upload", "/api/v1/plans/upload")
_BODY_PART_S = 20.0
_FORM = "application/x-www-form-urlencoded"
_PLOT_HASH = base64.b64encode(hashlib.sha256(PLOT_STYLE.encode()).digest()).decode()
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
        f"style-src 'self' 'unsafe-hashes' 'sha256-{_PLOT_HASH}'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Refused(Exception):
    """The request is refused. The message is a sentence for the person who sent it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@frozen
class Guard:
    """The guard, as an ASGI application around another one."""

    app: ASGIApp
    sessions: Sessions
    hosts: frozenset[str]
    """The values of the Host header that are ours, in lower case, with their port."""
    cookie: str
    read_only: bool = False
    secure: bool = False
    """Whether we are reached by TLS, so that the cookie never leaves it."""
    body_part_s: float = field(default=_BODY_PART_S)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        guarded = self._with_headers(scope, send)
        try:
            receive = await self._checked(scope, receive)
        except Refused as error:
            await self._refusal(scope, error)(scope, receive, guarded)
            return
        if scope["state"].get("session") is None and scope["path"] not in _OPEN_PATHS:
            await self._to_login(scope)(scope, receive, guarded)
            return
        await self.app(scope, receive, guarded)

    async def _checked(self, scope: Scope, receive: Receive) -> Receive:
        """Check the request, and return how to read its body."""
        headers = Headers(scope=scope)
        if len(headers.getlist("host")) != 1 or headers["host"].lower() not in self.hosts:
            raise Refused(421, "this server has another name: open the address that it printed")
        try:
            session = self._session(headers)
        except TooManyAttempts as error:
            raise Refused(429, str(error)) from error
        scope.setdefault("state", {})["session"] = session
        if scope["method"] in _SAFE:
            return receive
        return await self._checked_change(scope, headers, session, receive)

    async def _checked_change(
        self, scope: Scope, headers: Headers, session: UiSession | None, receive: Receive
    ) -> Receive:
        path = scope["path"]
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Refused(403, "this request came from another page")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() not in self.hosts:
            raise Refused(403, "this request came from another page")
        most = UPLOAD_BYTES if path in UPLOADS else _FORM_BYTES
        limited = self._limited(receive, most, headers)
        if path == "/login":
            return limited
        if session is None:
            raise Refused(401, "your session has ended: enter again, then repeat it")
        if path != "/logout":
            if self.read_only:
                raise Refused(403, "this server is read-only (--read-only): nothing can be changed here")
            if not session.may_change:
                raise Refused(403, "you are a viewer: only an operator may change something")
        if session.csrf is None:
            return limited
        given = headers.get("x-csrf-token", "")
        if not given and headers.get("content-type", "").partition(";")[0] == _FORM:
            body = await _whole(limited)
            given = parse_qs(body.decode(errors="replace")).get("csrf", [""])[0]
            limited = _replayed(body, receive)
        if not hmac.compare_digest(given.encode(), session.csrf.encode()):
            raise Refused(403, "the page is too old, or is not ours: reload it, then repeat it")
        return limited

    def _session(self, headers: Headers) -> UiSession | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.sessions.of_token(token.strip())
        cookie = cookie_of(headers, self.cookie)
        return None if cookie is None else self.sessions.of_cookie(cookie)

    def _limited(self, receive: Receive, most: int, headers: Headers) -> Receive:
        """Return a way to read the body that refuses one too large or too slow."""
        too_large = f"this is larger than {most // 1024:,} KiB, which is the most that is taken here"
        said = headers.get("content-length", "0")
        if not said.isdecimal() or int(said) > most:
            raise Refused(413, too_large)
        read = 0

        async def limited() -> Message:
            nonlocal read
            try:
                message = await asyncio.wait_for(receive(), self.body_part_s)
            except TimeoutError:
                raise Refused(408, "the rest of the request did not arrive in time") from None
            read += len(message.get("body", b""))
            if read > most:
                raise Refused(413, too_large)
            return message

        return limited

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                if not scope["path"].startswith("/static/"):
                    headers["cache-control"] = "no-store"
                if self.secure:
                    headers["strict-transport-security"] = "max-age=31536000"
            await send(message)

        return guarded

    def _to_login(self, scope: Scope) -> ASGIApp:
        if scope["method"] == "GET" and _is_page(scope["path"]):
            return RedirectResponse("/login", status_code=303)
        return self._refusal(scope, Refused(401, "enter first: the server printed a token when it started"))

    def _refusal(self, scope: Scope, error: Refused) -> ASGIApp:
        return refusal(scope, error)


def refusal(scope: Scope, error: Refused) -> ASGIApp:
    """Return the answer to a request that is refused: a page for people, JSON for programs."""
    if _is_page(scope["path"]):
        return error_page(error.status, str(error))
    return JSONResponse({"error": str(error)}, status_code=error.status)


def cookie_of(headers: Headers, name: str) -> str | None:
    """Return the value of our cookie."""
    jar: SimpleCookie = SimpleCookie()
    for line in headers.getlist("cookie"):
        try:
            jar.load(line)
        except CookieError:
            continue
    found = jar.get(name)
    return None if found is None else found.value


def _is_page(path: str) -> bool:
    return not path.startswith(("/api/", "/events", "/metrics"))


async def _whole(receive: Callable[[], object]) -> bytes:
    parts = []
    while True:
        message = await receive()  # type: ignore[misc]
        if message["type"] == "http.disconnect":
            raise Refused(400, "the request was cut off")
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a way to read a body again; what comes after it is asked of the connection."""
    left = [body]

    async def replay() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return replay
