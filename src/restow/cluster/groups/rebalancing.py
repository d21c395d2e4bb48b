"""The steps of a rebalance: it starts and completes, members leave, generations are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.cluster.groups.effects import (
    JOIN_TIMER,
    SYNC_TIMER,
    Arm,
    Disarm,
    Reply,
    Save,
    SavePurpose,
    TimerKey,
    TimerKind,
)
from restow.cluster.groups.records import GroupValue
from restow.cluster.groups.requests import NO_GENERATION, NO_LEADER, NO_MEMBER, JoinReply, SyncReply
from restow.cluster.groups.roster import Roster
from restow.cluster.groups.states import GroupState, IllegalTransition
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from restow.cluster.groups.config import GroupConfig
    from restow.cluster.groups.effects import Effect, Ticket
    from restow.cluster.groups.requests import JoinRequest
    from restow.cluster.groups.roster import ClassicGroupMember

# While all members are static and away, check no sooner than this, however short their timeouts.
_ALL_AWAY_MS = 1_000


@frozen
class _Replacement:
    """A static member's new id that is being written, and the old one in case that fails."""

    ticket: Ticket
    generation: int
    old_id: str
    new_id: str
    old_leader: str
    old_protocols: tuple[tuple[str, bytes], ...]
    old_timeouts_ms: tuple[int, int]
    can_skip_assignment: bool


