"""Effects of a group's decisions, which its coordinator carries out in order."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from restow.cluster.groups.records import GroupValue
    from restow.cluster.groups.requests import JoinReply, SyncReply

Ticket: TypeAlias = int


class TimerKind(Enum):
    """The purpose of a timer."""

    JOIN = "members have had their time to join"
    SYNC = "members have had their time to fetch their assignment"
    SESSION = "a member has not been heard of"
    REVOCATION = "a member has had its time to revoke partitions"


class TimerKey(NamedTuple):
    """One timer of a group, or of a member."""

    kind: TimerKind
    member_id: str = ""


JOIN_TIMER = TimerKey(TimerKind.JOIN)
SYNC_TIMER = TimerKey(TimerKind.SYNC)


class Reply(NamedTuple):
    """Answer the request that waits with this ticket."""

    ticket: Ticket
    reply: JoinReply | SyncReply


class Arm(NamedTuple):
    """Set a timer. It replaces an earlier setting, unless it is `only_if_absent`."""

    timer: TimerKey
    delay_ms: int
    only_if_absent: bool = False


class Disarm(NamedTuple):
    """Cancel a timer."""

    timer: TimerKey


class SavePurpose(Enum):
    """The reason to write a group."""

    NOBODY_LEFT = "the empty generation"
    ASSIGNMENT = "the members that wait for their assignment"
    STATIC_REPLACEMENT = "the static member that came back under a new id"


class Save(NamedTuple):
    """Write the group, then report the result to it."""

    number: int
    purpose: SavePurpose
    value: GroupValue


Effect: TypeAlias = Reply | Arm | Disarm | Save
