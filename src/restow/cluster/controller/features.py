"""The cluster's finalized features, in `/feature`. Our brokers have none; Kafka's expect the znode."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from restow.cluster.store import Create, Set, UnreadableNode
from restow.cluster.store.znodes import FeatureState

if TYPE_CHECKING:
    from restow.cluster.controller.guarded import GuardedStore

_log = logging.getLogger(__name__)


async def enable_features(store: GuardedStore) -> None:
    """Create the znode, or switch features on as Kafka does since 2.7. Finalized ones stay."""
    (node,) = await store.read.get_each([FeatureState.PATH])
    if node is None:
        await store.multi([Create(FeatureState.PATH, FeatureState().encode())])
        return
    try:
        is_enabled = FeatureState.decode(node.data).status == FeatureState.ENABLED
    except UnreadableNode as error:
        _log.error("skipped: %s", error)
        return
    if not is_enabled:
        await store.multi([Set(FeatureState.PATH, FeatureState().encode(), node.stat.version)])
