"""One group of the protocol `consumer` (KIP-848): takes heartbeats and the time, returns what to write.

The broker assigns partitions. Three epochs say how far that has come:

    the group's epoch   grows when a member comes, leaves or subscribes to something else, or a topic changes
    the target's epoch  the group's epoch for which the assignor was last asked, which it is not too often
    a member's epoch    the target's epoch to which the member has been reconciled (`reconciling.py`)

Nothing waits in here. A failure of the assignor leaves the group as it was.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

from restow.cluster.groups.consumer.fencing import beating_member, present_member
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
from restow.cluster.groups.consumer.targets import Targets, preferred_assignor
from restow.cluster.groups.effects import Arm, Disarm, TimerKey, TimerKind
from restow.errors import RestowError
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from restow.cluster.groups.config import GroupConfig
    from restow.cluster.groups.consumer.members import TopicIdPartition
    from restow.cluster.groups.consumer.records import StoredGroup
    from restow.cluster.groups.consumer.requests import HeartbeatRequest
    from restow.cluster.groups.consumer.subscriptions import Refreshed
    from restow.cluster.groups.consumer.topics import TopicDirectory
    from restow.cluster.groups.journal import KeyAndValue
    from restow.model import TopicPartition


_NOBODY = ConsumerGroupMember(id="")
_EPOCH_OF_NOBODY = 1
"""The epoch of a group that never had a member; its first member makes it the next, as in Kafka."""


class ConsumerProtocolGroup:
    """The members, their targets and what they hold."""

    def __init__(self, group_id: str, config: GroupConfig, topics: TopicDirectory) -> None:
        self.id = group_id
        self.epoch = _EPOCH_OF_NOBODY
        self.target_epoch = _EPOCH_OF_NOBODY
        self._assigned_at_ms = 0
        """When the assignor was last asked; 0 if never, or by a member of a classic group."""
        self._roster = ConsumerGroupRoster()
        self.targets: dict[str, frozenset[TopicIdPartition]] = {}
        self.subscriptions = Subscriptions(topics)
        self.records = GroupRecords(group_id)
        self.timers: list[Arm | Disarm] = []
        self.committed: Callable[[], Mapping[TopicPartition, int]] = dict
        """Returns the group's committed offsets, for assignors that look at lag."""
        self._config = config
        self._topics = topics
        self._assigning = Targets(topics)
        self._now_ms = 0

    @classmethod
    def taken_over(
        cls,
        group_id: str,
        generation: int,
        members: Iterable[ConsumerGroupMember],
        config: GroupConfig,
        topics: TopicDirectory,
    ) -> Self:
        """Return the group of members that were in a classic one; their targets are what they have."""
        group = cls(group_id, config, topics)
        group.epoch = group.target_epoch = max(generation, _EPOCH_OF_NOBODY)
        for member in members:
            group._roster.put(member)
            group.targets[member.id] = frozenset(member.assigned)
        group.subscriptions.know_topics_of(group._roster.subscriptions())
        return group

    @classmethod
    def written(cls, group_id: str, stored: StoredGroup, config: GroupConfig, topics: TopicDirectory) -> Self:
        """Restore a group from its records."""
        group = cls(group_id, config, topics)
        group.epoch, group.target_epoch = stored.epoch, stored.target_epoch
        group._assigned_at_ms = stored.assigned_at_ms
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
        return self.epoch == _EPOCH_OF_NOBODY and not self.members

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
        return self.subscriptions.topics_of(self._roster.subscriptions())

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
        everything.target_epoch(self.target_epoch, self._assigned_at_ms)
        for pattern, resolved in self.subscriptions.patterns.items():
            everything.pattern(pattern, resolved)
        for member in self.members.values():
            everything.member(member)
            everything.target(member.id, self.targets.get(member.id, frozenset()))
            everything.current(member)
        return everything.take()

    def last_records(self) -> list[KeyAndValue]:
        """Return what is still to be written, and the tombstones of the whole group."""
        for member_id in self.members:
            self.records.without(member_id)
        for pattern in self.subscriptions.patterns:
            self.records.pattern(pattern, None)
        self.records.end()
        return self.records.take()

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
        """Remove a member that was not heard of, or did not revoke its partitions, join or sync in time."""
        self._now_ms = now_ms
        member = self.members.get(timer.member_id)
        if member is not None and (
            timer.kind is not TimerKind.REVOCATION or member.state is MemberState.UNREVOKED_PARTITIONS
        ):
            self._remove(member)

    def commit_error(self, member_id: str, epoch: int) -> ErrorCode:
        """Return whether a member may commit or fetch offsets in this epoch; an earlier one may be enough."""
        if epoch < 0 and not self.members:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return _wrong_epoch(member) if epoch > member.epoch or epoch < 0 else ErrorCode.NONE

    def fetch_error(self, member_id: str, epoch: int) -> ErrorCode:
        """Return whether a member may read the group's offsets in this epoch."""
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == member.epoch else _wrong_epoch(member)

    def partition_error(self, member_id: str, epoch: int, partition: TopicPartition) -> ErrorCode:
        """Return whether the member has had the partition since that epoch (KIP-1251)."""
        member = self.members.get(member_id)
        if member is None or epoch == member.epoch:
            return ErrorCode.NONE
        topic_id = self._topics.id_of(partition.topic)
        if topic_id is None:
            return _wrong_epoch(member)
        key = topic_id, partition.partition
        since = member.assigned.get(key, member.revoking.get(key))
        return _wrong_epoch(member) if since is None or epoch < since else ErrorCode.NONE

    # Heartbeats

    def _beat(self, request: HeartbeatRequest) -> HeartbeatReply:
        known = beating_member(self._roster, request)
        after = self._take_in(known, request.updated(known), request.owned)
        tell = request.epoch == JOINING_EPOCH or request.is_full
        if known is None or after.assigned.keys() != known.assigned.keys():
            tell = True
        return HeartbeatReply(
            member_id=after.id,
            epoch=after.epoch,
            heartbeat_interval_ms=self._config.consumer_heartbeat_interval_ms,
            assignment=after.assigned if tell else None,
        )

    def _take_in(
        self,
        known: ConsumerGroupMember | None,
        member: ConsumerGroupMember,
        owned: frozenset[TopicIdPartition] | None,
    ) -> ConsumerGroupMember:
        """Add or update a member, which is `known` as something else, and reconcile it with its target."""
        self.subscriptions.check(member)
        before = _NOBODY if known is None else known
        bump = self.is_new or before.subscription != member.subscription
        if known != member:
            self._check_room(member)
        refreshed = self.subscriptions.refresh(
            self._roster.subscriptions(member, known), self._now_ms, subscription_changed=bump
        )
        epoch = self.epoch + (bump or refreshed.changed)
        targets = None
        if epoch > self.target_epoch and self._may_assign:
            targets = self._targets_for(refreshed, known, member)
        # From here on nothing can fail.
        if known is not None and known.id != member.id:
            self._replace(known, member)
        if known != member:
            self.records.member(member)
        self.subscriptions.adopt(refreshed, self.records)
        if epoch > self.epoch:
            self.epoch = epoch
            self.records.epoch(epoch, refreshed.metadata_hash)
        self._roster.put(member)
        if targets is not None:
            self._retarget(targets)
        return self._reconcile(known, member, owned, subscribes=bump)

    @property
    def _may_assign(self) -> bool:
        """Whether the last target is old enough for the next one; one of a clock that is ahead always is."""
        age_ms = self._now_ms - self._assigned_at_ms
        return not 0 <= age_ms < self._config.consumer_assignment_interval_ms

    def _reconcile(
        self,
        known: ConsumerGroupMember | None,
        member: ConsumerGroupMember,
        owned: frozenset[TopicIdPartition] | None,
        *,
        subscribes: bool = False,
    ) -> ConsumerGroupMember:
        subscribed = None
        if self.epoch > self.target_epoch:
            topics = self.subscriptions.topics_of((member.subscription,))
            subscribed = {found for topic in topics if (found := self._topics.id_of(topic)) is not None}
        after = reconciled(
            member,
            target=self.targets.get(member.id, frozenset()),
            target_epoch=self.target_epoch,
            owned=owned,
            is_held=self._roster.is_held,
            subscribed=subscribed,
            subscribes=subscribes,
        )
        if after is not member or known is None or known.id != member.id:
            self._roster.put(after)
            self.records.current(after)
        self._watch(after, changed=after is not member)
        return after

    def _check_room(self, member: ConsumerGroupMember) -> None:
        is_new = member.id not in self.members and self._roster.static(member.instance_id) is None
        if is_new and len(self.members) >= self._config.consumer_max_size:
            raise HeartbeatRefused(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The group has reached its limit of {self._config.consumer_max_size} members.",
            )

    # Leaving

    def _leave(self, request: HeartbeatRequest) -> HeartbeatReply:
        member = present_member(self._roster, request.member_id, request.instance_id)
        if request.instance_id is not None and request.epoch == STATIC_LEAVING_EPOCH:
            away = replace(member, epoch=STATIC_LEAVING_EPOCH, revoking={}, state=MemberState.STABLE)
            self._roster.put(away)
            self.records.current(away)
            self.timers.append(Disarm(TimerKey(TimerKind.REVOCATION, member.id)))
        else:
            self._remove(member)
        return HeartbeatReply(member_id=request.member_id, epoch=request.epoch)

    def _remove(self, *members: ConsumerGroupMember) -> None:
        """Remove members. The next heartbeat of another one asks the assignor again."""
        for member in members:
            self._drop(member)
        refreshed = self.subscriptions.refresh(
            self._roster.subscriptions(), self._now_ms, subscription_changed=True
        )
        self.subscriptions.adopt(refreshed, self.records)
        self.epoch += 1
        self.records.epoch(self.epoch, refreshed.metadata_hash)

    # Targets

    def _targets_for(
        self, refreshed: Refreshed, known: ConsumerGroupMember | None, member: ConsumerGroupMember
    ) -> dict[str, frozenset[TopicIdPartition]]:
        """Ask the assignor. A static member that came back under a new id inherits its target."""
        members = {id_: each for id_, each in self.members.items() if known is None or id_ != known.id}
        members[member.id] = member
        before = dict(self.targets)
        if known is not None and known.id != member.id:
            before[member.id] = before.pop(known.id, frozenset())
        assignor = preferred_assignor(members.values(), self._config.assignors[0])
        return self._assigning.ask(assignor, members, before, refreshed, self.committed())

    def _retarget(self, targets: dict[str, frozenset[TopicIdPartition]]) -> None:
        for member_id, target in targets.items():
            before = self.targets.get(member_id)
            if before is not target and before != target:
                self.records.target(member_id, target)
        self.targets = targets
        self.target_epoch = self.epoch
        self._assigned_at_ms = self._now_ms
        self.records.target_epoch(self.target_epoch, self._assigned_at_ms)

    # Members

    def _drop(self, member: ConsumerGroupMember) -> None:
        self._roster.drop(member)
        self.targets.pop(member.id, None)
        self._assigning.forget(member.id)
        self.records.without(member.id)
        self.timers += [Disarm(TimerKey(kind, member.id)) for kind in TimerKind]

    def _replace(self, known: ConsumerGroupMember, member: ConsumerGroupMember) -> None:
        """Let a static member that came back take the place of its former self."""
        target = self.targets.get(known.id)
        self._drop(known)
        if target is not None:
            self.targets[member.id] = target
            self.records.target(member.id, target)

    def _watch(self, member: ConsumerGroupMember, *, changed: bool) -> None:
        """Give the member a full session, and if it changed, the time that it has to revoke partitions.

        A classic member has a session of its own length, and joins again to revoke partitions.
        """
        classic = member.classic
        session_ms = (
            self._config.consumer_session_timeout_ms if classic is None else classic.session_timeout_ms
        )
        self.timers.append(Arm(TimerKey(TimerKind.SESSION, member.id), session_ms))
        revocation = TimerKey(TimerKind.REVOCATION, member.id)
        if changed and classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
            self.timers.append(Arm(revocation, member.rebalance_timeout_ms))
        elif changed:
            self.timers.append(Disarm(revocation))


def _wrong_epoch(member: ConsumerGroupMember) -> ErrorCode:
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
