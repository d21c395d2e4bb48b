"""Requests and responses of groups of the protocol `consumer`."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.cluster.groups.consumer.members import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    STATIC_LEAVING_EPOCH,
    ConsumerGroupMember,
)
from restow.errors import RestowError
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection

    from restow.cluster.groups.consumer.members import TopicIdPartition


class ConsumerGroupState(Enum):
    """A group's state; the value is the name that clients see."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@frozen
class HeartbeatRequest:
    """A member's heartbeat. None, and -1 for the timeout, means: as before."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    server_assignor: str | None = None
    owned: frozenset[TopicIdPartition] | None = None
    client_id: str = ""
    client_host: str = ""
    needs_member_id: bool = True
    """Whether the member must bring its id; in version 0 the coordinator may make one."""

    @property
    def is_leaving(self) -> bool:
        return self.epoch in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH)

    @property
    def is_full(self) -> bool:
        """Return whether it says everything, and so wants to hear everything."""
        subscribes = self.topics is not None or self.pattern is not None
        return self.rebalance_timeout_ms != -1 and subscribes and self.owned is not None

    def updated(self, known: ConsumerGroupMember | None) -> ConsumerGroupMember:
        """Return the member with what the heartbeat says; what it leaves out stays."""
        said: dict[str, object] = {
            "instance_id": self.instance_id,
            "rack": self.rack,
            "rebalance_timeout_ms": None if self.rebalance_timeout_ms == -1 else self.rebalance_timeout_ms,
            "topics": None if self.topics is None else tuple(sorted(set(self.topics))),
            "server_assignor": self.server_assignor,
        }
        changes = {name: value for name, value in said.items() if value is not None}
        if self.pattern is not None:
            changes["pattern"] = self.pattern or None
        changes |= {"client_id": self.client_id, "client_host": self.client_host, "classic": None}
        return replace(in_place_of(known, self.member_id), **changes)  # type: ignore[arg-type]


@frozen
class HeartbeatReply:
    """The answer to a heartbeat. `assignment` is None if the member need not hear of it."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Collection[TopicIdPartition] | None = None


@frozen
class ConsumerGroupDescription:
    """A description of a group. With an error, the rest is empty."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    group_id: str
    state: ConsumerGroupState | None = None
    epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: tuple[tuple[ConsumerGroupMember, Collection[TopicIdPartition]], ...] = ()
    """Each member with its target."""


def in_place_of(known: ConsumerGroupMember | None, member_id: str) -> ConsumerGroupMember:
    """Return a new member, or the known one; a static one under another id starts in epoch 0."""
    if known is None:
        return ConsumerGroupMember(id=member_id)
    if known.id == member_id:
        return known
    return replace(known, id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)


class HeartbeatRefused(RestowError):
    """A heartbeat that the group answers with an error."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def check_heartbeat(request: HeartbeatRequest, assignors: Collection[str]) -> None:
    """Refuse a heartbeat that makes no sense, whatever the group."""

    def refuse_if(wrong: bool, message: str) -> None:
        if wrong:
            raise HeartbeatRefused(ErrorCode.INVALID_REQUEST, message)

    named = request.epoch > 0 or request.epoch == LEAVING_EPOCH or request.needs_member_id
    refuse_if(named and not request.member_id, "MemberId can't be empty.")
    refuse_if(request.instance_id == "", "InstanceId can't be empty.")
    refuse_if(request.rack == "", "RackId can't be empty.")
    if request.epoch == 0:
        refuse_if(request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request.")
        holds = request.owned is None or bool(request.owned)
        refuse_if(holds, "TopicPartitions must be empty when (re-)joining.")
        refuse_if(
            request.topics is None and request.pattern is None,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        )
    elif request.epoch == STATIC_LEAVING_EPOCH:
        refuse_if(request.instance_id is None, "InstanceId can't be null.")
    refuse_if(request.epoch < STATIC_LEAVING_EPOCH, f"MemberEpoch {request.epoch} is not valid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise HeartbeatRefused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"The assignor {request.server_assignor!r} is unknown here; there are {', '.join(assignors)}.",
        )
