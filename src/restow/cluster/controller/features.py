"""The cluster's finalized features, in `/feature`. Our brokers have none; Kafka's expect the znode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.controller.guarded import readable
from restow.cluster.store import Create, Set
from restow.cluster.store.znodes import FeatureState

if TYPE_CHECKING:
    from restow.cluster.controller.guarded import GuardedStore


async def enable_features(store: GuardedStore) -> None:
    """Create the znode, or switch features on as Kafka does since 2.7. Finalized ones stay."""
    (node,) = await store.read.get_each([FeatureState.PATH])
    if node is None:
        await store.multi([Create(FeatureState.PATH, FeatureState().encode())])
        return
    found = readable(FeatureState.decode, node, FeatureState.PATH)
    if found is not None and found.status != FeatureState.ENABLED:
        await store.multi([Set(FeatureState.PATH, FeatureState().encode(), node.stat.version)])
