"""The client over Kafka's protocol, for any cluster since 2.4.

async with connected(Settings(bootstrap="localhost:9092")) as admin:
    print(await admin.describe_cluster())
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from restow.client.configs import ConfigRequests
from restow.client.errors import BrokerError
from restow.client.group_lock import SESSION_S, GroupLock
from restow.client.groups import GroupRequests
from restow.client.offsets import OffsetRequests
from restow.client.reassignments import ReplicaRequests
from restow.client.rights import RightRequests
from restow.client.sockets import open_link
from restow.client.topics import TopicRequests
from restow.client.values import ClusterView, Node
from restow.wire.messages import ApiVersionsRequest, MetadataRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping

    from restow.client.bootstrap import ConnectionSettings
    from restow.model import BrokerId

T = TypeVar("T")


class KafkaAdmin(
    TopicRequests, ConfigRequests, ReplicaRequests, OffsetRequests, GroupRequests, RightRequests
):
    """An `Admin` on an open link, with requests that measure a cluster besides."""

    async def describe_cluster(self) -> ClusterView:
        answer = await self._link.ask_anyone(MetadataRequest(topics=[]))
        nodes = (
            Node(id=each.node_id, host=each.host, port=each.port, rack=each.rack) for each in answer.brokers
        )
        return ClusterView(
            cluster_id=answer.cluster_id or "",
            nodes=tuple(sorted(nodes, key=lambda node: node.id)),
        )

    async def api_versions(self, broker: BrokerId) -> Mapping[int, tuple[int, int]]:
        answer = await self._link.ask(ApiVersionsRequest(max_version=2), broker)
        BrokerError.check(answer.error_code)
        return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}

    async def controller(self) -> BrokerId | None:
        """Return the quorum's leader: with a quorum, Metadata names a random broker as the controller."""
        if (quorum := await self.describe_metadata_quorum()) is not None:
            return quorum.leader
        answer = await self._link.ask_anyone(MetadataRequest(topics=[]))
        return int(answer.controller_id) if answer.controller_id >= 0 else None

    def group_lock(
        self, group: str, instance_id: str, said: bytes, session_s: float = SESSION_S
    ) -> GroupLock:
        """Return a lock that one client at a time can hold; it is not taken yet."""
        return GroupLock(self._link, group, instance_id, said, session_s)

    @property
    def unanswered(self) -> dict[BrokerId, float]:
        """Return the brokers that have a request to answer, and for how many seconds they have had it."""
        return self._link.unanswered

    async def close(self) -> None:
        self._stragglers.close()
        await self._link.close()


@asynccontextmanager
async def connected(settings: ConnectionSettings) -> AsyncIterator[KafkaAdmin]:
    """Open an admin, and close it when the context ends."""
    admin = KafkaAdmin(await open_link(settings))
    try:
        yield admin
    finally:
        await admin.close()


def hush() -> None:
    """Silence kafka-python's log of each attempt to connect: we say ourselves what fails."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)


def ask_cluster(settings: ConnectionSettings, work: Callable[[KafkaAdmin], Awaitable[T]]) -> T:
    """Connect, do the work, disconnect: for callers without an event loop."""

    async def main() -> T:
        async with connected(settings) as admin:
            return await work(admin)

    return run_alone(main())


def run_alone(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on an event loop of its own."""
    return asyncio.run(work)
