"""Requests that tools make to the controller by creating a znode under `/admin`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from restow.cluster.store.znodes.documents import Document, PartitionList, render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import TopicPartition


@dataclass(frozen=True, slots=True)
class ReassignPartitions:
    """`/admin/reassign_partitions`: the target replicas of partitions, in order."""

    PATH: ClassVar = "/admin/reassign_partitions"

    targets: Mapping[TopicPartition, tuple[int, ...]]

    def encode(self) -> bytes:
        entries = [
            {"topic": topic, "partition": partition, "replicas": replicas}
            for (topic, partition), replicas in self.targets.items()
        ]
        return render({"version": 1, "partitions": entries})

    @classmethod
    def decode(cls, data: bytes, path: str = PATH) -> ReassignPartitions:
        """Decode. Of duplicate entries for a partition the last counts, as in Kafka."""
        found = Document.parse(path, data, versions=(1,))
        return cls({entry.partition(): entry.integers("replicas") for entry in found.documents("partitions")})


class PreferredReplicaElection(PartitionList):
    """`/admin/preferred_replica_election`: partitions to be led by their preferred replica."""

    PATH: ClassVar = "/admin/preferred_replica_election"


class DeleteTopic:
    """`/admin/delete_topics/<topic>`: a topic to delete. The node has no data."""

    PARENT: ClassVar = "/admin/delete_topics"

    @classmethod
    def path(cls, topic: str) -> str:
        return f"{cls.PARENT}/{topic}"
