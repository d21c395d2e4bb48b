"""Descriptions of classic groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.groups.requests import DescribedMember, GroupDescription
from restow.cluster.groups.states import GroupState

if TYPE_CHECKING:
    from restow.cluster.groups.group import ClassicGroup
    from restow.cluster.groups.roster import ClassicGroupMember


def describe_classic(group: ClassicGroup) -> GroupDescription:
    """Describe a group. Assignments are included only while it is stable."""
    stable = group.state is GroupState.STABLE
    protocol_name = (group.protocol_name or "") if stable else ""
    return GroupDescription(
        group_id=group.id,
        state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_name=protocol_name,
        members=tuple(_described(member, protocol_name if stable else None) for member in group.roster),
    )


def _described(member: ClassicGroupMember, protocol_name: str | None) -> DescribedMember:
    return DescribedMember(
        member_id=member.id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        metadata=b"" if protocol_name is None else member.metadata(protocol_name),
        assignment=b"" if protocol_name is None else member.assignment,
    )
