"""Preferred leader elections, again and again: at the end every leader is the preferred one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.model import TopicPartition
from restow.sim.states import state_of, topics_in
from restow.sim.workloads.base import WorkContext, Workload
from restow.sim.workloads.controlling import REQUEST_TIMEOUT_MS, ControllerClient
from restow.sim.workloads.producing import TOPIC
from restow.wire.messages import ElectLeadersRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

_PREFERRED = 0
_PAUSE_MS = 15_000
_LOOK_EVERY_S = 1.0
_ELECTED_WITHIN_S = 30.0


class Electing(Workload):
    """An operator who likes preferred leaders."""

    name = "elections"

    def __init__(self, context: WorkContext) -> None:
        super().__init__(context)
        self._chance = context.chance("elections")
        self._controller = ControllerClient(context, "elector")

    async def start(self) -> None:
        """Nothing has to be prepared."""

    async def run(self, until_s: float) -> None:
        while self.context.now_s() < until_s:
            await asyncio.sleep(self._chance.randrange(_PAUSE_MS) / 1000)
            await self._elect()

    async def settle(self) -> None:
        while any(self._differences()):
            await self._elect()
            await asyncio.sleep(_LOOK_EVERY_S)

    async def finish(self) -> AsyncIterator[str]:
        """Elect once more, because another workload may have moved partitions since."""
        until_s = self.context.now_s() + _ELECTED_WITHIN_S
        while any(self._differences()) and self.context.now_s() < until_s:
            await self._elect()
            await asyncio.sleep(_LOOK_EVERY_S)
        for what in self._differences():
            yield what
        self._controller.close()

    async def _elect(self) -> None:
        await self._controller.ask(
            ElectLeadersRequest(
                election_type=_PREFERRED, topic_partitions=None, timeout_ms=REQUEST_TIMEOUT_MS
            )
        )

    def _differences(self) -> Iterator[str]:
        tree = self.context.cluster.store.tree
        for name, topic in topics_in(tree):
            for number, assignment in topic.partitions.items() if name == TOPIC else ():
                state = state_of(tree, TopicPartition(name, number))
                leader, preferred = None if state is None else state.leader, assignment.replicas[0]
                if leader != preferred:
                    yield f"{name}-{number} has the leader {leader}, not the preferred {preferred}"
