"""Real connections to a cluster.

kafka-python's client connects, encrypts, authenticates and negotiates versions. Its calls block, and run in
threads of their own.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from restow.client.bootstrap import connect, in_words
from restow.client.link import Link

if TYPE_CHECKING:
    from restow.client.bootstrap import ConnectionSettings
    from restow.wire.messages import Message

_ASKED_AT_ONCE = 64
"""A broker that does not answer holds a thread until its timeout, and must not starve the others."""


class SocketTransport:
    """A `Transport` over a connected client of kafka-python."""

    def __init__(self, client: Any, settings: ConnectionSettings) -> None:
        self._client = client
        # kafka-python does not guarantee this attribute, so its minor version is pinned.
        self._manager = client._manager  # noqa: SLF001
        self._settings = settings
        self._threads = ThreadPoolExecutor(_ASKED_AT_ONCE, thread_name_prefix="restow-link")

    @property
    def brokers(self) -> tuple[int, ...]:
        return tuple(sorted(node.node_id for node in self._manager.cluster.brokers()))

    async def ask(self, request: Message, broker: int | None, timeout_s: float) -> Message:
        from kafka.errors import KafkaError, NodeNotReadyError

        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, self._ask, request, broker, timeout_s)
        except KafkaError as error:
            where = self._settings.bootstrap if broker is None else f"broker {broker}"
            unreachable = in_words(error, where, self._settings)
            unreachable.retriable = getattr(error, "retriable", False)
            unreachable.down = isinstance(error, NodeNotReadyError) or "ECONNREFUSED" in str(error)
            raise unreachable from error

    def reluctance(self, broker: int) -> tuple[bool, bool]:
        connection = self._manager._conns.get(broker)  # noqa: SLF001
        connected = connection is not None and connection.connected
        return not connected, self._manager.connection_delay(broker) > 0

    async def another(self) -> SocketTransport:
        return SocketTransport(await connect(self._settings), self._settings)

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


async def open_link(settings: ConnectionSettings) -> Link:
    """Connect, or raise an error that says in one sentence why it failed."""
    return Link(SocketTransport(await connect(settings), settings), settings.timeout_s)
