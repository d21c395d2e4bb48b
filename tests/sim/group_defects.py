"""Deliberate defects of the group coordinator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from restow.cluster.broker import offsets_journal
from restow.cluster.groups.group import ClassicGroup
from restow.cluster.groups.rebalancing import Rebalancing
from restow.cluster.groups.shard import Shard
from restow.wire.error_codes import ErrorCode
from tests.sim.defects import Defects, Patch, wrap

GROUPS = Defects("groups")


@GROUPS.add("A commit of an old generation is accepted.", "accepted a commit of generation")
def commit_of_an_old_generation_accepted(patch: Patch) -> None:
    def made(commit: Any) -> Any:
        def accepted(self: Any, request: Any, now_ms: int) -> Any:
            if request.generation >= 0 and request.member_id in self.roster.members:
                request = replace(request, generation=self.generation)
            return commit(self, request, now_ms)

        return accepted

    wrap(patch, ClassicGroup, "commit", made)


@GROUPS.add("A new coordinator does not load the offsets.", "went back")
def offsets_lost_at_failover(patch: Patch) -> None:
    def made(settle: Any) -> Any:
        def settled(self: Any, written: Any) -> None:
            written.offsets.clear()
            settle(self, written)

        return settled

    wrap(patch, Shard, "_settle", made)


@GROUPS.add("A commit is answered before the ISR has it.", "went back")
def commit_answered_too_early(patch: Patch) -> None:
    patch.setattr(offsets_journal, "_ALL_IN_SYNC", 1)


@GROUPS.add("A new coordinator begins the generations anew.", "two owners in generation")
def generation_lost_at_failover(patch: Patch) -> None:
    def made(written: Any) -> Any:
        def restored(group_id: str, value: Any, *it: Any) -> Any:
            return written(group_id, replace(value, generation=0), *it)

        return restored

    wrap(patch, ClassicGroup, "written", made)


@GROUPS.add("Every member of a generation is told that it leads, and all assignments count.", "two owners")
def two_leaders_in_a_generation(patch: Patch) -> None:
    def made_reply(join_reply: Any) -> Any:
        def led(self: Any, member: Any, **more: Any) -> Any:
            self.roster.leader = member.id
            return join_reply(self, member, **more)

        return led

    def made_sync(sync: Any) -> Any:
        def synced(self: Any, request: Any, *it: Any) -> Any:
            if request.assignments:
                self.roster.leader, self._saving_generation = request.member_id, -1
                told = dict(request.assignments)
                for member in self.roster:
                    member.assignment = told.get(member.id, member.assignment)
            return sync(self, request, *it)

        return synced

    wrap(patch, Rebalancing, "_join_reply", made_reply)
    wrap(patch, ClassicGroup, "sync", made_sync)


@GROUPS.add("The heartbeats of removed members are accepted.", "accepted a heartbeat")
def heartbeats_of_dead_members_accepted(patch: Patch) -> None:
    def made(heartbeat: Any) -> Any:
        def accepted(self: Any, *it: Any) -> Any:
            error, effects = heartbeat(self, *it)
            refused = error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
            return (ErrorCode.NONE, effects) if refused else (error, effects)

        return accepted

    wrap(patch, ClassicGroup, "heartbeat", made)


@GROUPS.add("A member that died is never removed.", "groups is still at work")
def dead_member_never_removed(patch: Patch) -> None:
    patch.setattr(Rebalancing, "_heard_of", lambda self, member: None)


@GROUPS.add("A rebalance does not begin a new generation.", "two owners in generation")
def generation_not_raised(patch: Patch) -> None:
    def made(complete_join: Any) -> Any:
        def completed(self: Any) -> None:
            self.generation = max(0, self.generation - 1)
            complete_join(self)

        return completed

    wrap(patch, Rebalancing, "_complete_join", made)
