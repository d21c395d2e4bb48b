"""Producer ids are unique over all brokers and restarts."""

from __future__ import annotations

import asyncio

import pytest

from restow.cluster.broker.producer_ids import BLOCK, ProducerIds, ProducerIdsExhausted
from restow.cluster.store import ensure_paths
from restow.cluster.store.embedded import EmbeddedStore
from restow.cluster.store.znodes import ProducerIdBlock
from tests.unit.broker.conversations import run


def test_brokers_never_allocate_the_same_id() -> None:
    async def scenario() -> None:
        server = EmbeddedStore()
        await ensure_paths(server.session(), [ProducerIdBlock.PATH])
        brokers = [ProducerIds(number, server.session()) for number in range(3)]
        taken = await asyncio.gather(*(broker.take() for broker in brokers for _ in range(BLOCK + 10)))
        assert len(set(taken)) == len(taken)
        again = ProducerIds(0, server.session())
        assert await again.take() == 6 * BLOCK
        block = ProducerIdBlock.decode((await server.session().get(ProducerIdBlock.PATH)).data)
        assert block == ProducerIdBlock(broker_id=0, first=6 * BLOCK, last=7 * BLOCK - 1)
        await server.close()

    run(scenario())


def test_take_raises_when_all_ids_are_used() -> None:
    async def scenario() -> None:
        server = EmbeddedStore()
        store = server.session()
        last = ProducerIdBlock(broker_id=0, first=2**63 - 2000, last=2**63 - 1001)
        await ensure_paths(store, [ProducerIdBlock.PATH])
        await store.set(ProducerIdBlock.PATH, last.encode())
        ids = ProducerIds(1, store)
        assert await ids.take() == 2**63 - 1000
        for _ in range(BLOCK - 1):
            await ids.take()
        with pytest.raises(ProducerIdsExhausted):
            await ids.take()
        await server.close()

    run(scenario())
