"""What a group needs to know of the cluster's topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from uuid import UUID

    from restow.model import TopicPartition


class TopicDirectory(Protocol):
    """The topics of the cluster, as the broker's metadata cache knows them."""

    @property
    def version(self) -> int:
        """Return a number that grows whenever topics or partitions come or go."""

    def names(self) -> Collection[str]:
        """Return the names of all topics."""

    def id_of(self, topic: str) -> UUID | None:
        """Return the id of the topic with that name."""

    def name_of(self, topic_id: UUID) -> str | None:
        """Return the name of the topic with that id."""

    def partition_count(self, topic: str) -> int:
        """Return a topic's partition count; 0 for an unknown topic."""

    def racks_of(self, topic: str) -> Sequence[Sequence[str | None]]:
        """Return the racks of each partition's replicas."""

    def end_of(self, partition: TopicPartition) -> int | None:
        """Return the high watermark of a partition that has a replica on this broker; None for others."""
