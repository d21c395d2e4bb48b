"""What the group coordinator asks about topics: the metadata cache, and the logs that are on this broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection

    from restow.cluster.broker.metadata import MetadataCache
    from restow.cluster.replication import ReplicaManager
    from restow.model import TopicPartition


class GroupTopics:
    """The topics of the cluster, for groups of the protocol `consumer`."""

    def __init__(self, metadata: MetadataCache, replicas: ReplicaManager) -> None:
        self._metadata = metadata
        self._replicas = replicas
        self.id_of = metadata.id_of
        self.name_of = metadata.name_of
        self.partition_count = metadata.partition_count

    @property
    def version(self) -> int:
        return self._metadata.version

    def names(self) -> Collection[str]:
        return self._metadata.names()

    def racks_of(self, topic: str) -> list[list[str | None]]:
        """Return the racks of each partition's replicas; dead brokers are left out."""
        brokers = self._metadata.brokers
        return [
            [brokers[replica].rack for replica in partition.replicas if replica in brokers]
            for partition in self._metadata.partitions(topic)
        ]

    def end_of(self, partition: TopicPartition) -> int | None:
        """Return the high watermark of a partition that has a replica here."""
        found = self._replicas.find(partition)
        return None if isinstance(found, ErrorCode) else found.log.high_watermark
