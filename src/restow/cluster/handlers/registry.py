"""Who answers which request: a decorator beside each handler, and the table that it fills.

What is not in the table is not served, and ApiVersions, which is made from it, does not offer it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from restow.errors import RestowError
from restow.wire.messages import REQUESTS, Message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from restow.cluster.broker.services import RequestContext
    from restow.wire.codec import Buffer, Request

Answer: TypeAlias = "Message | tuple[Buffer, ...] | None"
"""A body, or one that is encoded already, or nothing for a request that wants no answer."""
Handle: TypeAlias = "Callable[[Request, RequestContext], Awaitable[Answer]]"


class HangUp(RestowError):
    """The connection is to be closed without an answer; the message says why."""


class Handler(NamedTuple):
    """A function and the versions of the request that it answers."""

    versions: range
    handle: Handle


HANDLERS: dict[int, Handler] = {}
"""By API key."""


def handles(api_key: int, versions: range) -> Callable[[Handle], Handle]:
    """Make the function the one that answers these versions of a request."""
    if api_key in HANDLERS:
        raise ValueError(f"request {api_key} has two handlers")
    if versions[-1] > REQUESTS[api_key].max_version:
        raise ValueError(f"request {api_key} has no version {versions[-1]}")

    def register(handle: Handle) -> Handle:
        HANDLERS[api_key] = Handler(versions, handle)
        return handle

    return register


def served_versions() -> dict[int, range]:
    """What ApiVersions offers and the codec reads."""
    return {key: HANDLERS[key].versions for key in sorted(HANDLERS)}
