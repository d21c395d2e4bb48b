"""One group of the protocol `consumer` (KIP-848): takes heartbeats and the time, returns what to write.

The broker assigns partitions. Three epochs say how far that has come:

    the group's epoch   grows when a member comes, leaves or subscribes to something else, or a topic changes
    the target's epoch  the group's epoch for which the assignor was last asked
    a member's epoch    the target's epoch to which the member has been reconciled (`reconciling.py`)

Nothing waits in here. A failure of the assignor leaves the group as it was.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.cluster.groups.consumer.journaling import GroupRecords
from restow.cluster.groups.consumer.members import (
    JOINING_EPOCH,
    STATIC_LEAVING_EPOCH,
    ConsumerGroupMember,
    MemberState,
)
from restow.cluster.groups.consumer.reconciling import reconciled
from restow.cluster.groups.consumer.requests import (
    ConsumerGroupDescription,
    ConsumerGroupState,
    HeartbeatRefused,
    HeartbeatReply,
)
from restow.cluster.groups.consumer.roster import ConsumerGroupRoster
from restow.cluster.groups.consumer.subscriptions import Subscriptions
from restow.cluster.groups.consumer.targets import preferred_assignor, target_assignment
from restow.cluster.groups.effects import Arm, Disarm, TimerKey, TimerKind
from restow.errors import RestowError
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.groups.config import GroupConfig
    from restow.cluster.groups.consumer.members import TopicIdPartition
    from restow.cluster.groups.consumer.records import StoredGroup
    from restow.cluster.groups.consumer.requests import HeartbeatRequest
    from restow.cluster.groups.consumer.subscriptions import Refreshed
    from restow.cluster.groups.consumer.topics import TopicDirectory
    from restow.cluster.groups.journal import KeyAndValue
    from restow.model import TopicPartition


_EPOCH_OF_NOBODY = 1
"""The epoch of a group that never had a member; its first member makes it the next, as in Kafka."""


class ConsumerProtocolGroup:
    """The members, their targets and what they hold."""

    def __init__(self, group_id: str, config: GroupConfig, topics: TopicDirectory) -> None:
        self.id = group_id
        self.epoch = _EPOCH_OF_NOBODY
        self.target_epoch = _EPOCH_OF_NOBODY
        self._roster = ConsumerGroupRoster()
        self.targets: dict[str, frozenset[TopicIdPartition]] = {}
        self.subscriptions = Subscriptions(topics)
        self.records = GroupRecords(group_id)
        self.timers: list[Arm | Disarm] = []
        self._config = config
        self._topics = topics
        self._now_ms = 0

    @classmethod
    def written(
        cls, group_id: str, stored: StoredGroup, config: GroupConfig, topics: TopicDirectory
    ) -> ConsumerProtocolGroup:
        """Restore a group from its records."""
        group = cls(group_id, config, topics)
        group.epoch, group.target_epoch = stored.epoch, stored.target_epoch
        group.subscriptions.restore(stored.metadata_hash, stored.patterns)
        for member in stored.members.values():
            if found := stored.current.get(member.id):
                epoch, previous, state, assigned, revoking = found
                member = replace(  # noqa: PLW2901
                    member,
                    epoch=epoch,
                    previous_epoch=previous,
                    state=state,
                    assigned=assigned,
                    revoking=revoking,
                )
            group._roster.put(member)
        group.targets = {id_: target for id_, target in stored.targets.items() if id_ in group.members}
        return group

    # What it is like

    @property
    def is_new(self) -> bool:
        """Whether it never had a member."""
        return self.epoch == _EPOCH_OF_NOBODY

    @property
    def members(self) -> Mapping[str, ConsumerGroupMember]:
        return self._roster.members

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(
            member.state is MemberState.STABLE and member.epoch == self.target_epoch
            for member in self.members.values()
        ):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def assignor(self) -> str:
        """The assignor that most members ask for; the broker's first one if none does."""
        return preferred_assignor(self.members.values(), self._config.assignors[0])

    def subscribed_topics(self) -> frozenset[str]:
        """Return the topics that some member subscribes to."""
        return self.subscriptions.topics_of(self.members.values())

    def describe(self) -> ConsumerGroupDescription:
        return ConsumerGroupDescription(
            group_id=self.id,
            state=self.state,
            epoch=self.epoch,
            assignment_epoch=self.target_epoch,
            assignor=self.assignor,
            members=tuple((m, self.targets.get(m.id, frozenset())) for m in self.members.values()),
        )

    def all_records(self) -> list[KeyAndValue]:
        """Return the records of the whole group, as if it were new."""
        everything = GroupRecords(self.id)
        everything.epoch(self.epoch, self.subscriptions.metadata_hash)
        everything.target_epoch(self.target_epoch, self._now_ms)
        for pattern, resolved in self.subscriptions.patterns.items():
            everything.pattern(pattern, resolved)
        for member in self.members.values():
            everything.member(member)
            everything.target(member.id, self.targets.get(member.id, frozenset()))
            everything.current(member)
        return everything.take()

    # Events

    def resume(self, now_ms: int) -> None:
        """Start to coordinate the group here. Each member gets a full session."""
        self._now_ms = now_ms
        for member in self.members.values():
            self._watch(member, changed=True)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> HeartbeatReply:
        """Handle a heartbeat; `records` and `timers` then have what follows from it."""
        self._now_ms = now_ms
        try:
            return self._leave(request) if request.is_leaving else self._beat(request)
        except HeartbeatRefused as refused:
            return HeartbeatReply(error=refused.code, message=str(refused))
        except RestowError as error:
            return HeartbeatReply(error=ErrorCode.UNKNOWN_SERVER_ERROR, message=str(error))

    def fired(self, timer: TimerKey, now_ms: int) -> None:
        """Remove a member that was not heard of, or did not revoke its partitions in time."""
        self._now_ms = now_ms
        member = self.members.get(timer.member_id)
        if member is not None and (
            timer.kind is TimerKind.SESSION or member.state is MemberState.UNREVOKED_PARTITIONS
        ):
            self._remove(member)

    def commit_error(self, member_id: str, epoch: int) -> ErrorCode:
        """Return whether a member may commit or fetch offsets in this epoch; an earlier one may be enough."""
        if epoch < 0 and not self.members:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.STALE_MEMBER_EPOCH if epoch > member.epoch or epoch < 0 else ErrorCode.NONE

    def fetch_error(self, member_id: str, epoch: int) -> ErrorCode:
        """Return whether a member may read the group's offsets in this epoch."""
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == member.epoch else ErrorCode.STALE_MEMBER_EPOCH

    def may_commit(self, member_id: str, epoch: int, partition: TopicPartition) -> bool:
        """Return whether the member has had the partition since that epoch (KIP-1251)."""
        member = self.members.get(member_id)
        if member is None or epoch == member.epoch:
            return True
        topic_id = self._topics.id_of(partition.topic)
        if topic_id is None:
            return False
        key = topic_id, partition.partition
        since = member.assigned.get(key, member.revoking.get(key))
        return since is not None and epoch >= since

    # Heartbeats

    def _beat(self, request: HeartbeatRequest) -> HeartbeatReply:
        known = self._known(request)
        member = request.updated(known)
        self.subscriptions.check(member)
        bump = known is None or (known.topics, known.pattern) != (member.topics, member.pattern)
        if known is None or known != member:
            self._check_room(member)
        candidates: Mapping[str, ConsumerGroupMember] = self.members
        if known is None or known != member:
            rest = {id_: each for id_, each in self.members.items() if known is None or id_ != known.id}
            candidates = rest | {member.id: member}
        refreshed = self.subscriptions.refresh(candidates.values(), self._now_ms, subscription_changed=bump)
        epoch = self.epoch + (bump or refreshed.changed)
        targets = None
        if epoch > self.target_epoch:
            targets = self._targets_for(candidates, refreshed, known, member)
        # From here on nothing can fail.
        if known is not None and known.id != member.id:
            self._replace(known, member)
        if known is None or known != member:
            self.records.member(member)
        self.subscriptions.adopt(refreshed, self.records)
        if epoch > self.epoch:
            self.epoch = epoch
            self.records.epoch(epoch, refreshed.metadata_hash)
        self._roster.put(member)
        if targets is not None:
            self._retarget(targets)
        return self._reconcile(known, member, request)

    def _reconcile(
        self, known: ConsumerGroupMember | None, member: ConsumerGroupMember, request: HeartbeatRequest
    ) -> HeartbeatReply:
        after = reconciled(
            member,
            target=self.targets.get(member.id, frozenset()),
            target_epoch=self.target_epoch,
            owned=request.owned,
            is_held=self._roster.is_held,
        )
        if after is not member or known is None or known.id != member.id:
            self._roster.put(after)
            self.records.current(after)
        self._watch(after, changed=after is not member)
        tell = request.epoch == JOINING_EPOCH or request.is_full
        if known is None or after.assigned.keys() != known.assigned.keys():
            tell = True
        return HeartbeatReply(
            member_id=after.id,
            epoch=after.epoch,
            heartbeat_interval_ms=self._config.consumer_heartbeat_interval_ms,
            assignment=after.assigned if tell else None,
        )

    def _known(self, request: HeartbeatRequest) -> ConsumerGroupMember | None:
        """Return the member that speaks; None for a new one."""
        joins = request.epoch == JOINING_EPOCH
        if request.instance_id is None:
            member = self.members.get(request.member_id)
            if member is None and not joins:
                raise _unknown(f"Member {request.member_id} is not a member of group {self.id}.")
        else:
            member = self._roster.static(request.instance_id)
            if member is None and not joins:
                raise _unknown(f"Instance id {request.instance_id} is unknown.")
            if member is not None and joins:
                if member.epoch != STATIC_LEAVING_EPOCH:
                    raise HeartbeatRefused(
                        ErrorCode.UNRELEASED_INSTANCE_ID,
                        f"Static member {request.member_id} with instance id {request.instance_id} "
                        f"cannot join while {member.id} has the same instance id.",
                    )
                return member
            self._check_instance(member, request)
        if member is not None:
            self._check_epoch(member, request)
        return member

    def _check_epoch(self, member: ConsumerGroupMember, request: HeartbeatRequest) -> None:
        """Fence a member in a wrong epoch, unless it can have missed its last answer."""
        if request.epoch in (member.epoch, JOINING_EPOCH):
            return
        lost = (
            request.epoch == member.previous_epoch
            and request.owned is not None
            and request.owned <= member.assigned.keys()
        )
        if not lost:
            raise HeartbeatRefused(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The member is in epoch {request.epoch}, the group knows it in epoch {member.epoch}. "
                "It must give up its partitions and join again.",
            )

    def _check_room(self, member: ConsumerGroupMember) -> None:
        is_new = member.id not in self.members and self._roster.static(member.instance_id) is None
        if is_new and len(self.members) >= self._config.consumer_max_size:
            raise HeartbeatRefused(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The group has reached its limit of {self._config.consumer_max_size} members.",
            )

    # Leaving

    def _leave(self, request: HeartbeatRequest) -> HeartbeatReply:
        if request.instance_id is None:
            member = self.members.get(request.member_id)
            if member is None:
                raise _unknown(f"Member {request.member_id} is not a member of group {self.id}.")
            self._remove(member)
        else:
            member = self._roster.static(request.instance_id)
            if member is None:
                raise _unknown(f"Instance id {request.instance_id} is unknown.")
            self._check_instance(member, request)
            if request.epoch == STATIC_LEAVING_EPOCH:
                away = replace(member, epoch=STATIC_LEAVING_EPOCH, revoking={}, state=MemberState.STABLE)
                self._roster.put(away)
                self.records.current(away)
                self.timers.append(Disarm(TimerKey(TimerKind.REVOCATION, member.id)))
            else:
                self._remove(member)
        return HeartbeatReply(member_id=request.member_id, epoch=request.epoch)

    def _check_instance(self, member: ConsumerGroupMember | None, request: HeartbeatRequest) -> None:
        if member is not None and member.id != request.member_id:
            raise HeartbeatRefused(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {request.member_id} with instance id {request.instance_id} was fenced "
                f"by member {member.id}.",
            )

    def _remove(self, member: ConsumerGroupMember) -> None:
        """Remove a member. The next heartbeat of another one asks the assignor again."""
        self._drop(member)
        refreshed = self.subscriptions.refresh(self.members.values(), self._now_ms, subscription_changed=True)
        self.subscriptions.adopt(refreshed, self.records)
        self.epoch += 1
        self.records.epoch(self.epoch, refreshed.metadata_hash)

    # Targets

    def _targets_for(
        self,
        members: Mapping[str, ConsumerGroupMember],
        refreshed: Refreshed,
        known: ConsumerGroupMember | None,
        member: ConsumerGroupMember,
    ) -> dict[str, frozenset[TopicIdPartition]]:
        """Ask the assignor. A static member that came back under a new id inherits its target."""
        before = dict(self.targets)
        if known is not None and known.id != member.id:
            before[member.id] = before.pop(known.id, frozenset())
        assignor = preferred_assignor(members.values(), self._config.assignors[0])
        return target_assignment(assignor, members, before, refreshed, self._topics)

    def _retarget(self, targets: dict[str, frozenset[TopicIdPartition]]) -> None:
        for member_id, target in targets.items():
            if self.targets.get(member_id) != target:
                self.records.target(member_id, target)
        self.targets = targets
        self.target_epoch = self.epoch
        self.records.target_epoch(self.target_epoch, self._now_ms)

    # Members

    def _drop(self, member: ConsumerGroupMember) -> None:
        self._roster.drop(member)
        self.targets.pop(member.id, None)
        self.records.without(member.id)
        self.timers += [
            Disarm(TimerKey(kind, member.id)) for kind in (TimerKind.SESSION, TimerKind.REVOCATION)
        ]

    def _replace(self, known: ConsumerGroupMember, member: ConsumerGroupMember) -> None:
        """Let a static member that came back take the place of its former self."""
        target = self.targets.get(known.id)
        self._drop(known)
        if target is not None:
            self.targets[member.id] = target
            self.records.target(member.id, target)

    def _watch(self, member: ConsumerGroupMember, *, changed: bool) -> None:
        """Give the member a full session, and if it changed, the time that it has to revoke partitions."""
        session = TimerKey(TimerKind.SESSION, member.id)
        self.timers.append(Arm(session, self._config.consumer_session_timeout_ms))
        revocation = TimerKey(TimerKind.REVOCATION, member.id)
        if changed and member.state is MemberState.UNREVOKED_PARTITIONS:
            self.timers.append(Arm(revocation, member.rebalance_timeout_ms))
        elif changed:
            self.timers.append(Disarm(revocation))


def _unknown(message: str) -> HeartbeatRefused:
    return HeartbeatRefused(ErrorCode.UNKNOWN_MEMBER_ID, message)