class Rebalancing:
    """A group's members, generation and state, and the steps between generations."""

    def __init__(self, group_id: str, config: GroupConfig, make_id: Callable[[], str], now_ms: int) -> None:
        self.id = group_id
        self.state = GroupState.EMPTY
        self.state_since_ms: int | None = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.roster = Roster()
        self._config = config
        self._make_id = make_id
        self._now_ms = now_ms
        self._effects: list[Effect] = []
        self._not_synced: set[str] = set()
        self._initial_time_left_ms: int | None = None
        self._somebody_new = False
        self._saves = 0
        self._saving_generation = NO_GENERATION
        self._replacements: dict[int, _Replacement] = {}

    def session_timer(self, member_id: str) -> TimerKey:
        """Return the timer of a member's session, or of an id that has not joined yet."""
        return TimerKey(TimerKind.SESSION, member_id)

    # Rebalances

    def _rebalance(self) -> None:
        """Start a rebalance, unless one is in progress.

        The first members of an empty group wait a while for others, so that a starting group does not
        rebalance with each of them.
        """
        if not self.state.can_rebalance:
            return
        if self.state is GroupState.COMPLETING_REBALANCE:
            self._withhold_assignments(ErrorCode.REBALANCE_IN_PROGRESS)
        self._effects.append(Disarm(SYNC_TIMER))
        self._not_synced.clear()
        delay_ms = self.roster.rebalance_timeout_ms
        self._initial_time_left_ms = None
        if self.state is GroupState.EMPTY:
            self._somebody_new = False
            self._initial_time_left_ms = max(delay_ms - self._config.initial_rebalance_delay_ms, 0)
            delay_ms = self._config.initial_rebalance_delay_ms
        self._become(GroupState.PREPARING_REBALANCE)
        if delay_ms <= 0:
            self._time_to_join_is_up()
        else:
            self._effects.append(Arm(JOIN_TIMER, delay_ms))

    def _time_to_join_is_up(self) -> None:
        """Complete the generation, unless a starting group still grows and has time left."""
        left_ms = self._initial_time_left_ms
        if left_ms and self._somebody_new:
            self._somebody_new = False
            delay_ms = min(self._config.initial_rebalance_delay_ms, left_ms)
            self._initial_time_left_ms = left_ms - delay_ms
            self._effects.append(Arm(JOIN_TIMER, delay_ms))
        else:
            self._complete_join()

    def _complete_join_if_all_joined(self) -> None:
        starting = self._initial_time_left_ms is not None
        if self.state is GroupState.PREPARING_REBALANCE and not starting and self.roster.all_joined:
            self._complete_join()

    def _complete_join(self) -> None:
        """Start the generation with the joined members. Static members may be away for a while."""
        for member in self.roster:
            if member.join_ticket is None and member.instance_id is None:
                self._effects.append(Disarm(self.session_timer(member.id)))
                self.roster.remove(member)
        self._initial_time_left_ms = None
        if not self.roster.elect() and self.roster.members:
            self._effects.append(Arm(JOIN_TIMER, max(self.roster.rebalance_timeout_ms, _ALL_AWAY_MS)))
            return
        self._effects.append(Disarm(JOIN_TIMER))
        self.generation += 1
        if not self.roster.members:
            self.protocol_name = None
            self._become(GroupState.EMPTY)
            self._save(SavePurpose.NOBODY_LEFT, {})
            return
        self.protocol_name = self.roster.vote()
        self._become(GroupState.COMPLETING_REBALANCE)
        self._not_synced = set(self.roster.members)
        for member in self.roster:
            member.is_new = False
            self._answer_join(member, self._join_reply(member))
            self._heard_of(member)
        self._effects.append(Arm(SYNC_TIMER, self.roster.rebalance_timeout_ms))

    def _remove(self, member: ClassicGroupMember) -> None:
        """Remove a member. If it waits, it gets an error and may come back as a new one."""
        self._answer_join(member, JoinReply(error=ErrorCode.UNKNOWN_MEMBER_ID, member_id=NO_MEMBER))
        self._answer_sync(member, SyncReply(error=ErrorCode.UNKNOWN_MEMBER_ID))
        self._effects.append(Disarm(self.session_timer(member.id)))
        self._not_synced.discard(member.id)
        self.roster.remove(member)
        self._rebalance()

    # Assignments

    def _assignment_saved(self, value: GroupValue, error: ErrorCode) -> None:
        if self.state is not GroupState.COMPLETING_REBALANCE or value.generation != self.generation:
            return
        if error is not ErrorCode.NONE:
            self._withhold_assignments(error)
            self._rebalance()
            return
        for written in value.members:
            if member := self.roster.members.get(written.member_id):
                member.assignment = written.assignment
        self._become(GroupState.STABLE)
        for member in self.roster:
            if member.sync_ticket is not None:
                self._answer_sync(member, self._sync_reply(member))
                self._heard_of(member)

    def _withhold_assignments(self, error: ErrorCode) -> None:
        """Give no member an assignment in this generation."""
        for member in self.roster:
            member.assignment = b""
            if member.sync_ticket is not None:
                self._answer_sync(member, SyncReply(error=error))
                self._heard_of(member)

    # Static members

    def _replace(self, member: ClassicGroupMember, new_id: str, request: JoinRequest, ticket: Ticket) -> None:
        """Give a returning static member its new id; users of the old id are fenced.

        In a stable group it takes over the assignment without a rebalance, unless it would change the
        protocol.
        """
        fenced = ErrorCode.FENCED_INSTANCE_ID
        self._answer_join(member, JoinReply(error=fenced, member_id=member.id))
        self._answer_sync(member, SyncReply(error=fenced))
        replacement = _Replacement(
            ticket=ticket,
            generation=self.generation,
            old_id=member.id,
            new_id=new_id,
            old_leader=self.roster.leader or NO_LEADER,
            old_protocols=member.protocols,
            old_timeouts_ms=(member.session_timeout_ms, member.rebalance_timeout_ms),
            can_skip_assignment=request.can_skip_assignment,
        )
        self._rename(member, new_id)
        self._update(member, request, ticket)
        if self.state is GroupState.STABLE and self.roster.vote() == self.protocol_name:
            number = self._save(
                SavePurpose.STATIC_REPLACEMENT, {known.id: known.assignment for known in self.roster}
            )
            self._replacements[number] = replacement
        else:
            self._rebalance()

    def _replacement_saved(self, replacement: _Replacement, error: ErrorCode) -> None:
        """Continue the member under its new id. If a rebalance has started, that answers it."""
        member = self.roster.members.get(replacement.new_id)
        if (
            member is None
            or self.state is not GroupState.STABLE
            or self.generation != replacement.generation
            or member.join_ticket != replacement.ticket
        ):
            return
        if error is not ErrorCode.NONE:
            self.roster.change_protocols(member, replacement.old_protocols)
            member.session_timeout_ms, member.rebalance_timeout_ms = replacement.old_timeouts_ms
            self._answer_join(member, JoinReply(error=error, member_id=NO_MEMBER))
            self._rename(member, replacement.old_id)
        else:
            skip = replacement.can_skip_assignment
            self._answer_join(member, self._join_reply(member, skip=skip, old_leader=replacement.old_leader))
        self._heard_of(member)

    def _rename(self, member: ClassicGroupMember, new_id: str) -> None:
        self._effects.append(Disarm(self.session_timer(member.id)))
        self._not_synced.discard(member.id)
        self.roster.rename(member, new_id)
        self._heard_of(member)

    # Small steps

    def _become(self, state: GroupState) -> None:
        if not self.state.may_become(state):
            raise IllegalTransition(f"group {self.id!r} cannot go from {self.state.value} to {state.value}")
        self.state = state
        self.state_since_ms = self._now_ms

    def _update(self, member: ClassicGroupMember, request: JoinRequest, ticket: Ticket) -> None:
        """Handle a member that joins again. An earlier waiting join is dropped."""
        self._answer_join(member, JoinReply(error=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.id))
        self.roster.change_protocols(member, request.protocols)
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.client_id = request.client_id
        member.client_host = request.client_host
        self.roster.wait_to_join(member, ticket)

    def _heard_of(self, member: ClassicGroupMember) -> None:
        self._effects.append(Arm(self.session_timer(member.id), member.session_timeout_ms))

    def _join_reply(
        self, member: ClassicGroupMember, *, skip: bool = False, old_leader: str | None = None
    ) -> JoinReply:
        """Build the join response of the current generation for a member.

        With an `old_leader`, the member replaces it in an assigned generation. If it leads, it must not
        assign again: the response says so if its client understands that, and otherwise names its predecessor
        as leader.
        """
        leads = member.id == self.roster.leader
        hidden = leads and old_leader is not None and not skip
        return JoinReply(
            member_id=member.id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=(old_leader if hidden else self.roster.leader) or NO_LEADER,
            skip_assignment=leads and skip,
            members=self.roster.as_joined(self.protocol_name or "") if leads and not hidden else (),
        )

    def _sync_reply(self, member: ClassicGroupMember) -> SyncReply:
        return SyncReply(
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            assignment=member.assignment,
        )

    def _answer(self, ticket: Ticket, reply: JoinReply | SyncReply) -> None:
        self._effects.append(Reply(ticket, reply))

    def _answer_join(self, member: ClassicGroupMember, reply: JoinReply) -> None:
        if member.join_ticket is not None:
            self._answer(member.join_ticket, reply)
            self.roster.wait_to_join(member, None)

    def _answer_sync(self, member: ClassicGroupMember, reply: SyncReply) -> None:
        if member.sync_ticket is not None:
            self._answer(member.sync_ticket, reply)
            member.sync_ticket = None

    def _save(self, purpose: SavePurpose, assignments: Mapping[str, bytes]) -> int:
        """Write the group as it is now, with these assignments."""
        self._saves += 1
        self._effects.append(Save(self._saves, purpose, self.as_value(assignments)))
        return self._saves

    def as_value(self, assignments: Mapping[str, bytes]) -> GroupValue:
        """Return the group's record, with these assignments."""
        name = self.protocol_name or ""
        return GroupValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol_name=self.protocol_name,
            leader=self.roster.leader,
            state_since_ms=self.state_since_ms,
            members=tuple(member.as_value(name, assignments.get(member.id, b"")) for member in self.roster),
        )

    def _taken(self) -> tuple[Effect, ...]:
        effects = tuple(self._effects)
        self._effects.clear()
        return effects
