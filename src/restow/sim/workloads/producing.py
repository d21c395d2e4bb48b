"""Idempotent production with acks=all: nothing acknowledged is lost, doubled or reordered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.sim.workloads.base import WorkContext, Workload
from restow.sim.workloads.produced import ProducedTopic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

TOPIC = "orders"


class Producing(Workload):
    """One producer that writes to all partitions of one topic."""

    name = "produce"
    is_always_drawn = True

    def __init__(self, context: WorkContext) -> None:
        super().__init__(context)
        scenario = context.scenario
        self._topic = ProducedTopic(context, TOPIC, scenario.partitions, scenario.records_per_s)

    async def start(self) -> None:
        await self._topic.start()

    async def run(self, until_s: float) -> None:
        await self._topic.run(until_s)

    async def settle(self) -> None:
        await self._topic.settle()

    def check(self) -> Iterable[str]:
        self._topic.acknowledge()
        return ()

    async def finish(self) -> AsyncIterator[str]:
        async for what in self._topic.finish():
            yield what
        self.acked, self.lost = self._topic.acked, self._topic.lost
