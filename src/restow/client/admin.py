"""All that the tool asks of a cluster, as protocols: whoever fulfils `Admin` can be worked on, whoever
fulfils `Measures` can be measured, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.client.errors import BrokerError
    from restow.client.values import (
        BrokerLogDirs,
        ClusterView,
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


class Admin(Protocol):
    """A cluster over the wire. What is done to several things at once is answered for each."""

    async def describe_cluster(self) -> ClusterView:
        """Who is there."""

    async def describe_topics(self, names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        """These topics or all, with partitions, leaders and ISRs, without configs and sizes."""

    async def create_topics(self, topics: Iterable[NewTopic]) -> Mapping[str, BrokerError | None]:
        """Make topics."""

    async def create_partitions(
        self, topic: str, partitions: int, by_hand: Sequence[Sequence[BrokerId]] | None = None
    ) -> None:
        """More partitions for a topic."""

    async def delete_topics(self, topics: Iterable[str]) -> Mapping[str, BrokerError | None]:
        """Delete topics."""

    async def describe_configs(
        self, of: Iterable[ConfigResource]
    ) -> Mapping[ConfigResource, Mapping[str, Config] | BrokerError]:
        """All configs of topics and brokers as they are in force."""

    async def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> Mapping[ConfigResource, BrokerError | None]:
        """Set or, with None, remove single configs and leave the others alone."""

    async def describe_log_dirs(
        self, brokers: Iterable[BrokerId]
    ) -> Mapping[BrokerId, BrokerLogDirs | BrokerError]:
        """Directories and replicas of brokers; one that does not answer does not hold up the others."""

    async def alter_replica_log_dirs(
        self, targets: Mapping[TopicPartitionReplica, str]
    ) -> Mapping[TopicPartitionReplica, BrokerError | None]:
        """Ask brokers to have replicas in other directories."""

    async def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[BrokerId] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> Mapping[TopicPartition, BrokerError | None]:
        """Other replicas for partitions; None cancels a move that is under way."""

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> Mapping[TopicPartition, PartitionReassignment]:
        """The reassignments that are under way, of these partitions or of all."""

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, BrokerError | None]:
        """Let the first replica lead."""

    async def api_versions(self, broker: BrokerId) -> Mapping[int, tuple[int, int]]:
        """Which versions of which requests a broker answers."""

    async def permissions(self, topics: Sequence[str] = ()) -> Permissions:
        """What we may do on the cluster and on these topics."""

    async def describe_metadata_quorum(self) -> Quorum | None:
        """Return who keeps the metadata; None where that is ZooKeeper."""

    async def controller(self) -> BrokerId | None:
        """Return the controller, None while there is none. Raise BrokerError if we may not know it."""

    async def close(self) -> None:
        """Hang up."""


class Measures(Protocol):
    """What one broker can be asked of the data it leads and of the groups it coordinates.

    A broker that does not answer at all raises `Unreachable`.
    """

    async def list_offsets(
        self, broker: BrokerId, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetRange | BrokerError]:
        """Where partitions that it leads begin and end."""

    async def describe_consumer_groups(self, broker: BrokerId) -> Mapping[str, ConsumerGroup | BrokerError]:
        """The consumer groups that it coordinates, by name."""

    async def list_consumer_group_offsets(
        self, broker: BrokerId, names: Iterable[str]
    ) -> Mapping[str, Committed | BrokerError]:
        """How far groups that it coordinates have read."""
