"""Refuse heartbeats of unknown members, of members in a wrong epoch, and of a fenced instance id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.groups.consumer.members import JOINING_EPOCH, STATIC_LEAVING_EPOCH
from restow.cluster.groups.consumer.requests import HeartbeatRefused
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from restow.cluster.groups.consumer.members import ConsumerGroupMember
    from restow.cluster.groups.consumer.requests import HeartbeatRequest
    from restow.cluster.groups.consumer.roster import ConsumerGroupRoster


def present_member(
    roster: ConsumerGroupRoster, member_id: str, instance_id: str | None
) -> ConsumerGroupMember:
    """Return the member with that id. A static one must still have its instance id."""
    if instance_id is None:
        member = roster.members.get(member_id)
        if member is None:
            raise _unknown(f"Member {member_id} is not a member of the group.")
        return member
    member = roster.static(instance_id)
    if member is None:
        raise _unknown(f"Instance id {instance_id} is unknown.")
    if member.id != member_id:
        raise HeartbeatRefused(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.id}.",
        )
    return member


def beating_member(roster: ConsumerGroupRoster, request: HeartbeatRequest) -> ConsumerGroupMember | None:
    """Return the member that sends a heartbeat, or that a joining static one replaces; None if it is new."""
    joins = request.epoch == JOINING_EPOCH
    if joins and request.instance_id is not None:
        replaced = roster.static(request.instance_id)
        if replaced is not None and replaced.classic is None and replaced.epoch != STATIC_LEAVING_EPOCH:
            raise HeartbeatRefused(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {request.member_id} with instance id {request.instance_id} "
                f"cannot join while {replaced.id} has the same instance id.",
            )
        return replaced
    if joins:
        return roster.members.get(request.member_id)
    member = present_member(roster, request.member_id, request.instance_id)
    _check_epoch(member, request)
    return member


def _check_epoch(member: ConsumerGroupMember, request: HeartbeatRequest) -> None:
    """Fence a member in a wrong epoch, unless it can have missed its last answer."""
    lost = (
        request.epoch == member.previous_epoch
        and request.owned is not None
        and request.owned <= member.assigned.keys()
    )
    if request.epoch != member.epoch and not lost:
        raise HeartbeatRefused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The member is in epoch {request.epoch}, the group knows it in epoch {member.epoch}. "
            "It must give up its partitions and join again.",
        )


def _unknown(message: str) -> HeartbeatRefused:
    return HeartbeatRefused(ErrorCode.UNKNOWN_MEMBER_ID, message)
