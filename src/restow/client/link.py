"""Connections to a cluster: one request, one response.

kafka-python's client connects, encrypts, authenticates and negotiates versions. Requests and responses are
Kafka's messages unchanged, so that no error code is lost. Its calls block, and run in threads of their own.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from restow.client.bootstrap import connect, in_words
from restow.client.errors import BrokerError, ClientError, Unreachable
from restow.client.hedging import first_answer
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.client.bootstrap import ConnectionSettings
    from restow.wire.messages import Message

_TRIES = 5
_PAUSE_S = 0.2
_ASKED_BESIDE = 8
_LONG_S = 1.0
_LEAST_S = 1.0
"""The time for a retry if those before have used up almost all of it."""
_ASKED_AT_ONCE = 64
"""A broker that does not answer holds a thread until its timeout, and must not starve the others."""


class Link:
    """An open connection to a cluster. Made by `open_link`."""

    def __init__(self, client: Any, settings: ConnectionSettings) -> None:
        self._client = client
        # kafka-python does not guarantee this attribute, so its minor version is pinned.
        self._manager = client._manager  # noqa: SLF001
        self._settings = settings
        self._controller: int | None = None
        self._answered: int | None = None
        self._threads = ThreadPoolExecutor(_ASKED_AT_ONCE, thread_name_prefix="restow-link")

    async def another(self) -> Link:
        """Open a second link to the same cluster. Brokers answer the requests of one connection in order."""
        return await open_link(self._settings)

    @property
    def timeout_ms(self) -> int:
        return int(self._settings.timeout_s * 1000)

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers in the latest metadata."""
        return tuple(sorted(node.node_id for node in self._manager.cluster.brokers()))

    async def ask(self, request: Message, broker: int | None = None) -> Message:
        """Return a broker's response; any broker's if none is named. All retries share `timeout_s`."""
        from kafka.errors import KafkaError

        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._settings.timeout_s
        for attempt in range(_TRIES):
            if attempt:
                await asyncio.sleep(_PAUSE_S * 2**attempt)
            left_s = max(deadline_s - loop.time(), _LEAST_S)
            try:
                return await loop.run_in_executor(self._threads, self._ask, request, broker, left_s)
            except KafkaError as error:
                again = getattr(error, "retriable", False) and loop.time() < deadline_s
                if not again or attempt == _TRIES - 1:
                    where = self._settings.bootstrap if broker is None else f"broker {broker}"
                    raise in_words(error, where, self._settings) from error
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
        connection = self._manager._conns.get(broker)  # noqa: SLF001
        connected = connection is not None and connection.connected
        return not connected, self._manager.connection_delay(broker) > 0, broker != self._answered

    async def ask_controller(self, request: Message, code_of: Callable[[Message], int]) -> Message:
        """Return the response of the controller, even if it changes meanwhile.

        A controller that does not answer gets `timeout_s`, and its successor the same again.
        """
        deadline_s = asyncio.get_running_loop().time() + self._settings.timeout_s
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
        await asyncio.to_thread(self._client.close)
        self._threads.shutdown(wait=False)

    def _ask(self, request: Message, broker: int | None, timeout_s: float) -> Message:
        cluster = self._manager.cluster

        async def send() -> Message:
            if broker is not None and cluster.broker_metadata(broker) is None:
                await cluster.refresh_metadata()  # it may have joined since the last metadata
            return await self._manager.send(request, node_id=broker, request_timeout_ms=int(timeout_s * 1000))

        return self._manager.run(send)

    async def _find_controller(self) -> int:
        for attempt in range(_TRIES):
            answer = await self.ask_anyone(MetadataRequest(topics=[]))
            if answer.controller_id >= 0:
                return int(answer.controller_id)
            await asyncio.sleep(_PAUSE_S * 2**attempt)
        raise Unreachable("the cluster has no controller at the moment: try again when it has elected one")


async def open_link(settings: ConnectionSettings) -> Link:
    """Connect, or raise an error that says in one sentence why it failed."""
    return Link(await connect(settings), settings)
