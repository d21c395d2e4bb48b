"""Idempotent production with acks=all: nothing acknowledged is lost, doubled or reordered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.sim.producer import SimProducer
from restow.sim.reading import read_all
from restow.sim.workloads.base import WorkContext, Workload
from restow.wire.messages import CreateTopicsRequest, MetadataRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from restow.sim.client import SimClient

TOPIC = "orders"
_ROUND_EVERY_S = 0.1


class Producing(Workload):
    """One producer that writes to all partitions of one topic."""

    name = "produce"
    is_always_drawn = True

    def __init__(self, context: WorkContext) -> None:
        super().__init__(context)
        self._client = context.client("producer")
        self._producer = SimProducer(self._client, context.cluster.nodes, TOPIC)

    async def start(self) -> None:
        await _create(self._client, self.context.scenario.partitions)

    async def run(self, until_s: float) -> None:
        scenario, chance = self.context.scenario, self.context.chance("producer")
        number, owed = 0, 0.0
        while self.context.now_s() < until_s:
            owed += scenario.records_per_s * _ROUND_EVERY_S
            while owed >= 1:
                self._producer.put(chance.randrange(scenario.partitions), b"%d" % number)
                number, owed = number + 1, owed - 1
            await self._round()

    async def settle(self) -> None:
        while not self._producer.is_idle:
            await self._round()

    def check(self) -> Iterable[str]:
        for partition, lane in self._producer.lanes.items():
            self.context.committed.acknowledge(TOPIC, partition, lane.acknowledged_end)
        return ()

    async def finish(self) -> AsyncIterator[str]:
        for partition, lane in sorted(self._producer.lanes.items()):
            found = await read_all(self._client, self.context.cluster.nodes, TOPIC, partition)
            if found is None:
                yield f"{TOPIC}-{partition} cannot be read"
                continue
            for what in self._compare(lane.acknowledged, found):
                yield f"{TOPIC}-{partition} {what}"
        self._client.close()

    async def _round(self) -> None:
        await self._producer.round()
        self.acked = self._producer.acknowledged
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


async def _create(client: SimClient, partitions: int) -> None:
    topic = CreateTopicsRequest.CreatableTopic(
        name=TOPIC, num_partitions=partitions, replication_factor=3, assignments=[], configs=[]
    )
    metadata = await client.ask(MetadataRequest(topics=[]), 0)
    answer = await client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), metadata.controller_id)
    if answer.topics[0].error_code:
        raise RuntimeError(f"the topic cannot be made: {answer.topics[0].error_message}")
