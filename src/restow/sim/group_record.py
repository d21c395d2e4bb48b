"""What the members of one consumer group have seen, and the promises that this must keep."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class GroupRecord:
    """The history of a group, told by its members."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.read: defaultdict[int, set[bytes]] = defaultdict(set)
        """The values that any member has read, by partition."""
        self.broken: list[str] = []
        self._owners: dict[tuple[int, int], str] = {}
        self._generation = -1
        self._told: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._unknown: defaultdict[int, set[int]] = defaultdict(set)

    @property
    def generation(self) -> int:
        """The newest generation that a member was told by SyncGroup, so the coordinator has stored it."""
        return self._generation

    @property
    def committed(self) -> Mapping[int, int]:
        """The highest committed offset that was acknowledged, by partition."""
        return self._committed

    def told_by(self, coordinator: int | None) -> int:
        """Return the newest generation that this broker has told a member by SyncGroup; -1 without one."""
        return -1 if coordinator is None else self._told.get(coordinator, -1)

    def synced(
        self, member: str, generation: int, partitions: Iterable[int], coordinator: int | None = None
    ) -> None:
        """Note the assignment of a member, and the broker that told it."""
        self._generation = max(self._generation, generation)
        if coordinator is not None:
            self._told[coordinator] = max(self.told_by(coordinator), generation)
        for partition in sorted(partitions):
            owner = self._owners.setdefault((generation, partition), member)
            if owner != member:
                self._owned_twice((generation, partition), owner, member)

    def _owned_twice(self, what: tuple[int, int], owner: str, member: str) -> None:
        generation, partition = what
        self.broken.append(
            f"partition {partition} has two owners in generation {generation} of {self.group}: "
            f"{owner} and {member}"
        )

    def doubts(self, member: str) -> tuple[str, ...]:  # noqa: ARG002
        """Return what would be broken if the member still were one."""
        return ()

    def joins(self, member: str) -> None:
        """Note that a member begins anew."""

    def stayed(self, member: str, doubts_when_sent: tuple[str, ...]) -> None:
        """Note a heartbeat that was accepted, and the doubts as it was sent."""

    def heard(self, coordinator: int | None, generation: int, told_when_sent: int) -> None:
        """Note a heartbeat that this broker has accepted, and the newest generation it had told before.

        Another broker may not know yet that it coordinates the group no more, in Kafka as here.
        """
        if generation < told_when_sent:
            self.broken.append(
                f"broker {coordinator} accepted a heartbeat of generation {generation} of {self.group}, "
                f"sent after it had begun generation {told_when_sent}"
            )

    def accepted(self, offsets: Mapping[int, int], generation: int, newest_when_sent: int) -> None:
        """Note a commit that was acknowledged, and the newest generation known when it was sent."""
        if generation < newest_when_sent:
            self.broken.append(
                f"{self.group} accepted a commit of generation {generation}, sent after generation "
                f"{newest_when_sent} had begun"
            )
        for partition, offset in offsets.items():
            self._committed[partition] = max(self._committed.get(partition, 0), offset)

    def unanswered(self, offsets: Mapping[int, int]) -> None:
        """Note a commit without an answer: it may be carried out at any later time."""
        for partition, offset in offsets.items():
            self._unknown[partition].add(offset)

    def fetched(self, partition: int, offset: int, committed_when_asked: int) -> None:
        """Note a committed offset that the coordinator told, and the one acknowledged before it was asked."""
        if offset >= committed_when_asked:
            return
        if offset in self._unknown[partition]:
            self._committed[partition] = offset
            return
        self.broken.append(
            f"the committed offset of partition {partition} in {self.group} went back from "
            f"{committed_when_asked} to {offset}"
        )


class EpochRecord(GroupRecord):
    """The history of a group whose members are in different epochs at a time.

    A group that is empty when it changes its protocol begins anew with its epochs, in Kafka as here. So two
    owners in an epoch are a defect only if the former one is still a member: if a heartbeat that it sends
    after that is accepted.
    """

    def __init__(self, group: str) -> None:
        super().__init__(group)
        self._doubts: dict[str, tuple[str, ...]] = {}
        """By former owner, what would be broken."""

    def _owned_twice(self, what: tuple[int, int], owner: str, member: str) -> None:
        generation, partition = what
        self._owners[what] = member
        said = f"partition {partition} has two owners in epoch {generation} of {self.group}"
        self._doubts[owner] = (*self.doubts(owner), f"{said}: {owner} and {member}")

    def doubts(self, member: str) -> tuple[str, ...]:
        return self._doubts.get(member, ())

    def joins(self, member: str) -> None:
        self._doubts.pop(member, None)

    def stayed(self, member: str, doubts_when_sent: tuple[str, ...]) -> None:
        self.broken += doubts_when_sent
        if doubts_when_sent:
            self.joins(member)

    def heard(self, coordinator: int | None, generation: int, told_when_sent: int) -> None:
        """Each member has an epoch of its own."""

    def accepted(self, offsets: Mapping[int, int], generation: int, newest_when_sent: int) -> None:  # noqa: ARG002
        super().accepted(offsets, generation, generation)
