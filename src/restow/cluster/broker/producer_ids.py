"""Unique producer ids, allocated from the store in blocks of a thousand, as in Kafka."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.cluster.store import BadVersion
from restow.cluster.store.znodes import ProducerIdBlock

if TYPE_CHECKING:
    from restow.cluster.store import Store

BLOCK = 1000
_LARGEST_ID = 2**63 - 1


class ProducerIdsExhausted(Exception):
    """All 63 bits are used up."""


class ProducerIds:
    """The rest of this broker's last block."""

    def __init__(self, broker_id: int, store: Store) -> None:
        self._broker_id = broker_id
        self._store = store
        self._next = 0
        self._end = 0
        self._taking = asyncio.Lock()

    async def take(self) -> int:
        """Return an id that no other broker hands out."""
        async with self._taking:
            if self._next == self._end:
                self._next, self._end = await take_block(self._store, self._broker_id)
            taken = self._next
            self._next += 1
            return taken


async def take_block(store: Store, broker_id: int) -> tuple[int, int]:
    """Allocate a block for the broker: its first id, and the one after its last. Retry after a conflict."""
    while True:
        node = await store.get(ProducerIdBlock.PATH)
        first = ProducerIdBlock.decode(node.data).last + 1 if node.data else 0
        if first > _LARGEST_ID - BLOCK + 1:
            raise ProducerIdsExhausted(f"the last producer id taken is {first - 1}; no block is left")
        block = ProducerIdBlock(broker_id=broker_id, first=first, last=first + BLOCK - 1)
        try:
            await store.set(ProducerIdBlock.PATH, block.encode(), node.stat.version)
        except BadVersion:
            continue
        return first, first + BLOCK
