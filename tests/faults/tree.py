"""Access to the brokers' ZooKeeper in a separate session, which is ahead of the brokers' metadata."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from restow.cluster.store.zookeeper import ZooKeeperStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness.brokers import BrokerProcesses
    from restow.cluster.store import Store


def with_store(brokers: BrokerProcesses, work: Callable[[Store], Awaitable[Any]]) -> Any:
    """Run work with the cluster's znodes."""

    async def run() -> Any:
        store = await ZooKeeperStore.connect(f"{brokers.zookeeper.address}/restow", connect_timeout_s=60)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())
