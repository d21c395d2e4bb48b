"""Bring a member from the partitions it has to its target assignment, one step per heartbeat.

1. What is no longer in the target is revoked first. The member stays in its epoch until it says, by the
   partitions that it still owns, that it has given them up.
2. Then it enters the target's epoch, and gets those of its new partitions that no other member holds.
3. The others follow, heartbeat by heartbeat, as their holders release them.

A target may be older than the member's subscription. With the heartbeat that changes it, what the member no
longer subscribes to is revoked all the same, and it is not given to it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.cluster.groups.consumer.members import MemberState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Set
    from uuid import UUID

    from restow.cluster.groups.consumer.members import ConsumerGroupMember, TopicIdPartition


def reconciled(
    member: ConsumerGroupMember,
    *,
    target: Set[TopicIdPartition],
    target_epoch: int,
    owned: Set[TopicIdPartition] | None,
    is_held: Callable[[TopicIdPartition], bool],
    subscribed: Set[UUID] | None = None,
    subscribes: bool = False,
) -> ConsumerGroupMember:
    """Return the member after its next step; itself if there is none.

    `owned` is what the member says it owns, None if it says nothing. `is_held` tells whether some member
    holds a partition. `subscribed` has the member's topics if the target may be older than its subscription,
    and `subscribes` tells whether that has just changed.
    """
    match member.state:
        case MemberState.STABLE if member.epoch == target_epoch:
            return _unsubscribed(member, subscribed, owned) if subscribes else member
        case MemberState.UNREVOKED_PARTITIONS if _still_owns(owned, member.revoking):
            return _unsubscribed(member, subscribed, owned) if subscribes else member
    if subscribed is not None:
        target = {partition for partition in target if partition[0] in subscribed}
    assigned, revoking = _split(member.assigned, lambda partition: partition in target)
    if revoking and _still_owns(owned, revoking):
        state = MemberState.UNREVOKED_PARTITIONS
        return _in_epoch(member, member.epoch, state=state, assigned=assigned, revoking=revoking)
    wanted = [partition for partition in target if partition not in assigned]
    free = [partition for partition in wanted if not is_held(partition)]
    assigned |= dict.fromkeys(free, target_epoch)
    state = MemberState.STABLE if len(free) == len(wanted) else MemberState.UNRELEASED_PARTITIONS
    return _in_epoch(member, target_epoch, state=state, assigned=assigned, revoking={})


def _unsubscribed(
    member: ConsumerGroupMember, subscribed: Set[UUID] | None, owned: Set[TopicIdPartition] | None
) -> ConsumerGroupMember:
    """Return the member without what it no longer subscribes to. It stays in its epoch."""
    if subscribed is None:
        return member
    assigned, dropped = _split(member.assigned, lambda partition: partition[0] in subscribed)
    if not dropped:
        return member
    revoking = {**member.revoking, **dropped}
    if not _still_owns(owned, revoking):
        return _in_epoch(member, member.epoch, assigned=assigned)
    state = MemberState.UNREVOKED_PARTITIONS
    return _in_epoch(member, member.epoch, state=state, assigned=assigned, revoking=revoking)


def _split(
    partitions: Mapping[TopicIdPartition, int], stays: Callable[[TopicIdPartition], bool]
) -> tuple[dict[TopicIdPartition, int], dict[TopicIdPartition, int]]:
    """Return what stays, and the rest."""
    kept = {partition: since for partition, since in partitions.items() if stays(partition)}
    return kept, {partition: since for partition, since in partitions.items() if partition not in kept}


def _still_owns(owned: Set[TopicIdPartition] | None, partitions: object) -> bool:
    """Return whether the member may still own some of these; without news it does."""
    return owned is None or not owned.isdisjoint(partitions)  # type: ignore[arg-type]


def _in_epoch(member: ConsumerGroupMember, epoch: int, **changes: object) -> ConsumerGroupMember:
    """Return the member after a step, itself if nothing changed. The epoch before it is its previous one."""
    after = replace(member, epoch=epoch, previous_epoch=member.epoch, **changes)  # type: ignore[arg-type]
    return member if after == member else after
