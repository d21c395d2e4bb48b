"""Named points at which a test may stop a controller."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class ControllerStep(Enum):
    """The step just done. Steps of one operation share a letter and come in this order."""

    E1 = "elected, and nothing read yet"
    E2 = "watches set"
    E3 = "context read"
    E4 = "replicas started"
    E5 = "partitions started"

    C1 = "new partitions known"
    C2 = "new partitions and replicas in state New"
    C3 = "new partitions and replicas Online"

    W1 = "state znodes written, no request sent yet"

    D1 = "deletion announced to all brokers"
    D2 = "replicas of the deleted topic stopped"
    D3 = "StopReplica with delete sent for the deleted topic"
    D4 = "every replica of the deleted topic is gone"
    D5 = "partition znodes of the deleted topic gone"
    D6 = "topic gone"

    F1 = "partitions without a live leader Offline"
    F2 = "new leaders elected"
    F3 = "replicas on dead brokers Offline"

    S1 = "leaders moved off a broker that shuts down"
    S2 = "followers on a broker that shuts down stopped"

    P1 = "preferred leaders elected, the request not removed"

    U0 = "a reassignment accepted, nothing written yet"
    U1 = "the new assignment in the topics' znodes"
    U2 = "the same in memory; replicas that only the replaced reassignment was adding are gone"
    A1 = "the leader epoch raised, LeaderAndIsr sent to old and new replicas"
    A2 = "added replicas New"
    B1 = "added replicas Online"
    B2 = "only the target in memory"
    B3 = "a leader in the target, LeaderAndIsr sent to the target"
    B4 = "removed replicas Offline, out of the ISR"
    B5 = "StopReplica with delete sent to removed replicas, which are NonExistent"
    B6 = "only the target in the topics' znodes"
    B7 = "the partition out of the request znode"
    B8 = "UpdateMetadata sent to all brokers"

    N1 = "ISR changes read, the notifications not removed"


Hook: TypeAlias = "Callable[[ControllerStep], Awaitable[None]]"


async def go_on(_: ControllerStep) -> None:
    """Do not stop."""
