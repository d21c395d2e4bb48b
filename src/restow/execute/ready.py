"""Ask a cluster what preflight has to know beyond a snapshot, and refuse what cannot go well."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.client import BrokerError, Unreachable
from restow.verify import blocking, preflight

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.client import Admin
    from restow.model import BrokerId, Plan, Snapshot, Verdict


async def readiness(admin: Admin, plan: Plan, snapshot: Snapshot) -> Verdict:
    """What brokers can do and allow, held against the plan. One that does not answer is left out."""
    brokers = [broker.id for broker in snapshot.brokers]
    answers = await asyncio.gather(*(_versions(admin, broker) for broker in brokers))
    told = {broker: answer for broker, answer in zip(brokers, answers, strict=True) if answer is not None}
    topics = sorted({move.partition.topic for move in plan.moves})
    return preflight(snapshot, plan, told, await admin.permissions(topics))


async def _versions(admin: Admin, broker: BrokerId) -> Mapping[int, tuple[int, int]] | None:
    try:
        return await admin.versions(broker)
    except (BrokerError, Unreachable):
        return None


def why_not(verdict: Verdict) -> str | None:
    """All that forbids to begin, in one sentence each; None if nothing does."""
    stops = [f"{check.name}: {check.evidence} ({check.advice})" for check in blocking(verdict)]
    return "; ".join(stops) or None
