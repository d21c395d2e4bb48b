"""What members ask of a group and what they are told, apart from the bytes and versions of the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.groups.states import GroupState
    from restow.model import TopicPartition

NO_MEMBER = ""
NO_GENERATION = -1
NO_LEADER = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """A member wants to be in the next generation.

    `needs_known_id`: a new dynamic member is first only given its id, and joins with it (KIP-394; from
    version 4 on). `can_skip_assignment`: its client understands that a leader need not assign (version 9).
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
    """One member, as the leader is told of it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinReply:
    """How joining ended. Only the leader is told the members."""

    error: ErrorCode = ErrorCode.NONE
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = NO_LEADER
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRequest:
    """A member of a new generation wants its assignment; the leader brings everybody's."""

    generation: int
    member_id: str
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReply:
    """A member's assignment, or why there is none."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class LeavingMember(NamedTuple):
    """Who is to leave: by its id, or an operator names a static member by its instance id alone."""

    member_id: str = NO_MEMBER
    instance_id: str | None = None


class LeaveReply(NamedTuple):
    """An error of the whole request, else one for each member, in the order of the request."""

    error: ErrorCode
    members: tuple[tuple[LeavingMember, ErrorCode], ...] = ()


class OffsetToCommit(NamedTuple):
    """How far a group has read a partition. The next record it wants is at `offset`."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """Offsets from a member, or with no generation from somebody who manages the group's work alone.

    `retention_ms` is what requests before version 5 could set.
    """

    generation: int = NO_GENERATION
    member_id: str = NO_MEMBER
    instance_id: str | None = None
    retention_ms: int | None = None
    offsets: Mapping[TopicPartition, OffsetToCommit]


class FetchedOffsets(NamedTuple):
    """An error of the whole group, else what is committed: None where nothing is."""

    error: ErrorCode
    offsets: Mapping[TopicPartition, OffsetToCommit | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMember:
    """A member as operators are shown it. Metadata and assignment only while the group is stable."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes = b""
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group as operators are shown it. With an error the rest says nothing; no such group is a Dead one."""

    error: ErrorCode = ErrorCode.NONE
    group_id: str
    state: GroupState | None = None
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()


class GroupListing(NamedTuple):
    """One line of the list of groups."""

    group_id: str
    protocol_type: str
    state: GroupState


class ListReply(NamedTuple):
    """The groups coordinated here; with an error there may be more, which are being loaded."""

    error: ErrorCode
    groups: tuple[GroupListing, ...]


class DeleteOffsetsReply(NamedTuple):
    """An error of the whole request, else one for each partition."""

    error: ErrorCode
    partitions: Mapping[TopicPartition, ErrorCode]
