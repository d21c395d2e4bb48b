"""Requests and responses of groups, independent of protocol versions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from restow._frozen import frozen
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from restow.cluster.groups.journal import TransactionalProducer
    from restow.cluster.groups.states import GroupState
    from restow.model import TopicPartition

NO_MEMBER = ""
NO_GENERATION = -1
NO_LEADER = ""


@frozen
class JoinRequest:
    """A request to be in the next generation.

    `needs_known_id`: a new dynamic member first gets its id, and joins with it (KIP-394; from version 4).
    `can_skip_assignment`: its client understands that a leader need not assign (version 9).
    """

    member_id: str = NO_MEMBER
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    needs_known_id: bool = False
    can_skip_assignment: bool = False


class JoinedMember(NamedTuple):
    """One member, as in the leader's join response."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@frozen
class JoinReply:
    """The result of a join. Only the leader gets the members."""

    error: ErrorCode = ErrorCode.NONE
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = NO_LEADER
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@frozen
class SyncRequest:
    """A member's request for its assignment; the leader sends everybody's."""

    generation: int
    member_id: str
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


@frozen
class SyncReply:
    """A member's assignment, or the error."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class LeavingMember(NamedTuple):
    """A leaving member: by its id, or for a static one removed by an administrator by instance id alone."""

    member_id: str = NO_MEMBER
    instance_id: str | None = None


class LeaveReply(NamedTuple):
    """An error of the whole request, otherwise one per member, in the order of the request."""

    error: ErrorCode
    members: tuple[tuple[LeavingMember, ErrorCode], ...] = ()


class OffsetToCommit(NamedTuple):
    """A group's position in a partition. The next record to read is at `offset`."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@frozen
class CommitRequest:
    """Offsets from a member, or without a generation from a consumer that assigns itself.

    `retention_ms` exists in requests before version 5. From version 9 on the generation may be the epoch of a
    member of the protocol `consumer`.
    """

    generation: int = NO_GENERATION
    member_id: str = NO_MEMBER
    instance_id: str | None = None
    retention_ms: int | None = None
    has_member_epoch: bool = False
    producer: TransactionalProducer | None = None
    """The producer in whose transaction the offsets are committed."""
    offsets: Mapping[TopicPartition, OffsetToCommit]

    def only(self, partitions: Container[TopicPartition]) -> CommitRequest:
        """Return the request for these partitions alone."""
        return replace(self, offsets={p: it for p, it in self.offsets.items() if p in partitions})


class FetchedOffsets(NamedTuple):
    """An error of the whole group, otherwise the committed offsets; None where there is none.

    An offset is unstable while a transaction is open that may change it.
    """

    error: ErrorCode
    offsets: Mapping[TopicPartition, OffsetToCommit | None]
    unstable: frozenset[TopicPartition] = frozenset()


@frozen
class DescribedMember:
    """A member in a description. It has metadata and assignment only while the group is stable."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes = b""
    assignment: bytes = b""


@frozen
class GroupDescription:
    """A description of a group. With an error, the rest is empty; a missing group is Dead."""

    error: ErrorCode = ErrorCode.NONE
    group_id: str
    state: GroupState | None = None
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()


class GroupListing(NamedTuple):
    """One entry in the list of groups."""

    group_id: str
    protocol_type: str
    state: str
    type: str


class ListReply(NamedTuple):
    """The groups coordinated here; with an error, more are still loading."""

    error: ErrorCode
    groups: tuple[GroupListing, ...]


class DeleteOffsetsReply(NamedTuple):
    """An error of the whole request, otherwise one per partition."""

    error: ErrorCode
    partitions: Mapping[TopicPartition, ErrorCode]
