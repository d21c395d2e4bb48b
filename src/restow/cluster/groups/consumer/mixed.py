"""Members of the classic protocol in a group of the protocol `consumer` (KIP-848's online migration).

A classic member does not wait for others here, and never leads: the broker assigns. It goes through the same
epochs as the other members, one step with every JoinGroup, and takes its member epoch for the generation:

    JoinGroup   says what it subscribes to and still owns, and takes it one step towards its target
    SyncGroup   returns the partitions that it has now
    Heartbeat   answers REBALANCE_IN_PROGRESS when the next step is due, so that it joins again
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.cluster.groups.consumer.embedded import PROTOCOL_TYPE, decode_subscription, encode_assignment
from restow.cluster.groups.consumer.fencing import present_member
from restow.cluster.groups.consumer.group import ConsumerProtocolGroup
from restow.cluster.groups.consumer.members import ClassicMembership, MemberState
from restow.cluster.groups.consumer.requests import HeartbeatRefused, in_place_of
from restow.cluster.groups.effects import Arm, Disarm, TimerKey, TimerKind
from restow.cluster.groups.requests import NO_MEMBER, JoinReply, SyncReply
from restow.errors import RestowError
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from restow.cluster.groups.consumer.embedded import Subscription
    from restow.cluster.groups.consumer.members import ConsumerGroupMember, TopicIdPartition
    from restow.cluster.groups.requests import JoinRequest, LeavingMember, SyncRequest


class MixedGroup(ConsumerProtocolGroup):
    """A group of the protocol `consumer` that takes in classic members, too."""

    should_downgrade = False
    """Whether only classic members are left, so that the group must go on as a classic one."""
    rebalances_after_downgrade = True
    """Whether the classic group starts with a rebalance: not if a static member came back unchanged."""

    def named_target(self, member_id: str) -> list[TopicPartition]:
        """Return the partitions that a member shall have, of topics that exist."""
        return self._named(self.targets.get(member_id, ()))

    # Events

    def join(self, request: JoinRequest, make_id: Callable[[], str], now_ms: int) -> JoinReply:
        """Take in a classic member, or take it a step further. Nothing waits for other members."""
        self._now_ms = now_ms
        try:
            return self._join(request, make_id)
        except HeartbeatRefused as refused:
            return JoinReply(error=refused.code, member_id=NO_MEMBER)
        except RestowError:
            return JoinReply(error=ErrorCode.UNKNOWN_SERVER_ERROR, member_id=NO_MEMBER)

    def sync(self, request: SyncRequest, now_ms: int) -> SyncReply:
        """Return the partitions that a classic member has."""
        self._now_ms = now_ms
        try:
            member, classic = self._classic(request.generation, request.member_id, request.instance_id)
        except HeartbeatRefused as refused:
            return SyncReply(error=refused.code)
        name, metadata = classic.protocols[0]
        if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, name):
            return SyncReply(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if self.target_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._expect_join(member)
            return SyncReply(error=ErrorCode.REBALANCE_IN_PROGRESS)
        self.timers.append(Disarm(TimerKey(TimerKind.SYNC, member.id)))
        self._watch(member, changed=False)
        return SyncReply(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=encode_assignment(self._named(member.assigned), decode_subscription(metadata).version),
        )

    def classic_heartbeat(
        self, generation: int, member_id: str, instance_id: str | None, now_ms: int
    ) -> ErrorCode:
        """Handle a heartbeat of a classic member. The response tells it whether to join again."""
        self._now_ms = now_ms
        try:
            member, _ = self._classic(generation, member_id, instance_id)
        except HeartbeatRefused as refused:
            return refused.code
        self._watch(member, changed=False)
        released = member.state is MemberState.UNRELEASED_PARTITIONS and not any(
            partition not in member.assigned and self._roster.is_held(partition)
            for partition in self.targets.get(member.id, ())
        )
        if member.epoch < self.target_epoch or member.state is MemberState.UNREVOKED_PARTITIONS or released:
            self._expect_join(member)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def classic_leave(self, members: Sequence[LeavingMember], now_ms: int) -> tuple[ErrorCode, ...]:
        """Remove members of either protocol; return one result for each."""
        self._now_ms = now_ms
        results: list[ErrorCode] = []
        leaving: dict[str, ConsumerGroupMember] = {}
        for member_id, instance_id in members:
            known = self._roster.static(instance_id)
            by_administrator = instance_id is not None and member_id == NO_MEMBER and known is not None
            try:
                member = present_member(
                    self._roster, known.id if by_administrator and known else member_id, instance_id
                )
            except HeartbeatRefused as refused:
                results.append(refused.code)
            else:
                results.append(ErrorCode.NONE)
                leaving[member.id] = member
        if leaving:
            self._remove(*leaving.values())
        return tuple(results)

    # Joining

    def _join(self, request: JoinRequest, make_id: Callable[[], str]) -> JoinReply:
        is_unnamed = request.member_id == NO_MEMBER
        member_id = make_id() if is_unnamed else request.member_id
        speaks = any(self._roster.all_classic_speak(name) for name, _ in request.protocols)
        if request.protocol_type != PROTOCOL_TYPE or not speaks:
            raise HeartbeatRefused(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported."
            )
        if is_unnamed and request.instance_id is None and request.needs_known_id:
            return JoinReply(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
        known = self._joining(member_id, request.instance_id, is_unnamed=is_unnamed)
        said = decode_subscription(request.protocols[0][1])
        member = _updated(in_place_of(known, member_id), request, said)
        if known is not None and known.instance_id is not None and self._is_last(known):
            after = self._downgrade_with(known, member, said)
        else:
            after = self._take_in(known, member, self._identified(said.owned))
            self.timers += (
                Disarm(TimerKey(TimerKind.JOIN, after.id)),
                Arm(TimerKey(TimerKind.SYNC, after.id), request.rebalance_timeout_ms),
            )
        return JoinReply(
            member_id=after.id,
            generation=after.epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=request.protocols[0][0],
        )

    def _joining(
        self, member_id: str, instance_id: str | None, *, is_unnamed: bool
    ) -> ConsumerGroupMember | None:
        """Return the member that joins again, or that a static one replaces; None if it is new."""
        if instance_id is None:
            return self.members.get(member_id)
        if is_unnamed:
            return self._roster.static(instance_id)
        return present_member(self._roster, member_id, instance_id)

    def _downgrade_with(
        self, known: ConsumerGroupMember, member: ConsumerGroupMember, said: Subscription
    ) -> ConsumerGroupMember:
        """Let a classic member take the place of the last one of the other protocol, a static one.

        With the same subscription it also keeps the partitions, and the group does not rebalance.
        """
        same = known.subscription == member.subscription
        self._replace(known, member)
        self._roster.put(member)
        self.epoch += not same
        is_stale = self.epoch > self.target_epoch
        after = member if is_stale else self._reconcile(known, member, self._identified(said.owned))
        self.should_downgrade = True
        self.rebalances_after_downgrade = is_stale
        return after

    # Downgrade

    def _remove(self, *members: ConsumerGroupMember) -> None:
        """Remove members. If only classic ones are left, their epoch becomes the group's generation."""
        left = len(self.members) - len(members)
        if left and self._roster.all_classic_but(*members) and self._may_downgrade(left):
            for member in members:
                self._drop(member)
            self.should_downgrade = True
        else:
            super()._remove(*members)

    def _is_last(self, member: ConsumerGroupMember) -> bool:
        """Return whether the group becomes classic without that member."""
        is_last = member.classic is None and self._roster.all_classic_but(member)
        return is_last and self._may_downgrade(len(self.members))

    def _may_downgrade(self, size: int) -> bool:
        return self._config.may_downgrade and size <= self._config.max_size

    # Small steps

    def _classic(
        self, generation: int, member_id: str, instance_id: str | None
    ) -> tuple[ConsumerGroupMember, ClassicMembership]:
        """Return a classic member that is in this generation, which is its epoch."""
        member = present_member(self._roster, member_id, instance_id)
        if member.classic is None:
            raise HeartbeatRefused(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol."
            )
        if member.epoch != generation:
            raise HeartbeatRefused(
                ErrorCode.ILLEGAL_GENERATION,
                f"Member {member_id} is in generation {generation}, the group knows it in {member.epoch}.",
            )
        return member, member.classic

    def _expect_join(self, member: ConsumerGroupMember) -> None:
        """Give a member that must join again its rebalance timeout for that, once."""
        self.timers.append(
            Arm(TimerKey(TimerKind.JOIN, member.id), member.rebalance_timeout_ms, only_if_absent=True)
        )

    def _identified(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicIdPartition]:
        return frozenset(
            (topic_id, number)
            for topic, number in partitions
            if (topic_id := self._topics.id_of(topic)) is not None
        )

    def _named(self, partitions: Iterable[TopicIdPartition]) -> list[TopicPartition]:
        return [
            TopicPartition(name, number)
            for topic_id, number in partitions
            if (name := self._topics.name_of(topic_id)) is not None
        ]


def _updated(member: ConsumerGroupMember, request: JoinRequest, said: Subscription) -> ConsumerGroupMember:
    """Return the member with what it says as it joins."""
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack=member.rack if said.rack is None else said.rack,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=tuple(sorted(set(said.topics))),
        pattern=None,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicMembership(request.session_timeout_ms, request.protocols),
    )
