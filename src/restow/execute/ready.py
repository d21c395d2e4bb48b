"""Ask a cluster what preflight has to know beyond a snapshot, and say what forbids to begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.client import versions_of
from restow.verify import blocking, preflight

if TYPE_CHECKING:
    from restow.client import Admin
    from restow.model import Plan, Snapshot, Verdict


async def readiness(admin: Admin, plan: Plan, snapshot: Snapshot) -> Verdict:
    """What brokers can do and allow, held against the plan. One that does not answer is left out."""
    versions = await versions_of(admin, (broker.id for broker in snapshot.brokers))
    topics = sorted({move.partition.topic for move in plan.moves})
    return preflight(snapshot, plan, versions, await admin.permissions(topics))


def why_not(verdict: Verdict) -> str | None:
    """All that forbids to begin, in one sentence each; None if nothing does."""
    stops = [f"{check.name}: {check.evidence} ({check.advice})" for check in blocking(verdict)]
    return "; ".join(stops) or None
