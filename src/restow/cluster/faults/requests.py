"""Faults that requests meet: handlers that stand before a broker's own, only while a fault lasts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from restow._frozen import frozen
from restow.cluster.faults.answers import error_answer
from restow.cluster.faults.asked import topics_of
from restow.cluster.faults.names import broker_behind
from restow.cluster.handlers import HANDLERS, Answer, HangUp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.broker.services import RequestContext
    from restow.cluster.faults.handle import ClusterFault
    from restow.wire.codec import Request
    from restow.wire.error_codes import ErrorCode

Proceed: TypeAlias = Callable[["Request", "RequestContext"], Awaitable[Answer]]
Intercept: TypeAlias = Callable[["Request", "RequestContext", Proceed], Awaitable[Answer]]
"""Answers a request, or lets the next one in line do it."""

_BETWEEN_BROKERS = (4, 5, 6, 7, 56)
"""LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown, AlterPartition: only brokers send them."""


class HandlerTable:
    """The handlers of one broker; those of APIs without a fault are the broker's own."""

    def __init__(self) -> None:
        self.handlers = dict(HANDLERS)
        """By API key, what answers requests."""
        self._lines: dict[int, list[Intercept]] = {}

    def add(self, api_keys: Iterable[int], intercept: Intercept) -> None:
        """Put an intercept before the handlers of these APIs, behind earlier ones."""
        for key in api_keys:
            self._lines.setdefault(key, []).append(intercept)
            self._rebuild(key)

    def remove(self, intercept: Intercept) -> None:
        """Take an intercept away. Requests that it has begun to handle go on."""
        for key in [key for key, line in self._lines.items() if intercept in line]:
            self._lines[key].remove(intercept)
            self._rebuild(key)

    def _rebuild(self, key: int) -> None:
        own = HANDLERS[key]
        proceed = own.handle
        for intercept in reversed(self._lines[key]):
            proceed = _before(proceed, intercept)
        self.handlers[key] = own._replace(handle=proceed)


def _before(proceed: Proceed, intercept: Intercept) -> Proceed:
    async def handle(request: Request, context: RequestContext) -> Answer:
        return await intercept(request, context, proceed)

    return handle


@frozen
class RequestFilter:
    """Which requests of an API meet a fault."""

    client_id: str | None = None
    topic: str | None = None

    def picks(self, request: Request, context: RequestContext) -> bool:
        """Return whether the fault is for this request.

        Requests that brokers send to each other meet it only if their client id is given, or if clients never
        send such requests.
        """
        if self.client_id is not None:
            if request.client_id != self.client_id:
                return False
        elif request.api_key not in _BETWEEN_BROKERS and broker_behind(request.client_id) is not None:
            return False
        return self.topic is None or self.topic in topics_of(request, context)


class RequestFault:
    """Lets a fault happen to the requests that a filter picks."""

    remove: Callable[[], object]
    """Takes it away from the brokers' handlers."""

    def __init__(self, fault: ClusterFault, which: RequestFilter, happen: Intercept) -> None:
        self._fault = fault
        self._which = which
        self._happen = happen

    async def intercept(self, request: Request, context: RequestContext, proceed: Proceed) -> Answer:
        if self._fault.is_used_up or not self._which.picks(request, context):
            return await proceed(request, context)
        if self._fault.hit():
            self.remove()
        return await self._happen(request, context, proceed)


def answer_with(code: ErrorCode, topic: str | None) -> Intercept:
    """Answer with an error; requests for several topics only for the one that is given."""

    async def happen(request: Request, context: RequestContext, proceed: Proceed) -> Answer:
        return await error_answer(request, context, code, topic, proceed)

    return happen


def delay_by(fault: ClusterFault, seconds: float) -> Intercept:
    """Handle the request at once and answer later, or when the fault ends."""

    async def happen(request: Request, context: RequestContext, proceed: Proceed) -> Answer:
        answer = await proceed(request, context)
        await fault.until_over(seconds)
        return answer

    return happen


def disconnect(*, handled: bool) -> Intercept:
    """Close the connection instead of answering."""

    async def happen(request: Request, context: RequestContext, proceed: Proceed) -> Answer:
        if handled:
            await proceed(request, context)
        raise HangUp("a fault disconnects it")

    return happen


def drop(fault: ClusterFault, *, handled: bool) -> Intercept:
    """Never answer. Later responses wait behind this one, until the fault ends and closes the connection."""

    async def happen(request: Request, context: RequestContext, proceed: Proceed) -> Answer:
        if handled:
            await proceed(request, context)
        await fault.until_over()
        raise HangUp("the fault that dropped an answer has ended")

    return happen
