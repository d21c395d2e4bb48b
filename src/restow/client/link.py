"""Requests to a cluster: to one broker, to any broker, to the controller.

A transport carries one request and its response, unchanged, so that no error code is lost. A link adds what
is the same for every transport: retries, the choice of a broker, the search for the controller.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Protocol

from restow.client.errors import BrokerError, ClientError, Unreachable
from restow.client.hedging import first_answer
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.wire.messages import Message

_TRIES = 5
_PAUSE_S = 0.2
_ASKED_BESIDE = 8
_LONG_S = 1.0
_LEAST_S = 1.0
"""The time for a retry if those before have used up almost all of it."""


class Transport(Protocol):
    """Carries requests to brokers, and their responses back. The simulator has its own."""

    @property
    def brokers(self) -> tuple[int, ...]:
        """Return the brokers in the latest metadata, sorted."""

    async def ask(self, request: Message, broker: int | None, timeout_s: float) -> Message:
        """Return a broker's response; any broker's if none is named. Raise Unreachable without one."""

    def reluctance(self, broker: int) -> tuple[bool, bool]:
        """Return whether it is not connected, and whether it was unreachable just now."""

    async def another(self) -> Transport:
        """Connect to the same cluster once more."""

    async def close(self) -> None:
        """Close all connections."""


class Link:
    """An open connection to a cluster."""

    def __init__(self, transport: Transport, timeout_s: float = 30.0) -> None:
        self._transport = transport
        self._timeout_s = timeout_s
        self._controller: int | None = None
        self._answered: int | None = None

    async def another(self) -> Link:
        """Open a second link to the same cluster. Brokers answer the requests of one connection in order."""
        return Link(await self._transport.another(), self._timeout_s)

    @property
    def timeout_ms(self) -> int:
        return int(self._timeout_s * 1000)

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers in the latest metadata."""
        return self._transport.brokers

    async def ask(self, request: Message, broker: int | None = None) -> Message:
        """Return a broker's response; any broker's if none is named. All retries share the timeout."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._timeout_s
        for attempt in range(_TRIES):
            if attempt:
                await asyncio.sleep(_PAUSE_S * 2**attempt)
            left_s = max(deadline_s - loop.time(), _LEAST_S)
            try:
                return await self._transport.ask(request, broker, left_s)
            except Unreachable as error:
                again = error.retriable and loop.time() < deadline_s
                if not again or attempt == _TRIES - 1:
                    raise
        raise AssertionError("the last try returns or raises")

    async def ask_anyone(self, request: Message) -> Message:
        """Ask the broker that answered last, or another if it is slow; for what every broker knows."""
        candidates = sorted(self.brokers, key=self._reluctance)[:_ASKED_BESIDE] or (None,)
        questions = [partial(self.ask, request, broker) for broker in candidates]
        at, answer = await first_answer(questions, _LONG_S)
        self._answered = candidates[at]
        return answer

    def _reluctance(self, broker: int) -> tuple[bool, bool, bool]:
        """Return a sort key: connected brokers first, those recently unreachable last."""
        return *self._transport.reluctance(broker), broker != self._answered

    async def ask_controller(self, request: Message, code_of: Callable[[Message], int]) -> Message:
        """Return the response of the controller, even if it changes meanwhile.

        A controller that does not answer gets the whole timeout, and its successor the same again.
        """
        deadline_s = asyncio.get_running_loop().time() + self._timeout_s
        refusal: ClientError = BrokerError(ErrorCode.NOT_CONTROLLER)
        for attempt in range(_TRIES):
            if self._controller is None:
                self._controller = await self._find_controller()
            try:
                answer = await self.ask(request, self._controller)
            except Unreachable as error:
                refusal = error
                if attempt and asyncio.get_running_loop().time() >= deadline_s:
                    break
            else:
                if code_of(answer) != ErrorCode.NOT_CONTROLLER:
                    return answer
            self._controller = None
            await asyncio.sleep(_PAUSE_S * 2**attempt)
        raise refusal

    async def close(self) -> None:
        await self._transport.close()

    async def _find_controller(self) -> int:
        for attempt in range(_TRIES):
            answer = await self.ask_anyone(MetadataRequest(topics=[]))
            if answer.controller_id >= 0:
                return int(answer.controller_id)
            await asyncio.sleep(_PAUSE_S * 2**attempt)
        raise Unreachable("the cluster has no controller at the moment: try again when it has elected one")


class Requests:
    """Requests of one kind on an open link; `KafkaAdmin` has all kinds."""

    def __init__(self, link: Link) -> None:
        self._link = link
