"""A topic that a producer writes to: nothing acknowledged may be lost, doubled or reordered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.sim.producer import SimProducer
from restow.sim.reading import read_all
from restow.sim.workloads.controlling import create_topic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from restow.sim.workloads.base import WorkContext

_ROUND_EVERY_S = 0.25
_SPREAD_ONE_IN = 8
"""A round sends its records to one partition, as a producer does with records that have no key. One round in
so many spreads them over the partitions, as keys do.
"""
_SEGMENT_BYTES = (1 << 30, 20_000, 2_000)


class ProducedTopic:
    """One topic, its idempotent producer, and what was acknowledged."""

    def __init__(self, context: WorkContext, topic: str, partitions: int, records_per_s: float) -> None:
        self.topic, self.partitions = topic, partitions
        self._context, self._records_per_s = context, records_per_s
        self._chance = context.chance(f"records of {topic}")
        self._client = context.client(f"producer-of-{topic}")
        self._producer = SimProducer(self._client, context.cluster.nodes, topic)
        self.lost = 0

    @property
    def acked(self) -> int:
        return self._producer.acknowledged

    async def start(self) -> None:
        """Create the topic, with small segments in some runs, so that recovery sees many of them."""
        size = _SEGMENT_BYTES[self._chance.randrange(len(_SEGMENT_BYTES))]
        await create_topic(self._client, self.topic, self.partitions, {"segment.bytes": str(size)})

    async def run(self, until_s: float) -> None:
        """Write until this virtual time."""
        number, owed = 0, 0.0
        while self._context.now_s() < until_s:
            owed += self._records_per_s * _ROUND_EVERY_S
            spreads = self._chance.randrange(_SPREAD_ONE_IN) == 0
            partition = self._chance.randrange(self.partitions)
            while owed >= 1:
                self._producer.put(partition, b"%d" % number)
                number, owed = number + 1, owed - 1
                if spreads:
                    partition = self._chance.randrange(self.partitions)
            await self._round()

    async def settle(self) -> None:
        """Write on until everything is acknowledged."""
        while not self._producer.is_idle:
            await self._round()

    def acknowledge(self) -> None:
        """Tell the checkers what is newly acknowledged."""
        news = self._producer.newly_acknowledged
        for partition, lane in tuple(news.items()):
            if self._context.committed.acknowledge(self.topic, partition, lane.acknowledged_end):
                del news[partition]

    async def finish(self) -> AsyncIterator[str]:
        """Read everything, and yield how it differs from what was acknowledged."""
        lanes = dict(sorted(self._producer.lanes.items()))
        found = await read_all(self._client, self._context.cluster.nodes, self.topic, lanes)
        for partition, lane in lanes.items():
            if partition not in found:
                yield f"{self.topic}-{partition} cannot be read"
                continue
            for what in self._compare(lane.acknowledged, found[partition]):
                yield f"{self.topic}-{partition} {what}"
        self._client.close()

    async def _round(self) -> None:
        await self._producer.round()
        await asyncio.sleep(_ROUND_EVERY_S)

    def _compare(self, acknowledged: list[bytes], found: list[bytes]) -> Iterator[str]:
        there = {value: at for at, value in enumerate(found)}
        if len(there) < len(found):
            yield f"has {len(found) - len(there)} records twice"
        missing = [value for value in acknowledged if value not in there]
        if missing:
            self.lost += len(missing)
            yield f"lost {len(missing)} acknowledged records"
        order = [there[value] for value in acknowledged if value in there]
        if order != sorted(order):
            yield "has acknowledged records in another order"
