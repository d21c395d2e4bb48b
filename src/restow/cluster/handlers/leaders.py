"""Telling a client that came to the wrong broker where to go (KIP-951): it need not ask for metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.wire.primitives import Endpoint, LeaderAndEpoch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.broker.services import RequestContext
    from restow.model import TopicPartition


def current_leader(context: RequestContext, partition: TopicPartition) -> LeaderAndEpoch | None:
    """Who leads the partition, as far as is known here; None if nobody does, or this very broker."""
    known = context.broker.metadata.partition(partition)
    if known is None or known.leader_id < 0 or known.leader_id == context.broker.broker_id:
        return None
    return LeaderAndEpoch(known.leader_id, known.leader_epoch)


def endpoints_of(context: RequestContext, brokers: Iterable[int]) -> list[Endpoint]:
    """Where those of them that are alive can be reached."""
    alive = context.broker.metadata.brokers
    return [alive[each] for each in sorted(brokers) if each in alive]
