"""Changes of ISRs: conditional, told to the controller in few notes, safe to repeat."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.cluster.isr_writes import StoreIsrWriter
from restow.cluster.store import ensure_paths
from restow.cluster.store.embedded import EmbeddedStore
from restow.cluster.store.znodes import PERSISTENT_PATHS, IsrChangeNotification, PartitionState
from restow.cluster.tasks import Tasks
from restow.model import TopicPartition
from restow.runtime.clock import SystemClock
from tests.unit.broker.conversations import run

if TYPE_CHECKING:
    from collections.abc import Iterable

PARTITIONS = [TopicPartition("t", number) for number in range(5)]


async def with_states(partitions: Iterable[TopicPartition]) -> tuple[EmbeddedStore, StoreIsrWriter]:
    server = EmbeddedStore()
    store = server.session()
    await ensure_paths(store, PERSISTENT_PATHS)
    for topic, number in partitions:
        await ensure_paths(store, PartitionState.parents(topic, number))
        state = PartitionState(leader=1, leader_epoch=3, isr=(1, 2), controller_epoch=4)
        await store.create(PartitionState.path(topic, number), state.encode())
    return server, StoreIsrWriter(store, SystemClock(), Tasks(), lambda: 4)


def test_many_changes_make_one_note() -> None:
    async def scenario() -> None:
        server, writer = await with_states(PARTITIONS)
        versions = await asyncio.gather(*(writer.write(each, 1, 3, (1,), 0) for each in PARTITIONS))
        assert versions == [1] * 5
        look = server.session()
        path = PartitionState.path("t", 0)
        state = PartitionState.decode((await look.get(path)).data, path)
        assert state == PartitionState(leader=1, leader_epoch=3, isr=(1,), controller_epoch=4)
        while not (notes := await look.children(IsrChangeNotification.PARENT)):
            await asyncio.sleep(0.01)
        (note,) = notes
        node = await look.get(f"{IsrChangeNotification.PARENT}/{note}")
        assert set(IsrChangeNotification.decode(node.data, note).partitions) == set(PARTITIONS)
        await server.close()

    run(scenario())


def test_who_was_overtaken_changes_nothing() -> None:
    async def scenario() -> None:
        server, writer = await with_states(PARTITIONS)
        assert await writer.write(PARTITIONS[0], 1, 3, (1,), 0) == 1
        assert await writer.write(PARTITIONS[0], 1, 3, (1, 2, 3), 0) is None
        assert await writer.write(TopicPartition("gone", 0), 1, 3, (1,), 0) is None
        await server.close()

    run(scenario())


def test_the_same_change_again_is_taken_for_done() -> None:
    async def scenario() -> None:
        server, writer = await with_states(PARTITIONS)
        assert await writer.write(PARTITIONS[0], 1, 3, (1,), 0) == 1
        assert await writer.write(PARTITIONS[0], 1, 3, (1,), 0) == 1
        assert await writer.write(PARTITIONS[0], 1, 3, (1,), 5) is None
        await server.close()

    run(scenario())
