"""Requests to brokers: in order for each broker, to all brokers in parallel.

A request is repeated until the broker answers or is gone, so every live broker gets every request in the
order of the controller's decisions. Responses go to a callback and do not block the controller.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.runtime.clock import Clock

Message: TypeAlias = Any

_log = logging.getLogger(__name__)


class BrokerChannel(Protocol):
    """Connections from this broker to all brokers, itself included."""

    async def call(self, broker_id: int, request: Message) -> Message:
        """Return the broker's response. Raises ConnectionError or TimeoutError if there is none.

        The request is one of LeaderAndIsr, StopReplica and UpdateMetadata, filled in for every version that
        groups partitions by topic (5, 3 and 5 upwards).
        """


class Outbox:
    """One queue and one sender per live broker."""

    def __init__(
        self,
        channel: BrokerChannel,
        clock: Clock,
        *,
        backoff_s: float,
        answered: Callable[[int, Message, Message], object],
        broken: Callable[[BaseException], object],
    ) -> None:
        self._channel = channel
        self._clock = clock
        self._backoff_s = backoff_s
        self._answered = answered
        self._broken = broken
        self._queues: dict[int, asyncio.Queue[Message]] = {}
        self._senders: dict[int, asyncio.Task[None]] = {}

    def open(self, broker_id: int) -> None:
        """Start an empty queue for a new broker."""
        self.close(broker_id)
        queue: asyncio.Queue[Message] = asyncio.Queue()
        self._queues[broker_id] = queue
        name = f"controller to broker {broker_id}"
        sender = asyncio.create_task(self._send(broker_id, queue), name=name)
        sender.add_done_callback(self._ended)
        self._senders[broker_id] = sender

    def close(self, broker_id: int) -> None:
        """Drop a dead broker's queue and its unsent requests."""
        self._queues.pop(broker_id, None)
        if sender := self._senders.pop(broker_id, None):
            sender.cancel()

    def close_all(self) -> None:
        """Stop sending to every broker."""
        for broker_id in tuple(self._queues):
            self.close(broker_id)

    def put(self, broker_id: int, request: Message) -> None:
        """Queue a request for a broker. Requests to a dead broker are dropped."""
        if queue := self._queues.get(broker_id):
            queue.put_nowait(request)

    def _ended(self, sender: asyncio.Task[None]) -> None:
        """Report a sender that failed, because its broker would get no more requests."""
        if not sender.cancelled() and (error := sender.exception()) is not None:
            self._broken(error)

    async def _send(self, broker_id: int, queue: asyncio.Queue[Message]) -> None:
        while True:
            request = await queue.get()
            response = await self._call(broker_id, request)
            self._answered(broker_id, request, response)

    async def _call(self, broker_id: int, request: Message) -> Message:
        while True:
            try:
                return await self._channel.call(broker_id, request)
            except (OSError, RestowError) as error:
                _log.warning("broker %d does not answer, trying again: %s", broker_id, error)
            await self._clock.sleep(self._backoff_s)
