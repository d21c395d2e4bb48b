"""What an assignor is, and the one way to ask it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.model import Member, Rack, TopicPartition

# For each topic one collection of replica racks per partition.
PartitionRacks: TypeAlias = "Mapping[str, Sequence[Iterable[Rack | None]]]"
Assignment: TypeAlias = "dict[str, list[TopicPartition]]"


class Assignor(ABC):
    """Deals a group's partitions out to its members.

    An assignor keeps no state between calls: what a member held before is in its `Member`, and what
    it should say when it joins again is `user_data`. So one instance serves any number of groups.
    """

    name: ClassVar[str]
    """How the group protocol knows it; all members of a group must offer a common name."""

    cooperative: ClassVar[bool] = False
    """Whether members may keep their partitions while the group rebalances (KIP-429)."""

    @abstractmethod
    def assign(
        self,
        partitions: Mapping[str, int],
        members: Sequence[Member],
        partition_racks: PartitionRacks | None = None,
    ) -> Assignment:
        """Who gets what. Every member is a key; a topic absent from `partitions` is nobody's.

        `partitions` holds positive counts and members are unique: `restow.assignors.assign` sees to it.
        """

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:  # noqa: ARG002
        """What a member puts into its subscription, given its last assignment (None: never had one)."""
        return None
