"""A broker's entry in the store: who it is, where it listens, and the id of the cluster it belongs to."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from restow.cluster.controller import random_topic_id
from restow.cluster.store import NodeExists, NoNode, StoreError, ensure_paths
from restow.cluster.store.znodes import PERSISTENT_PATHS, BrokerRegistration, ClusterId

if TYPE_CHECKING:
    from restow.cluster.store import Store
    from restow.runtime.chance import Chance
    from restow.runtime.clock import Clock

_LOOK_AGAIN_S = 0.1


class BrokerIdTaken(StoreError):
    """Another broker of that id is alive, or its session has not ended yet."""


async def prepare_store(store: Store, chance: Chance) -> str:
    """Create what every cluster has; the cluster's id, which the first broker makes up."""
    await ensure_paths(store, (*PERSISTENT_PATHS, "/cluster"))
    with suppress(NodeExists):
        await store.create(ClusterId.PATH, ClusterId(random_topic_id(chance)).encode())
    return ClusterId.decode((await store.get(ClusterId.PATH)).data).id


async def register(
    store: Store, broker_id: int, registration: BrokerRegistration, clock: Clock, *, patience_s: float
) -> int:
    """Say that the broker is there; its epoch. An entry of its former life is waited for to go."""
    path = BrokerRegistration.path(broker_id)
    deadline_s = clock.monotonic_s() + patience_s
    while True:
        try:
            await store.create(path, registration.encode(), ephemeral=True)
            return (await store.get(path)).stat.czxid
        except NodeExists:
            if clock.monotonic_s() >= deadline_s:
                raise BrokerIdTaken(
                    f"a broker of id {broker_id} is registered already: stop it, or give this one another id",
                    path=path,
                ) from None
        except NoNode:
            await ensure_paths(store, [BrokerRegistration.PARENT])
        await clock.sleep(_LOOK_AGAIN_S)
