"""The members of a group of the protocol `consumer` (KIP-848): frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from restow._frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

TopicIdPartition: TypeAlias = "tuple[UUID, int]"
PartitionEpochs: TypeAlias = "Mapping[TopicIdPartition, int]"
"""Partitions, each with the epoch in which the member got it."""

Subscription: TypeAlias = "tuple[tuple[str, ...], str | None]"
"""Topics by name, sorted, and a regular expression for more."""

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
STATIC_LEAVING_EPOCH = -2
"""A static member that will come back; its partitions wait for it until its session ends."""


class MemberState(IntEnum):
    """A member on its way to its target assignment; the numbers are those of Kafka's records.

    STABLE ──► UNREVOKED_PARTITIONS ──► UNRELEASED_PARTITIONS ──► STABLE
               the member has to give     other members still hold
               partitions up              partitions of its target
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class ClassicMembership:
    """What a member of the classic protocol has said when it joined a group of the protocol `consumer`."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Its assignors by preference, each with its subscription in the format of Kafka's consumers."""


@frozen
class ConsumerGroupMember:
    """What a member has said of itself, and what it has."""

    id: str
    instance_id: str | None = None
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """Subscribed by name, sorted."""
    pattern: str | None = None
    """A regular expression for more topics."""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMembership | None = None
    """Of a member that uses the classic protocol."""

    epoch: int = JOINING_EPOCH
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: PartitionEpochs = field(default_factory=dict)
    revoking: PartitionEpochs = field(default_factory=dict)
    """Partitions that it may still read, and has been told to give up."""

    @property
    def subscription(self) -> Subscription:
        return self.topics, self.pattern
