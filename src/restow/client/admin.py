"""The protocol of a cluster's client, and a question that it answers for several brokers at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from restow.client.errors import BrokerError, Unreachable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from restow.client.values import (
        BrokerLogDirs,
        ClusterView,
        Config,
        ConfigResource,
        NewTopic,
        PartitionReassignment,
        Quorum,
        TopicPartitionReplica,
    )
    from restow.model import BrokerId, Topic, TopicPartition
    from restow.model.permissions import Permissions


class Admin(Protocol):
    """A cluster over the wire. Requests about several resources have one answer for each."""

    async def describe_cluster(self) -> ClusterView:
        """Return the live brokers."""

    async def describe_topics(self, names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        """Return these topics or all, with partitions, leaders and ISRs, without configs and sizes."""

    async def create_topics(self, topics: Iterable[NewTopic]) -> Mapping[str, BrokerError | None]:
        """Create topics."""

    async def create_partitions(
        self, topic: str, partitions: int, by_hand: Sequence[Sequence[BrokerId]] | None = None
    ) -> None:
        """Add partitions to a topic."""

    async def delete_topics(self, topics: Iterable[str]) -> Mapping[str, BrokerError | None]:
        """Delete topics."""

    async def describe_configs(
        self,
        of: Iterable[ConfigResource],
        keys: Collection[str] | None = None,
        patience_s: float | None = None,
    ) -> Mapping[ConfigResource, Mapping[str, Config] | BrokerError]:
        """Return the configs in force of topics and brokers: all, or at least those with these keys.

        A broker that is down has the error BROKER_NOT_AVAILABLE. So has, with `patience_s`, one that takes so
        much longer than most of the others.
        """

    async def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> Mapping[ConfigResource, BrokerError | None]:
        """Set or, with None, remove single configs and leave the others alone."""

    async def describe_log_dirs(
        self, brokers: Iterable[BrokerId], patience_s: float | None = None
    ) -> Mapping[BrokerId, BrokerLogDirs | BrokerError]:
        """Return the log dirs and replicas of brokers. One that is down has the error BROKER_NOT_AVAILABLE.

        So has, with `patience_s`, one that takes so much longer than most of the others. Its answer is
        returned the next time.
        """

    async def alter_replica_log_dirs(
        self, targets: Mapping[TopicPartitionReplica, str]
    ) -> Mapping[TopicPartitionReplica, BrokerError | None]:
        """Ask brokers to move replicas to other log dirs."""

    async def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[BrokerId] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> Mapping[TopicPartition, BrokerError | None]:
        """Assign other replicas to partitions; None cancels a reassignment."""

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> Mapping[TopicPartition, PartitionReassignment]:
        """Return the reassignments in progress, of these partitions or of all."""

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, BrokerError | None]:
        """Make the first replica the leader."""

    async def api_versions(self, broker: BrokerId) -> Mapping[int, tuple[int, int]]:
        """Return the versions of each request that a broker supports."""

    async def permissions(self, topics: Sequence[str] = ()) -> Permissions:
        """Return our permissions on the cluster and on these topics."""

    async def describe_metadata_quorum(self) -> Quorum | None:
        """Return the metadata quorum; None with ZooKeeper."""

    async def controller(self) -> BrokerId | None:
        """Return the controller, None while there is none. Raise BrokerError if we may not know it."""

    async def close(self) -> None:
        """Close the connections."""


async def versions_of(
    admin: Admin, brokers: Iterable[BrokerId]
) -> dict[BrokerId, Mapping[int, tuple[int, int]]]:
    """Return the versions of the brokers that answer; the others delay nothing."""
    asked = tuple(brokers)
    answers = await asyncio.gather(*(_versions(admin, broker) for broker in asked))
    return {broker: told for broker, told in zip(asked, answers, strict=True) if told is not None}


async def _versions(admin: Admin, broker: BrokerId) -> Mapping[int, tuple[int, int]] | None:
    try:
        return await admin.api_versions(broker)
    except (BrokerError, Unreachable):
        return None
