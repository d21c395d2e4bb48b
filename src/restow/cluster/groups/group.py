"""One group of the classic protocol: takes events and the time, returns effects. Nothing waits in here.

Requests that cannot be answered at once leave a ticket, which a later event answers: join tickets when the
join timer fires at the latest, sync tickets when the sync timer does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.groups.effects import Arm, Disarm, SavePurpose, TimerKind
from restow.cluster.groups.rebalancing import Rebalancing
from restow.cluster.groups.requests import NO_MEMBER, JoinReply, SyncReply
from restow.cluster.groups.roster import ClassicGroupMember
from restow.cluster.groups.states import GroupState
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from restow.cluster.groups.config import GroupConfig
    from restow.cluster.groups.effects import Effect, Save, Ticket, TimerKey
    from restow.cluster.groups.records import GroupValue
    from restow.cluster.groups.requests import CommitRequest, JoinRequest, LeavingMember, SyncRequest


class ClassicGroup(Rebalancing):
    """A group with one method per event."""

    @classmethod
    def written(
        cls, group_id: str, value: GroupValue, config: GroupConfig, make_id: Callable[[], str], now_ms: int
    ) -> ClassicGroup:
        """Restore a group from its record: stable if it has members. `resume` starts its timers."""
        group = cls(group_id, config, make_id, now_ms)
        group.protocol_type = value.protocol_type or None
        group.protocol_name = value.protocol_name
        group.generation = value.generation
        group.state_since_ms = value.state_since_ms
        for member in value.members:
            group.roster.add(ClassicGroupMember.written(member, value.protocol_name or ""))
        if value.leader in group.roster.members:
            group.roster.leader = value.leader
        if value.members:
            group.state = GroupState.STABLE
        return group

    @classmethod
    def taken_over(
        cls,
        group_id: str,
        protocol_type: str,
        generation: int,
        members: Iterable[ClassicGroupMember],
        config: GroupConfig,
        make_id: Callable[[], str],
        now_ms: int,
    ) -> ClassicGroup:
        """Return a stable group with members that were in a group of another protocol."""
        group = cls(group_id, config, make_id, now_ms)
        group.protocol_type, group.generation = protocol_type, generation
        for member in members:
            group.roster.add(member)
        group.protocol_name = group.roster.vote()
        group.state = GroupState.STABLE
        return group

    # Events

    def rebalance(self, now_ms: int) -> tuple[Effect, ...]:
        """Start a rebalance."""
        self._now_ms = now_ms
        self._rebalance()
        return self._taken()

    def resume(self, now_ms: int) -> tuple[Effect, ...]:
        """Start to coordinate the group here. Each member gets a full session."""
        self._now_ms = now_ms
        for member in self.roster:
            self._heard_of(member)
        if len(self.roster) > self._config.max_size:
            self._rebalance()
        return self._taken()

    def unload(self, now_ms: int, error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> tuple[Effect, ...]:
        """Stop to coordinate the group here. Waiting members must look for another coordinator."""
        self._now_ms = now_ms
        for member in self.roster:
            self._answer_join(member, JoinReply(error=error, member_id=member.id))
            self._answer_sync(member, SyncReply(error=error))
        self._become(GroupState.DEAD)
        return self._taken()

    def join(self, request: JoinRequest, ticket: Ticket, now_ms: int) -> tuple[Effect, ...]:
        """Handle a request to be in the next generation."""
        self._now_ms = now_ms
        refusal = self._refusal_to_join(request)
        if refusal is not None:
            self._answer(ticket, JoinReply(error=refusal, member_id=request.member_id))
        elif request.member_id == NO_MEMBER:
            self._join_for_the_first_time(request, ticket)
        elif request.member_id in self.roster.pending and request.instance_id is None:
            self._add(request.member_id, request, ticket)
        else:
            self._rejoin(request, ticket)
        self._complete_join_if_all_joined()
        return self._taken()

    def sync(self, request: SyncRequest, ticket: Ticket, now_ms: int) -> tuple[Effect, ...]:
        """Handle a member's request for its assignment; the leader sends everybody's."""
        self._now_ms = now_ms
        error = self._sync_error(request)
        if error is not None:
            self._answer(ticket, SyncReply(error=error))
            return self._taken()
        member = self.roster.members[request.member_id]
        self._not_synced.discard(member.id)
        if self.state is GroupState.STABLE:
            self._answer(ticket, self._sync_reply(member))
            self._heard_of(member)
            return self._taken()
        self._answer_sync(member, SyncReply(error=ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync_ticket = ticket
        if member.id == self.roster.leader and self._saving_generation != self.generation:
            self._saving_generation = self.generation
            self._save(SavePurpose.ASSIGNMENT, dict(request.assignments))
        return self._taken()

    def heartbeat(
        self, generation: int, member_id: str, instance_id: str | None, now_ms: int
    ) -> tuple[ErrorCode, tuple[Effect, ...]]:
        """Handle a heartbeat. The response tells the member whether to join again."""
        self._now_ms = now_ms
        error = self._generation_error(generation, member_id, instance_id)
        if error is not None:
            return error, ()
        self._heard_of(self.roster.members[member_id])
        preparing = self.state is GroupState.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE, self._taken()

    def leave(
        self, members: Sequence[LeavingMember], now_ms: int
    ) -> tuple[tuple[ErrorCode, ...], tuple[Effect, ...]]:
        """Remove members; return one result for each."""
        self._now_ms = now_ms
        results = tuple(self._leave(leaving) for leaving in members)
        self._complete_join_if_all_joined()
        return results, self._taken()

    def commit(self, request: CommitRequest, now_ms: int) -> tuple[ErrorCode, tuple[Effect, ...]]:
        """Return whether the offsets may be written. A commit counts as a heartbeat."""
        self._now_ms = now_ms
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, ()
        nameless = request.member_id == NO_MEMBER and request.instance_id is None
        in_transaction = request.producer is not None
        if request.generation < 0 and (nameless or self.state is GroupState.EMPTY):
            refused = self.state is not GroupState.EMPTY and not in_transaction
            return ErrorCode.UNKNOWN_MEMBER_ID if refused else ErrorCode.NONE, ()
        error = self._generation_error(request.generation, request.member_id, request.instance_id)
        if error is None and self.state is GroupState.COMPLETING_REBALANCE and not in_transaction:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error is not None:
            return error, ()
        self._heard_of(self.roster.members[request.member_id])
        return ErrorCode.NONE, self._taken()

    def fired(self, timer: TimerKey, now_ms: int) -> tuple[Effect, ...]:
        """Handle a timer that has fired."""
        self._now_ms = now_ms
        if timer.kind is TimerKind.JOIN and self.state is GroupState.PREPARING_REBALANCE:
            self._time_to_join_is_up()
        elif timer.kind is TimerKind.SYNC:
            for member_id in sorted(self._not_synced):
                if member := self.roster.members.get(member_id):
                    self._remove(member)
        elif timer.kind is TimerKind.SESSION:
            self.roster.pending.discard(timer.member_id)
            member = self.roster.members.get(timer.member_id)
            if member is not None and (member.is_new or not member.is_waiting):
                self._remove(member)
        self._complete_join_if_all_joined()
        return self._taken()

    def saved(self, save: Save, error: ErrorCode, now_ms: int) -> tuple[Effect, ...]:
        """Handle the result of a write. The group may have changed meanwhile."""
        self._now_ms = now_ms
        if save.purpose is SavePurpose.ASSIGNMENT:
            self._assignment_saved(save.value, error)
        elif save.purpose is SavePurpose.STATIC_REPLACEMENT:
            self._replacement_saved(self._replacements.pop(save.number), error)
        self._complete_join_if_all_joined()
        return self._taken()

    # Joining

    def _refusal_to_join(self, request: JoinRequest) -> ErrorCode | None:
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not self._has_room_for(request.member_id):
            if member := self.roster.members.get(request.member_id):
                self._remove(member)
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if not self._speaks_with(request):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return None

    def _has_room_for(self, member_id: str) -> bool:
        member = self.roster.members.get(member_id)
        if self.state is GroupState.PREPARING_REBALANCE:
            waits = member is not None and member.join_ticket is not None
            return waits or self.roster.joined < self._config.max_size
        return member is not None or len(self.roster) < self._config.max_size

    def _speaks_with(self, request: JoinRequest) -> bool:
        names = {name for name, _ in request.protocols}
        if not self.roster.members:
            return bool(request.protocol_type and names)
        return request.protocol_type == self.protocol_type and any(map(self.roster.all_speak, names))

    def _join_for_the_first_time(self, request: JoinRequest, ticket: Ticket) -> None:
        if request.instance_id is not None:
            member_id = f"{request.instance_id}-{self._make_id()}"
            known_as = self.roster.static_ids.get(request.instance_id)
            if known_as is None:
                self._add(member_id, request, ticket)
            else:
                self._replace(self.roster.members[known_as], member_id, request, ticket)
            return
        member_id = f"{request.client_id}-{self._make_id()}"
        if request.needs_known_id:
            self.roster.pending.add(member_id)
            self._effects.append(Arm(self.session_timer(member_id), request.session_timeout_ms))
            self._answer(ticket, JoinReply(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))
        else:
            self._add(member_id, request, ticket)

    def _add(self, member_id: str, request: JoinRequest, ticket: Ticket) -> None:
        """Add a member. Before its response it cannot send heartbeats, so it gets more than a session."""
        if not self.roster.members:
            self.protocol_type = request.protocol_type
        if self.state is GroupState.PREPARING_REBALANCE and self.generation == 0:
            self._somebody_new = True
        member = ClassicGroupMember.joining(member_id, request)
        member.join_ticket = ticket
        self.roster.add(member)
        self._effects.append(Arm(self.session_timer(member_id), self._config.new_member_join_timeout_ms))
        self._rebalance()

    def _rejoin(self, request: JoinRequest, ticket: Ticket) -> None:
        """Handle a member that joins again. A leader, or a changed member, starts a rebalance.

        Otherwise the member has only missed the response, and gets it again.
        """
        error = self._member_error(request.member_id, request.instance_id)
        if error is not None:
            self._answer(ticket, JoinReply(error=error, member_id=request.member_id))
            return
        member = self.roster.members[request.member_id]
        settled = self.state is GroupState.COMPLETING_REBALANCE or (
            self.state is GroupState.STABLE and member.id != self.roster.leader
        )
        if settled and member.protocols == request.protocols:
            self._answer(ticket, self._join_reply(member))
        else:
            self._update(member, request, ticket)
            self._rebalance()

    # Leaving

    def _leave(self, leaving: LeavingMember) -> ErrorCode:
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        member_id, instance_id = leaving
        if member_id == NO_MEMBER and instance_id is not None:
            member_id = self.roster.static_ids.get(instance_id, NO_MEMBER)
        if member_id in self.roster.pending and instance_id is None:
            self.roster.pending.discard(member_id)
            self._effects.append(Disarm(self.session_timer(member_id)))
            return ErrorCode.NONE
        error = self._member_error(member_id, instance_id)
        if error is not None:
            return ErrorCode.UNKNOWN_MEMBER_ID if member_id == NO_MEMBER else error
        self._remove(self.roster.members[member_id])
        return ErrorCode.NONE

    # Refusals

    def _member_error(self, member_id: str, instance_id: str | None) -> ErrorCode | None:
        if instance_id is not None:
            known_as = self.roster.static_ids.get(instance_id)
            if known_as is not None and known_as != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            return ErrorCode.UNKNOWN_MEMBER_ID if known_as is None else None
        return None if member_id in self.roster.members else ErrorCode.UNKNOWN_MEMBER_ID

    def _generation_error(self, generation: int, member_id: str, instance_id: str | None) -> ErrorCode | None:
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._member_error(member_id, instance_id)
        if error is None and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    def _sync_error(self, request: SyncRequest) -> ErrorCode | None:
        error = self._generation_error(request.generation, request.member_id, request.instance_id)
        if error is not None:
            return error
        if request.protocol_type not in (None, self.protocol_type):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if request.protocol_name not in (None, self.protocol_name):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is GroupState.PREPARING_REBALANCE else None
