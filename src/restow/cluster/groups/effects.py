"""What a group wants done after an event: the group decides, its coordinator does these in order."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from restow.cluster.groups.records import GroupValue
    from restow.cluster.groups.requests import JoinReply, SyncReply

Ticket: TypeAlias = int


class TimerKind(Enum):
    """What a timer of a group is for."""

    JOIN = "members have had their time to join"
    SYNC = "members have had their time to fetch their assignment"
    SESSION = "a member has not been heard of"


class TimerKey(NamedTuple):
    """One timer of a group; those of sessions name their member."""

    kind: TimerKind
    member_id: str = ""


JOIN_TIMER = TimerKey(TimerKind.JOIN)
SYNC_TIMER = TimerKey(TimerKind.SYNC)


class Reply(NamedTuple):
    """Whoever waits with this ticket gets this reply."""

    ticket: Ticket
    reply: JoinReply | SyncReply


class Arm(NamedTuple):
    """Let a timer fire after that long, whatever it was set to before."""

    timer: TimerKey
    delay_ms: int


class Disarm(NamedTuple):
    """Let a timer not fire."""

    timer: TimerKey


class SavePurpose(Enum):
    """What waits for a group to be written."""

    NOBODY_LEFT = "the empty generation"
    ASSIGNMENT = "the members that wait for their assignment"
    STATIC_REPLACEMENT = "the static member that came back under a new id"


class Save(NamedTuple):
    """Write the group, then tell it how that went."""

    number: int
    purpose: SavePurpose
    value: GroupValue


Effect: TypeAlias = Reply | Arm | Disarm | Save
