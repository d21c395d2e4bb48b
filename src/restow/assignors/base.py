"""The interface of an assignor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from restow.assignors.group import NumberedGroup, by_id, in_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.model import Member, Rack, TopicPartition

# By topic: one collection of replica racks per partition.
PartitionRacks: TypeAlias = "Mapping[str, Sequence[Iterable[Rack | None]]]"
Assignment: TypeAlias = "dict[str, list[TopicPartition]]"
# What an assignor answers. Restow's own answer with rows, which make their partitions when somebody looks.
Dealt: TypeAlias = "Mapping[str, Sequence[TopicPartition]]"


class Assignor(ABC):
    """Assigns a group's partitions to its members.

    An assignor keeps no state between calls: the previous partitions of a member are in its `Member`, and
    `user_data` returns what it sends when it joins again. So one instance serves any number of groups.
    """

    name: ClassVar[str]
    """The name in the group protocol; all members of a group must offer a common one."""

    cooperative: ClassVar[bool] = False
    """Whether members may keep their partitions while the group rebalances (KIP-429)."""

    @abstractmethod
    def assign(
        self,
        partitions: Mapping[str, int],
        members: Sequence[Member],
        partition_racks: PartitionRacks | None = None,
    ) -> Dealt:
        """Return the partitions of each member. Every member is a key; topics missing from `partitions` are
        skipped.

        `restow.assignors.assign` ensures that `partitions` holds positive counts and that members are unique.
        """

    def assign_by_work(
        self,
        partitions: Mapping[str, int],
        members: Sequence[Member],
        work: Mapping[TopicPartition, float],  # noqa: ARG002
        partition_racks: PartitionRacks | None = None,
    ) -> Dealt:
        """Assign with the expected work of each partition, where it is known. Most assignors ignore it."""
        return self.assign(partitions, members, partition_racks)

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:  # noqa: ARG002
        """Return a member's user data, given its last assignment (None: it never had one)."""
        return None

    def on_assignment(self, assigned: Sequence[TopicPartition], generation: int) -> None:  # noqa: B027
        """Hear what a consumer of this process was assigned, and in which generation of its group.

        Does nothing unless an assignor overrides it. Clients that do not tell the generation give -1.
        """


class NumberedAssignor(Assignor):
    """An assignor that works with numbers."""

    in_line: ClassVar[bool] = False
    """Whether members are in the order of `in_line`; otherwise `by_id`."""

    def assign(
        self,
        partitions: Mapping[str, int],
        members: Sequence[Member],
        partition_racks: PartitionRacks | None = None,
    ) -> Dealt:
        group = NumberedGroup.of(partitions, members, in_line if self.in_line else by_id)
        return self.share_out(group, partition_racks)

    @abstractmethod
    def share_out(self, group: NumberedGroup, partition_racks: PartitionRacks | None) -> Dealt:
        """Return the partitions of each member."""
