"""Requests to the controller, whichever broker that is at the moment."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.wire.messages import CreateTopicsRequest, MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.sim.client import SimClient
    from restow.sim.workloads.base import WorkContext
    from restow.wire.messages import Message

_ASK_TIMEOUT_S = 15.0
REQUEST_TIMEOUT_MS = 10_000


class ControllerClient:
    """An admin client that looks for the controller before each request."""

    def __init__(self, context: WorkContext, name: str) -> None:
        self._client = context.client(name)
        self._brokers = tuple(context.cluster.nodes)
        self._first = 0

    async def ask(self, request: Message) -> Message | None:
        """Return the controller's response. After None it is unknown whether the request was carried out."""
        controller = await self._find()
        if controller < 0:
            return None
        try:
            return await self._client.ask(request, controller, timeout_s=_ASK_TIMEOUT_S)
        except (ConnectionError, TimeoutError):
            return None

    async def ask_broker(self, request: Message, broker: int) -> Message | None:
        """Return that broker's response, or None without one."""
        try:
            return await self._client.ask(request, broker, timeout_s=_ASK_TIMEOUT_S)
        except (ConnectionError, TimeoutError):
            return None

    def close(self) -> None:
        self._client.close()

    async def _find(self) -> int:
        for _ in self._brokers:
            broker = self._brokers[self._first]
            answer = await self.ask_broker(MetadataRequest(topics=[]), broker)
            if answer is not None and answer.controller_id >= 0:
                return int(answer.controller_id)
            self._first = (self._first + 1) % len(self._brokers)
        return -1


def new_topic(name: str, partitions: int, factor: int, configs: Mapping[str, str]) -> Message:
    """Return the request that creates a topic."""
    made = CreateTopicsRequest.CreatableTopic
    topic = made(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[],
        configs=[made.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=REQUEST_TIMEOUT_MS)


async def create_topic(client: SimClient, name: str, partitions: int, configs: Mapping[str, str]) -> None:
    """Create a topic of 3 replicas on a healthy cluster."""
    request = new_topic(name, partitions, 3, configs)
    while (metadata := await client.ask(MetadataRequest(topics=[]), 0)).controller_id < 0:
        await asyncio.sleep(1)
    answer = await client.ask(request, metadata.controller_id)
    if answer.topics[0].error_code:
        raise RuntimeError(f"the topic cannot be made: {answer.topics[0].error_message}")
