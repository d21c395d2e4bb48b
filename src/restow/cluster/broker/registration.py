"""A broker's registration in the store, and the cluster id."""

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
    """Another broker with that id is alive, or its session has not expired yet."""


async def prepare_store(store: Store, chance: Chance) -> str:
    """Create the top-level znodes and return the cluster id, which the first broker generates."""
    await ensure_paths(store, (*PERSISTENT_PATHS, "/cluster"))
    with suppress(NodeExists):
        await store.create(ClusterId.PATH, ClusterId(random_topic_id(chance)).encode())
    return ClusterId.decode((await store.get(ClusterId.PATH)).data).id


async def register(
    store: Store, broker_id: int, registration: BrokerRegistration, clock: Clock, *, patience_s: float
) -> int:
    """Register the broker and return its epoch. Waits until the registration of an earlier run is gone."""
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
