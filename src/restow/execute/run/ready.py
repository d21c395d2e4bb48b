"""Ask a cluster what preflight has to know beyond a snapshot, and say what forbids to begin, or to go on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.client import versions_of
from restow.execute.run.chains import chains_of
from restow.verify import blocking, preflight

if TYPE_CHECKING:
    from collections.abc import Collection

    from restow.client import Admin
    from restow.model import Plan, Snapshot, Verdict

FOR_ALL = ("cluster", "api versions", "permissions")
"""Checks without which nothing at all would go."""
FOR_SOME = ("brokers alive", "leaders alive", "log dirs", "free space")
"""Checks that concern single partitions, which the executor holds back while the others go on."""


async def readiness(admin: Admin, plan: Plan, snapshot: Snapshot) -> Verdict:
    """What brokers can do and allow, held against the plan. One that does not answer is left out."""
    versions = await versions_of(admin, (broker.id for broker in snapshot.brokers))
    topics = sorted({move.partition.topic for move in plan.moves})
    return preflight(snapshot, plan, versions, await admin.permissions(topics))


def why_not(verdict: Verdict, of: Collection[str] | None = None) -> str | None:
    """What forbids to begin, of all checks or of the named ones, in a sentence each; None if nothing does."""
    stops = [f"{check.name}: {check.evidence} ({check.advice})" for check in blocking(verdict, of)]
    return "; ".join(stops) or None


def rest_of(plan: Plan, snapshot: Snapshot) -> Plan:
    """What is left of a plan that was begun, from where its partitions are now."""
    left = {steps[0].partition: steps[0].before for steps in chains_of(plan, snapshot).steps}
    moves = (replace(move, before=left[move.partition]) for move in plan.moves if move.partition in left)
    return replace(plan, moves=tuple(moves))
