"""Random schedules of members, time and writes on a bare group.

Every ticket is answered once, generations only grow, every member gets the assignment that its leader sent,
and in the end no request waits and the group is empty.
"""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from restow.cluster.groups import GroupConfig, GroupState, JoinReply, LeavingMember, SyncReply, SyncRequest
from restow.cluster.groups.effects import (
    JOIN_TIMER,
    SYNC_TIMER,
    Arm,
    Disarm,
    Effect,
    Reply,
    Save,
    TimerKey,
    TimerKind,
)
from restow.cluster.groups.group import ClassicGroup
from restow.wire.error_codes import ErrorCode
from tests.unit.groups.workbench import joining

INSTANCES = st.sampled_from(["x", "y"])
PROTOCOLS = st.sampled_from(
    [(("range", b"r"),), (("range", b"r2"), ("sticky", b"s")), (("sticky", b"s"), ("range", b"r"))]
)
ROUND = st.sampled_from([100, 1_000, 2_000, 2_000, 7_000, 31_000, 61_000])


class Someone(NamedTuple):
    """A member's own view."""

    member_id: str
    instance_id: str | None


class GroupMachine(RuleBasedStateMachine):
    """Plays the coordinator: keeps tickets, timers and writes; hypothesis chooses the events."""

    known = Bundle("known")

    def __init__(self) -> None:
        super().__init__()
        ids = count(1)
        self.now_ms = 0
        config = GroupConfig(max_size=5, initial_rebalance_delay_ms=1_000)
        self.group = ClassicGroup("crew", config, lambda: str(next(ids)), 0)
        self.tickets = count(1)
        self.waiting: dict[int, Someone] = {}
        self.timers: dict[TimerKey, int] = {}
        self.saves: list[Save] = []
        self.generation_of: dict[str, int] = {}
        self.told: dict[int, tuple[str, ...]] = {}
        self.sent: dict[int, dict[str, bytes]] = {}
        self.highest = 0
        self.syncing: dict[int, int] = {}

    # Playing the coordinator

    def apply(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case Reply(ticket, reply):
                    self.answered(ticket, self.waiting.pop(ticket), reply)
                case Arm(timer, delay_ms):
                    assert delay_ms > 0
                    self.timers[timer] = self.now_ms + delay_ms
                case Disarm(timer):
                    self.timers.pop(timer, None)
                case Save():
                    self.saves.append(effect)

    def answered(self, ticket: int, who: Someone, reply: JoinReply | SyncReply) -> None:
        if reply.error is not ErrorCode.NONE:
            return
        if isinstance(reply, JoinReply):
            assert reply.generation == self.group.generation
            self.generation_of[reply.member_id] = reply.generation
            if reply.members and not reply.skip_assignment:
                assert reply.leader == reply.member_id
                self.told[reply.generation] = tuple(member.member_id for member in reply.members)
            if who.instance_id is not None and reply.generation in self.sent:
                taken_over = self.group.roster.members[reply.member_id].assignment
                self.sent[reply.generation].setdefault(reply.member_id, taken_over)
        else:
            generation = self.syncing[ticket]
            assert reply.assignment == self.sent[generation].get(who.member_id, b"")

    def ticket(self, who: Someone) -> int:
        ticket = next(self.tickets)
        self.waiting[ticket] = who
        return ticket

    # Events

    @rule(target=known, protocols=PROTOCOLS, instance=st.none() | INSTANCES, needs_id=st.booleans())
    def come(self, protocols: tuple[tuple[str, bytes], ...], instance: str | None, needs_id: bool) -> Someone:
        before = set(self.group.roster.members) | self.group.roster.pending
        request = joining(
            instance_id=instance,
            protocols=protocols,
            needs_known_id=needs_id and instance is None,
            can_skip_assignment=needs_id,
        )
        self.apply(self.group.join(request, self.ticket(Someone("", instance)), self.now_ms))
        new = (set(self.group.roster.members) | self.group.roster.pending) - before
        return Someone(new.pop() if new else "nobody", instance)

    @rule(who=known, protocols=PROTOCOLS)
    def join_again(self, who: Someone, protocols: tuple[tuple[str, bytes], ...]) -> None:
        request = joining(who.member_id, instance_id=who.instance_id, protocols=protocols)
        self.apply(self.group.join(request, self.ticket(who), self.now_ms))

    @rule(who=known)
    def sync(self, who: Someone) -> None:
        generation = self.generation_of.get(who.member_id, -1)
        shares: dict[str, bytes] = {}
        if self.group.roster.leader == who.member_id and generation == self.group.generation:
            shares = {member: f"{generation}:{member}".encode() for member in self.told[generation]}
            if self.group.state is GroupState.COMPLETING_REBALANCE:
                self.sent.setdefault(generation, shares)
        ticket = self.ticket(who)
        self.syncing[ticket] = generation
        request = SyncRequest(
            member_id=who.member_id,
            instance_id=who.instance_id,
            generation=generation,
            assignments=tuple(shares.items()),
        )
        self.apply(self.group.sync(request, ticket, self.now_ms))

    @initialize(
        target=known,
        people=st.lists(st.tuples(PROTOCOLS, st.sampled_from([None, "x", "y"])), min_size=1, max_size=4),
    )
    def begin(
        self, people: list[tuple[tuple[tuple[str, bytes], ...], str | None]]
    ) -> MultipleResults[Someone]:
        came = [self.come(protocols, instance, needs_id=False) for protocols, instance in people]
        self.settle_down()
        return multiple(*came)

    @rule()
    def settle_down(self) -> None:
        """Act like working clients: the group becomes stable, unless it is empty."""
        for _ in range(2):
            self.everybody_joins()
            self.wait(2_000)
            self.everybody_syncs(writing=True)

    @rule(protocols=PROTOCOLS, needs_id=st.booleans())
    def static_member_comes_back(self, protocols: tuple[tuple[str, bytes], ...], needs_id: bool) -> None:
        for instance in tuple(self.group.roster.static_ids):
            self.come(protocols, instance, needs_id)

    @rule()
    def everybody_joins(self) -> None:
        for member in self.group.roster:
            if member.join_ticket is None:
                self.join_again(Someone(member.id, member.instance_id), member.protocols)

    @rule(writing=st.booleans())
    def everybody_syncs(self, writing: bool) -> None:
        for member in self.group.roster:
            if member.id in self.generation_of and member.sync_ticket is None:
                self.sync(Someone(member.id, member.instance_id))
        while writing and self.saves:
            self.write(ErrorCode.NONE)

    @rule(who=known)
    def beat(self, who: Someone) -> None:
        generation = self.generation_of.get(who.member_id, -1)
        error, effects = self.group.heartbeat(generation, who.member_id, who.instance_id, self.now_ms)
        self.apply(effects)
        if error is ErrorCode.NONE:
            assert generation == self.group.generation

    @rule(who=consumes(known))
    def leave(self, who: Someone) -> None:
        (error,), effects = self.group.leave([LeavingMember(*who)], self.now_ms)
        self.apply(effects)
        assert who.member_id not in self.group.roster.members or error is not ErrorCode.NONE

    @precondition(lambda self: self.saves)
    @rule(error=st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE]))
    def write(self, error: ErrorCode) -> None:
        self.apply(self.group.saved(self.saves.pop(0), error, self.now_ms))

    @rule(passing_ms=ROUND)
    def wait(self, passing_ms: int) -> None:
        end_ms = self.now_ms + passing_ms
        while due := [(at_ms, timer) for timer, at_ms in self.timers.items() if at_ms <= end_ms]:
            self.now_ms, timer = min(due, key=lambda each: each[0])
            del self.timers[timer]
            self.apply(self.group.fired(timer, self.now_ms))
        self.now_ms = end_ms

    # Invariants

    @invariant()
    def generations_only_grow(self) -> None:
        assert self.group.generation >= self.highest
        self.highest = self.group.generation

    @invariant()
    def somebody_leads_and_instances_are_unique(self) -> None:
        roster = self.group.roster
        assert (roster.leader in roster.members) == bool(roster.members)
        assert roster.static_ids == {it.instance_id: it.id for it in roster if it.instance_id is not None}
        assert not roster.pending & set(roster.members)
        assert roster.joined == sum(member.join_ticket is not None for member in roster)
        for name in ("range", "sticky"):
            assert roster.all_speak(name) == all(name in member.protocol_names for member in roster)
        assert all(name == member.id for name, member in roster.members.items())

    @invariant()
    def whoever_waits_is_waited_for(self) -> None:
        group = self.group
        held = [ticket for it in group.roster for ticket in (it.join_ticket, it.sync_ticket) if ticket]
        assert sorted(held) == sorted(self.waiting)
        for member in group.roster:
            if member.join_ticket is not None and group.state is not GroupState.PREPARING_REBALANCE:
                assert group.state is GroupState.STABLE
                assert self.saves
            if member.sync_ticket is not None:
                assert group.state is GroupState.COMPLETING_REBALANCE

    @invariant()
    def nothing_waits_without_a_timer(self) -> None:
        group = self.group
        assert (JOIN_TIMER in self.timers) == (group.state is GroupState.PREPARING_REBALANCE)
        if group.state is GroupState.COMPLETING_REBALANCE:
            assert SYNC_TIMER in self.timers or self.saves
        sessions = {timer.member_id for timer in self.timers if timer.kind is TimerKind.SESSION}
        assert sessions <= set(group.roster.members) | group.roster.pending
        assert group.roster.pending <= sessions
        for member in group.roster:
            assert member.id in sessions or member.is_waiting

    @invariant()
    def a_stable_group_has_the_assignment_of_its_leader(self) -> None:
        if self.group.state is GroupState.STABLE:
            mine = self.sent[self.group.generation]
            for member in self.group.roster:
                assert member.assignment == mine.get(member.id, member.assignment)

    def teardown(self) -> None:
        """Check that without further events no request waits and no member is left."""
        for _ in range(12):
            while self.saves:
                self.write(ErrorCode.NONE)
            self.wait(61_000)
        assert not self.waiting
        assert self.group.state is GroupState.EMPTY
        assert not self.timers


GroupMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestSchedules = GroupMachine.TestCase
