"""Bring a member from the partitions it has to its target assignment, one step per heartbeat.

1. What is no longer in the target is revoked first. The member stays in its epoch until it says, by the
   partitions that it still owns, that it has given them up.
2. Then it enters the target's epoch, and gets those of its new partitions that no other member holds.
3. The others follow, heartbeat by heartbeat, as their holders release them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.cluster.groups.consumer.members import MemberState

if TYPE_CHECKING:
    from collections.abc import Callable, Set

    from restow.cluster.groups.consumer.members import ConsumerGroupMember, TopicIdPartition


def reconciled(
    member: ConsumerGroupMember,
    *,
    target: Set[TopicIdPartition],
    target_epoch: int,
    owned: Set[TopicIdPartition] | None,
    is_held: Callable[[TopicIdPartition], bool],
) -> ConsumerGroupMember:
    """Return the member after its next step; itself if there is none.

    `owned` is what the member says it owns, None if it says nothing. `is_held` tells whether some member
    holds a partition.
    """
    epoch = member.epoch
    match member.state:
        case MemberState.STABLE:
            if epoch == target_epoch:
                return member
        case MemberState.UNREVOKED_PARTITIONS:
            if _still_owns(owned, member.revoking):
                return member
            epoch += 1
    assigned = {partition: since for partition, since in member.assigned.items() if partition in target}
    revoking = {partition: since for partition, since in member.assigned.items() if partition not in target}
    if revoking and _still_owns(owned, revoking):
        return _in_epoch(
            member, epoch, state=MemberState.UNREVOKED_PARTITIONS, assigned=assigned, revoking=revoking
        )
    wanted = [partition for partition in target if partition not in assigned]
    free = [partition for partition in wanted if not is_held(partition)]
    assigned |= dict.fromkeys(free, target_epoch)
    state = MemberState.STABLE if len(free) == len(wanted) else MemberState.UNRELEASED_PARTITIONS
    return _in_epoch(member, target_epoch, state=state, assigned=assigned, revoking={})


def _still_owns(owned: Set[TopicIdPartition] | None, partitions: object) -> bool:
    """Return whether the member may still own some of these; without news it does."""
    return owned is None or not owned.isdisjoint(partitions)  # type: ignore[arg-type]


def _in_epoch(member: ConsumerGroupMember, epoch: int, **changes: object) -> ConsumerGroupMember:
    """Return the changed member; a new epoch makes the present one its previous epoch."""
    if epoch != member.epoch:
        changes |= {"epoch": epoch, "previous_epoch": member.epoch}
    return replace(member, **changes)  # type: ignore[arg-type]
