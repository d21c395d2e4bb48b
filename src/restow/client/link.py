"""Requests to a cluster: to one broker, to any broker, to the controller.

A transport carries one request and its response, unchanged, so that no error code is lost. A link adds what
is the same for every transport: retries, the choice of a broker, the search for the controller.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Protocol

from restow.client.errors import BrokerError, ClientError, Unreachable
from restow.client.hedging import first_answer, in_background
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.wire.messages import Message

    CodeOf = Callable[[Message], int]
    """Returns the error code of a response."""

_TRIES = 5
_TRIES_DOWN = 2
"""A broker whose port is closed has died. Its successors or its return take longer than a few tries."""
_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 3.2
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
        self._unanswered: dict[object, tuple[int, float]] = {}

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

    @property
    def unanswered(self) -> dict[int, float]:
        """Return the brokers that have a request to answer, and for how many seconds they have had it."""
        now_s = asyncio.get_running_loop().time()
        waits: dict[int, float] = {}
        for broker, since_s in self._unanswered.values():
            waits[broker] = max(now_s - since_s, waits.get(broker, 0.0))
        return waits

    async def ask(self, request: Message, broker: int | None = None) -> Message:
        """Return a broker's response; any broker's if none is named. All retries share the timeout."""
        if broker is None:
            return await self._ask(request, None)
        key = object()
        self._unanswered[key] = broker, asyncio.get_running_loop().time()
        try:
            return await self._ask(request, broker)
        finally:
            del self._unanswered[key]

    async def _ask(self, request: Message, broker: int | None) -> Message:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._timeout_s
        for attempt in range(_TRIES):
            if attempt:
                await asyncio.sleep(_PAUSE_S * 2**attempt)
            left_s = max(deadline_s - loop.time(), _LEAST_S)
            try:
                return await self._transport.ask(request, broker, left_s)
            except Unreachable as error:
                tries = _TRIES_DOWN if error.down and broker is not None else _TRIES
                if not error.retriable or loop.time() >= deadline_s or attempt >= tries - 1:
                    raise
        raise AssertionError("the last try returns or raises")

    async def ask_anyone(self, request: Message) -> Message:
        """Ask the broker that answered last, or another if it is slow; for what every broker knows."""
        if not self.brokers:
            return await self.ask(request)
        for attempt in range(_TRIES):
            candidates = sorted(self.brokers, key=self._reluctance)[:_ASKED_BESIDE]
            questions = [partial(self.ask, request, broker) for broker in candidates]
            try:
                at, answer = await first_answer(questions, _LONG_S)
            except Unreachable as error:
                if not error.down or attempt == _TRIES - 1:
                    raise
                await asyncio.sleep(_PAUSE_S * 2**attempt)
            else:
                self._answered = candidates[at]
                return answer
        raise AssertionError("the last try returns or raises")

    def _reluctance(self, broker: int) -> tuple[bool, bool, bool]:
        """Return a sort key: connected brokers first, those recently unreachable last."""
        return *self._transport.reluctance(broker), broker != self._answered

    async def ask_controller(self, request: Message, code_of: CodeOf, *, changes: bool = True) -> Message:
        """Return the response of the controller, even if it changes meanwhile.

        A controller that does not answer gets the whole timeout, and its successor the same again. A request
        that `changes` nothing is sent to the successor while the first is still silent. With a quorum, every
        broker passes such requests on, and Metadata names any of them as the controller.
        """
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._timeout_s
        attempt = 0
        while True:
            if self._controller is None:
                self._controller = await self._find_controller()
            try:
                ask = self._ask_controller if changes else self._ask_controllers
                return await ask(self._controller, request, code_of)
            except Unreachable as error:
                refusal: ClientError = error
                again = error.down or attempt < _TRIES - 1
                again = again and not (attempt and loop.time() >= deadline_s)
            except BrokerError as error:
                refusal, again = error, attempt < _TRIES - 1
            self._controller = None
            if not again:
                raise refusal
            await asyncio.sleep(min(_PAUSE_S * 2**attempt, _LONGEST_PAUSE_S))
            attempt += 1

    async def _ask_controller(self, broker: int, request: Message, code_of: CodeOf) -> Message:
        answer = await self.ask(request, broker)
        if code_of(answer) == ErrorCode.NOT_CONTROLLER:
            raise BrokerError(ErrorCode.NOT_CONTROLLER)
        self._controller = broker
        return answer

    async def _ask_controllers(self, broker: int, request: Message, code_of: CodeOf) -> Message:
        """Ask the controller; if it is slow and Metadata names another, ask that one as well."""
        asked = in_background(self._ask_controller(broker, request, code_of))
        try:
            await asyncio.wait({asked}, timeout=_LONG_S)
            if not asked.done() and (other := await self._find_controller()) != broker:

                async def wait() -> Message:
                    return await asked

                async def ask_other() -> Message:
                    return await self._ask_controller(other, request, code_of)

                return (await first_answer([wait, ask_other], 0.0))[1]
            return await asked
        finally:
            asked.cancel()

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
