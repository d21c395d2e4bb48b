"""Isolation levels of Fetch and ListOffsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.replication.values import CONSUMER

if TYPE_CHECKING:
    from restow.wire.messages import Message

_READ_COMMITTED = 1


def reads_committed_only(body: Message, replica_id: int) -> bool:
    """Return whether the request is for committed records only. Followers read everything."""
    return replica_id == CONSUMER and body.isolation_level == _READ_COMMITTED
