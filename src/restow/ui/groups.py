"""Consumer groups as the pages show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.client import group_lags

if TYPE_CHECKING:
    from restow.client import GroupLag, KafkaAdmin


@frozen
class GroupsLook:
    """All groups at one moment: their lag in messages and in time, their members and what these own."""

    at_ms: int
    groups: tuple[GroupLag, ...]


async def look_at_groups(admin: KafkaAdmin, now_ms: int) -> GroupsLook:
    """Ask the cluster, as `restow groups lag` does."""
    return GroupsLook(at_ms=now_ms, groups=await group_lags(admin, now_ms))
