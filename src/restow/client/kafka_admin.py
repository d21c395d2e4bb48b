"""The client over Kafka's protocol, for any cluster since 2.4.

async with connected(Settings(bootstrap="localhost:9092")) as admin:
    print(await admin.describe_cluster())
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from restow.client import configs, groups, offsets, reassignments, rights, topics
from restow.client.errors import BrokerError
from restow.client.group_lock import SESSION_S, GroupLock
from restow.client.sockets import open_link
from restow.client.values import ClusterView, Node
from restow.wire.messages import ApiVersionsRequest, MetadataRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence

    from restow.client.bootstrap import ConnectionSettings
    from restow.client.link import Link
    from restow.client.values import (
        BrokerLogDirs,
        Committed,
        Config,
        ConfigResource,
        ConsumerGroup,
        NewTopic,
        OffsetRange,
        PartitionReassignment,
        Quorum,
        TopicPartitionReplica,
    )
    from restow.model import BrokerId, Topic, TopicPartition
    from restow.model.permissions import Permissions

T = TypeVar("T")

_DESCRIBE_QUORUM = 55


class KafkaAdmin:
    """An `Admin` and `Measures` on an open link."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def describe_cluster(self) -> ClusterView:
        answer = await self._link.ask_anyone(MetadataRequest(topics=[]))
        nodes = (
            Node(id=each.node_id, host=each.host, port=each.port, rack=each.rack) for each in answer.brokers
        )
        return ClusterView(
            cluster_id=answer.cluster_id or "",
            nodes=tuple(sorted(nodes, key=lambda node: node.id)),
        )

    async def describe_topics(self, names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        return await topics.describe(self._link, names)

    async def create_topics(self, wanted: Iterable[NewTopic]) -> Mapping[str, BrokerError | None]:
        return await topics.create(self._link, tuple(wanted))

    async def create_partitions(
        self, topic: str, partitions: int, by_hand: Sequence[Sequence[BrokerId]] | None = None
    ) -> None:
        await topics.create_partitions(self._link, topic, partitions, by_hand)

    async def delete_topics(self, names: Iterable[str]) -> Mapping[str, BrokerError | None]:
        return await topics.delete(self._link, tuple(names))

    async def describe_configs(
        self, of: Iterable[ConfigResource]
    ) -> Mapping[ConfigResource, Mapping[str, Config] | BrokerError]:
        return await configs.describe(self._link, tuple(of))

    async def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> Mapping[ConfigResource, BrokerError | None]:
        return await configs.incremental_alter(self._link, changes)

    async def describe_log_dirs(
        self, brokers: Iterable[BrokerId]
    ) -> Mapping[BrokerId, BrokerLogDirs | BrokerError]:
        return await reassignments.describe_log_dirs(self._link, tuple(brokers))

    async def alter_replica_log_dirs(
        self, targets: Mapping[TopicPartitionReplica, str]
    ) -> Mapping[TopicPartitionReplica, BrokerError | None]:
        return await reassignments.alter_replica_log_dirs(self._link, targets)

    async def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[BrokerId] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> Mapping[TopicPartition, BrokerError | None]:
        return await reassignments.alter_partition_reassignments(
            self._link, targets, allow_replication_factor_change=allow_replication_factor_change
        )

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> Mapping[TopicPartition, PartitionReassignment]:
        return await reassignments.list_partition_reassignments(self._link, partitions)

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, BrokerError | None]:
        return await reassignments.elect_leaders(self._link, tuple(partitions))

    async def list_offsets(
        self, broker: BrokerId, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetRange | BrokerError]:
        return await offsets.list_offsets(self._link, broker, tuple(partitions))

    async def describe_consumer_groups(self, broker: BrokerId) -> Mapping[str, ConsumerGroup | BrokerError]:
        return await groups.describe_consumer_groups(self._link, broker)

    async def list_consumer_group_offsets(
        self, broker: BrokerId, names: Iterable[str]
    ) -> Mapping[str, Committed | BrokerError]:
        return await offsets.list_consumer_group_offsets(self._link, broker, tuple(names))

    async def api_versions(self, broker: BrokerId) -> Mapping[int, tuple[int, int]]:
        answer = await self._link.ask(ApiVersionsRequest(max_version=2), broker)
        BrokerError.check(answer.error_code)
        return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}

    async def permissions(self, names: Sequence[str] = ()) -> Permissions:
        return await rights.permissions(self._link, names)

    async def describe_metadata_quorum(self) -> Quorum | None:
        """Return the quorum; clusters without one do not support the request."""
        answer = await self._link.ask_anyone(ApiVersionsRequest(max_version=2))
        BrokerError.check(answer.error_code)
        if _DESCRIBE_QUORUM not in {each.api_key for each in answer.api_keys}:
            return None
        return await rights.describe_metadata_quorum(self._link)

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

    async def close(self) -> None:
        await self._link.close()


@asynccontextmanager
async def connected(settings: ConnectionSettings) -> AsyncIterator[KafkaAdmin]:
    """Open an admin, and close it when the context ends."""
    admin = KafkaAdmin(await open_link(settings))
    try:
        yield admin
    finally:
        await admin.close()


def ask_cluster(settings: ConnectionSettings, work: Callable[[KafkaAdmin], Awaitable[T]]) -> T:
    """Connect, do the work, disconnect: for callers without an event loop."""

    async def main() -> T:
        async with connected(settings) as admin:
            return await work(admin)

    return run_alone(main())


def run_alone(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on an event loop of its own."""
    return asyncio.run(work)
