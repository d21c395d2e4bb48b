"""The common part of the adapters: one consumer's side of the group protocol, without any client.

An assignor is stateless, but a consumer must send its previous partitions when it joins again; a
`ConsumerState` remembers them for one consumer. The rest translates between the clients' metadata and
`Member`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, TypeVar

from restow._frozen import frozen
from restow.assignors.assign import assign
from restow.assignors.registry import get
from restow.assignors.user_data import NO_GENERATION
from restow.model import TopicPartition, by_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Set

    from restow.assignors.base import Assignment, Assignor, PartitionRacks
    from restow.model import Member, Rack

Adapter = TypeVar("Adapter")

SUBSCRIPTION_VERSION = 3
"""The first version with owned partitions, generation and rack."""

ASSIGNMENT_VERSION = 0
"""Its fields never changed, so every client reads this one."""


@frozen
class Subscription:
    """A consumer's subscription to a group."""

    topics: tuple[str, ...]
    user_data: bytes | None
    owned: tuple[tuple[str, tuple[int, ...]], ...]
    generation: int
    rack: Rack | None

    def encode(self) -> bytes:
        """Encode version 3 of the protocol's subscription; older readers stop after the user data."""
        data = self.user_data
        return b"".join(
            (
                struct.pack(">hi", SUBSCRIPTION_VERSION, len(self.topics)),
                *map(_string, self.topics),
                struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data,
                struct.pack(">i", len(self.owned)),
                *(
                    _string(topic) + struct.pack(f">i{len(ids)}i", len(ids), *ids)
                    for topic, ids in self.owned
                ),
                struct.pack(">i", self.generation),
                _string(self.rack),
            )
        )


class ConsumerState:
    """What one consumer knows of its group: its last assignment, for its next subscription."""

    def __init__(self, assignor: str | Assignor, rack: Rack | None = None) -> None:
        self.assignor = get(assignor) if isinstance(assignor, str) else assignor
        self._rack = rack
        self._assigned: tuple[TopicPartition, ...] | None = None
        self._generation = NO_GENERATION

    def remember(self, partitions: Iterable[tuple[str, int]], generation: int = NO_GENERATION) -> None:
        """Remember a new assignment of this consumer, and tell its assignor."""
        assigned = tuple(TopicPartition(topic, partition) for topic, partition in partitions)
        self._assigned, self._generation = assigned, generation
        self.assignor.on_assignment(assigned, generation)

    def subscription(self, topics: Iterable[str]) -> Subscription:
        """Return the subscription to join with.

        Owned partitions are listed for a cooperative assignor only, because an eager client has revoked all
        of them by then; and only for topics still subscribed to, because a cooperative client revokes the
        others before it joins.
        """
        wanted = tuple(sorted(topics))
        held: tuple[TopicPartition, ...] = ()
        if self.assignor.cooperative and self._assigned:
            held = tuple(partition for partition in self._assigned if partition.topic in wanted)
        return Subscription(
            topics=wanted,
            user_data=self.assignor.user_data(self._assigned, self._generation),
            owned=tuple((topic, tuple(ids)) for topic, ids in by_topic(sorted(held)).items()),
            generation=self._generation,
            rack=self._rack,
        )

    def assign(
        self,
        members: Sequence[Member],
        partitions_of: Callable[[str], Set[int] | None],
        racks_of: Callable[[Mapping[str, int]], PartitionRacks] | None = None,
    ) -> Assignment:
        """Assign partitions as the group's leader. Topics without metadata are left out."""
        topics = {topic for member in members for topic in member.topics}
        # Partition numbers have no gaps, so the highest gives the count.
        partitions = {topic: max(known) + 1 for topic in sorted(topics) if (known := partitions_of(topic))}
        racks = None
        if racks_of is not None and any(member.rack is not None for member in members):
            racks = racks_of(partitions)
        return assign(self.assignor.name, partitions=partitions, members=members, partition_racks=racks)


def assignment_fields(
    partitions: Iterable[TopicPartition],
) -> tuple[int, list[tuple[str, list[int]]], bytes]:
    """Return the fields of a member's assignment, as both clients take them: no user data at the end."""
    return ASSIGNMENT_VERSION, list(by_topic(sorted(partitions)).items()), b""


def class_for(name: str, base: type[Adapter]) -> type[Adapter]:
    """Return a drop-in class for an assignor, named like it: `CooperativeSticky`."""
    title = "".join(word.capitalize() for word in name.replace("_", "-").split("-"))
    return type(title, (base,), {"name": get(name).name, "__doc__": f"The assignor {name!r}."})


def _string(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    data = text.encode()
    return struct.pack(">h", len(data)) + data
