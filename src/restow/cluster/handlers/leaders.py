"""Names the current leader to a client that asked the wrong broker (KIP-951), to save a Metadata call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.wire.primitives import Endpoint, LeaderAndEpoch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.broker.services import RequestContext
    from restow.model import TopicPartition


def current_leader(context: RequestContext, partition: TopicPartition) -> LeaderAndEpoch | None:
    """Return the partition's leader as known here; None without one, or if it is this broker."""
    known = context.broker.metadata.partition(partition)
    if known is None or known.leader_id < 0 or known.leader_id == context.broker.broker_id:
        return None
    return LeaderAndEpoch(known.leader_id, known.leader_epoch)


def endpoints_of(context: RequestContext, brokers: Iterable[int]) -> list[Endpoint]:
    """Return the addresses of the live ones among these brokers."""
    alive = context.broker.metadata.brokers
    return [alive[each] for each in sorted(brokers) if each in alive]
