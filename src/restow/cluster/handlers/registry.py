"""The table of handlers, filled by a decorator beside each of them.

Requests not in the table are not served, and ApiVersions, which is built from it, does not offer them. Every
handler takes a `Request` and a `RequestContext`, so it can import both from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from restow.cluster.broker.services import RequestContext
from restow.errors import RestowError
from restow.wire.codec import Request
from restow.wire.messages import REQUESTS, Message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from restow.wire.primitives import Buffer

__all__ = [
    "HANDLERS",
    "Answer",
    "Handler",
    "HangUp",
    "Message",
    "Request",
    "RequestContext",
    "handles",
    "served_versions",
]
Answer: TypeAlias = "Message | tuple[Buffer, ...] | None"
"""A body, encoded bytes, or None for a request without a response."""
Handle: TypeAlias = "Callable[[Request, RequestContext], Awaitable[Answer]]"


class HangUp(RestowError):
    """Closes the connection without a response; the message says why."""


class Handler(NamedTuple):
    """A function and the versions it serves."""

    versions: range
    handle: Handle


HANDLERS: dict[int, Handler] = {}
"""By API key."""


def handles(api_key: int, versions: range) -> Callable[[Handle], Handle]:
    """Register the function for these versions of a request."""
    if api_key in HANDLERS:
        raise ValueError(f"request {api_key} has two handlers")
    if versions[-1] > REQUESTS[api_key].max_version:
        raise ValueError(f"request {api_key} has no version {versions[-1]}")

    def register(handle: Handle) -> Handle:
        HANDLERS[api_key] = Handler(versions, handle)
        return handle

    return register


def served_versions() -> dict[int, range]:
    """Return the versions that ApiVersions offers and the codec reads."""
    return {key: HANDLERS[key].versions for key in sorted(HANDLERS)}
