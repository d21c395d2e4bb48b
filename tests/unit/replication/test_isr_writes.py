"""ISR writes: conditional, with few notifications, safe to repeat."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from restow.cluster.replication.isr import StoreIsrWriter
from restow.cluster.store import StoreUnavailable, ensure_paths
from restow.cluster.store.embedded import EmbeddedStore
from restow.cluster.store.znodes import PERSISTENT_PATHS, IsrChangeNotification, PartitionStateZNode
from restow.cluster.tasks import Tasks
from restow.model import TopicPartition
from restow.runtime.clock import SystemClock
from tests.unit.broker.conversations import run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.store import Stat, Store

PARTITIONS = [TopicPartition("t", number) for number in range(5)]


async def with_states(partitions: Iterable[TopicPartition]) -> tuple[EmbeddedStore, StoreIsrWriter]:
    server = EmbeddedStore()
    store = server.session()
    await ensure_paths(store, PERSISTENT_PATHS)
    for topic, number in partitions:
        await ensure_paths(store, PartitionStateZNode.parents(topic, number))
        state = PartitionStateZNode(leader=1, leader_epoch=3, isr=(1, 2), controller_epoch=4)
        await store.create(PartitionStateZNode.path(topic, number), state.encode())
    return server, StoreIsrWriter(store, SystemClock(), Tasks(), lambda: 4)


def test_many_changes_share_one_notification() -> None:
    async def scenario() -> None:
        server, writer = await with_states(PARTITIONS)
        versions = await asyncio.gather(*(writer.write(each, 1, 3, (1,), 0) for each in PARTITIONS))
        assert versions == [1] * 5
        look = server.session()
        path = PartitionStateZNode.path("t", 0)
        state = PartitionStateZNode.decode((await look.get(path)).data, path)
        assert state == PartitionStateZNode(leader=1, leader_epoch=3, isr=(1,), controller_epoch=4)
        while not (notes := await look.children(IsrChangeNotification.PARENT)):
            await asyncio.sleep(0.01)
        (note,) = notes
        node = await look.get(f"{IsrChangeNotification.PARENT}/{note}")
        assert set(IsrChangeNotification.decode(node.data, note).partitions) == set(PARTITIONS)
        await server.close()

    run(scenario())


def test_write_with_stale_version_changes_nothing() -> None:
    async def scenario() -> None:
        server, writer = await with_states(PARTITIONS)
        assert await writer.write(PARTITIONS[0], 1, 3, (1,), 0) == 1
        assert await writer.write(PARTITIONS[0], 1, 3, (1, 2, 3), 0) is None
        assert await writer.write(TopicPartition("gone", 0), 1, 3, (1,), 0) is None
        await server.close()

    run(scenario())


def test_repeated_write_counts_as_done() -> None:
    async def scenario() -> None:
        server, writer = await with_states(PARTITIONS)
        assert await writer.write(PARTITIONS[0], 1, 3, (1,), 0) == 1
        assert await writer.write(PARTITIONS[0], 1, 3, (1,), 0) == 1
        assert await writer.write(PARTITIONS[0], 1, 3, (1,), 5) is None
        await server.close()

    run(scenario())


class Forgetful:
    """A session that carries out changes, and loses responses on request."""

    def __init__(self, store: Store, losses: int) -> None:
        self._store = store
        self._losses = losses

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        stat = await self._store.set(path, data, version)
        if self._losses:
            self._losses -= 1
            raise StoreUnavailable("the answer was lost", path=path)
        return stat


def test_write_with_lost_response_is_found_and_notified() -> None:
    async def scenario() -> None:
        server, _ = await with_states(PARTITIONS)
        look = server.session()
        store = cast("Store", Forgetful(server.session(), losses=1))
        epochs = iter((4, 5))
        writer = StoreIsrWriter(store, SystemClock(), Tasks(), lambda: next(epochs))
        with pytest.raises(StoreUnavailable):
            await writer.write(PARTITIONS[0], 1, 3, (1,), 0)
        assert await writer.write(PARTITIONS[0], 1, 3, (1,), 0) == 1
        while not await look.children(IsrChangeNotification.PARENT):
            await asyncio.sleep(0.01)
        path = PartitionStateZNode.path("t", 0)
        assert (await look.get(path)).stat.version == 1
        await server.close()

    run(scenario())


def test_foreign_write_does_not_count_as_own() -> None:
    async def scenario() -> None:
        server, _ = await with_states(PARTITIONS)
        store = cast("Store", Forgetful(server.session(), losses=1))
        writer = StoreIsrWriter(store, SystemClock(), Tasks(), lambda: 4)
        with pytest.raises(StoreUnavailable):
            await writer.write(PARTITIONS[0], 1, 3, (1,), 0)
        path = PartitionStateZNode.path("t", 0)
        elected = PartitionStateZNode(leader=2, leader_epoch=4, isr=(2,), controller_epoch=4)
        await server.session().set(path, elected.encode(), 1)
        assert await writer.write(PARTITIONS[0], 1, 3, (1,), 0) is None
        await server.close()

    run(scenario())
