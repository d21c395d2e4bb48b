"""Configs of topics and brokers that change all the time: every broker must apply the last ones."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.sim.workloads.base import WorkContext, Workload
from restow.sim.workloads.controlling import ControllerClient
from restow.sim.workloads.producing import TOPIC
from restow.wire.messages import DescribeConfigsRequest, IncrementalAlterConfigsRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_TOPIC_TYPE, _BROKER_TYPE, _SET = 2, 4, 0
_VALUES = {
    "segment.bytes": ("2000", "5000", "1000000"),
    "flush.messages": ("1", "20", "1000000"),
    "index.interval.bytes": ("100", "4096"),
}
_BROKER_CONFIG = "message.max.bytes"
_PAUSE_MS = 5_000
_LATE_REQUESTS_S = 20.0
_LOOK_EVERY_S = 1.0


class Configuring(Workload):
    """An operator who cannot decide."""

    name = "configs"

    def __init__(self, context: WorkContext) -> None:
        super().__init__(context)
        self._chance = context.chance("configs")
        self._controller = ControllerClient(context, "configurer")
        self._wanted: dict[str, str] = {}
        self._wanted_size = ""

    async def start(self) -> None:
        """Nothing has to be prepared."""

    async def run(self, until_s: float) -> None:
        while self.context.now_s() < until_s:
            name = tuple(_VALUES)[self._chance.randrange(len(_VALUES))]
            value = _VALUES[name][self._chance.randrange(len(_VALUES[name]))]
            await self._set(_TOPIC_TYPE, TOPIC, name, value)
            await self._set(_BROKER_TYPE, "", _BROKER_CONFIG, self._draw_size())
            await asyncio.sleep(self._chance.randrange(_PAUSE_MS) / 1000)

    async def settle(self) -> None:
        """Set everything one last time, and wait until every broker has applied it."""
        await asyncio.sleep(_LATE_REQUESTS_S)
        self._wanted = {name: values[self._chance.randrange(len(values))] for name, values in _VALUES.items()}
        self._wanted_size = self._draw_size()
        for name, value in self._wanted.items():
            while not await self._set(_TOPIC_TYPE, TOPIC, name, value):
                await asyncio.sleep(_LOOK_EVERY_S)
        while not await self._set(_BROKER_TYPE, "", _BROKER_CONFIG, self._wanted_size):
            await asyncio.sleep(_LOOK_EVERY_S)
        while [what async for what in self._differences()]:
            await asyncio.sleep(_LOOK_EVERY_S)

    async def finish(self) -> AsyncIterator[str]:
        async for what in self._differences():
            yield what
        self._controller.close()

    def _draw_size(self) -> str:
        return str(2_000_000 + self._chance.randrange(1_000_000))

    async def _set(self, kind: int, resource: str, name: str, value: str) -> bool:
        """Return whether it was accepted."""
        made = IncrementalAlterConfigsRequest.AlterConfigsResource
        change = made.AlterableConfig(name=name, config_operation=_SET, value=value)
        answer = await self._controller.ask(
            IncrementalAlterConfigsRequest(
                resources=[made(resource_type=kind, resource_name=resource, configs=[change])],
                validate_only=False,
            )
        )
        return answer is not None and not answer.responses[0].error_code

    async def _differences(self) -> AsyncIterator[str]:
        for broker in self.context.cluster.nodes:
            wanted = {
                (_TOPIC_TYPE, TOPIC): self._wanted,
                (_BROKER_TYPE, str(broker)): {_BROKER_CONFIG: self._wanted_size},
            }
            for (kind, resource), values in wanted.items():
                found = await self._describe(broker, kind, resource)
                for name, value in values.items():
                    if found.get(name) != value:
                        yield f"broker {broker} has {name}={found.get(name)}, not the last value {value}"

    async def _describe(self, broker: int, kind: int, resource: str) -> dict[str, str]:
        made = DescribeConfigsRequest.DescribeConfigsResource
        answer = await self._controller.ask_broker(
            DescribeConfigsRequest(
                resources=[made(resource_type=kind, resource_name=resource, configuration_keys=None)],
                include_synonyms=False,
                include_documentation=False,
            ),
            broker,
        )
        return {} if answer is None else {each.name: each.value for each in answer.results[0].configs}
