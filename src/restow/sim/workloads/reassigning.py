"""Reassignments that are started, replaced and cancelled while a producer writes.

A reassignment ends with exactly the replicas that were requested, or after a cancel with those from before.
A request whose response is lost may still be carried out, even later than the next one. So during the faults
any of the requested replica lists may be the result; after them one last request per partition decides.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.model import TopicPartition
from restow.sim.states import topics_in
from restow.sim.workloads.base import WorkContext, Workload
from restow.sim.workloads.controlling import REQUEST_TIMEOUT_MS, ControllerClient
from restow.sim.workloads.produced import ProducedTopic
from restow.wire.messages import AlterPartitionReassignmentsRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from restow.model import ReplicaAssignment

TOPIC = "moved"
_PARTITIONS = 6
_RECORDS_PER_S = 15
_PAUSE_MS = 6_000
_LATE_REQUESTS_S = 20.0
_LOOK_EVERY_S = 0.5


class Reassigning(Workload):
    """One topic whose partitions move all the time."""

    name = "reassign"
    excludes = ("plans",)

    def __init__(self, context: WorkContext) -> None:
        super().__init__(context)
        self._chance = context.chance("reassignments")
        self._topic = ProducedTopic(context, TOPIC, _PARTITIONS, _RECORDS_PER_S)
        self._controller = ControllerClient(context, "reassigner")
        self._requested: dict[int, set[tuple[int, ...]]] = {}
        """The replica lists that a partition may have at rest."""
        self._wanted: dict[int, tuple[int, ...]] = {}
        """The replicas that a partition must have at the end."""

    async def start(self) -> None:
        await self._topic.start()
        self._requested = {number: {each.replicas} for number, each in self._assigned().items()}

    async def run(self, until_s: float) -> None:
        await asyncio.gather(self._topic.run(until_s), self._move(until_s))

    async def settle(self) -> None:
        """Request one last time, some of it to be cancelled, and wait until nothing moves any more."""
        await self._topic.settle()
        await asyncio.sleep(_LATE_REQUESTS_S)
        await self._until_nothing_moves()
        for partition, before in self._assigned().items():
            await self._request_until_accepted(partition, target := self._draw_target())
            self._wanted[partition] = target
            if self._chance.randrange(2) and await self._cancel(partition):
                self._wanted[partition] = before.replicas
        await self._until_nothing_moves()

    def check(self) -> Iterator[str]:
        """At rest, a partition has replicas that were requested, or from before in any order."""
        self._topic.acknowledge()
        for number, each in self._assigned().items():
            known = self._requested[number]
            if each.adding or each.removing or each.replicas in known:
                continue
            if sorted(each.replicas) in map(sorted, known):
                known.add(each.replicas)
            else:
                yield f"{TOPIC}-{number} has the replicas {each.replicas}, which nobody requested"

    async def finish(self) -> AsyncIterator[str]:
        for number, each in self._assigned().items():
            wanted = self._wanted.get(number)
            if wanted is not None and sorted(each.replicas) != sorted(wanted):
                yield f"{TOPIC}-{number} was to have the replicas {wanted} at the end, but has {each}"
        async for what in self._topic.finish():
            yield what
        self.acked, self.lost = self._topic.acked, self._topic.lost
        self._controller.close()

    def _assigned(self) -> dict[int, ReplicaAssignment]:
        for name, topic in topics_in(self.context.cluster.store.tree):
            if name == TOPIC:
                return dict(topic.partitions)
        return {}

    async def _move(self, until_s: float) -> None:
        while self.context.now_s() < until_s:
            partition = self._chance.randrange(_PARTITIONS)
            if self._chance.randrange(4):
                await self._request(partition, self._draw_target())
            else:
                await self._cancel(partition)
            await asyncio.sleep(self._chance.randrange(_PAUSE_MS) / 1000)

    def _draw_target(self) -> tuple[int, ...]:
        """Return two or three brokers in random order."""
        left = list(self.context.cluster.nodes)
        count = min(len(left), 2 + self._chance.randrange(2))
        return tuple(left.pop(self._chance.randrange(len(left))) for _ in range(count))

    async def _request(self, partition: int, target: tuple[int, ...] | None) -> int | None:
        """Return the error code, or None without a response."""
        if target is not None:
            self._requested[partition].add(target)
        made = AlterPartitionReassignmentsRequest.ReassignableTopic
        change = made.ReassignablePartition(
            partition_index=partition, replicas=None if target is None else list(target)
        )
        answer = await self._controller.ask(
            AlterPartitionReassignmentsRequest(
                timeout_ms=REQUEST_TIMEOUT_MS, topics=[made(name=TOPIC, partitions=[change])]
            )
        )
        if answer is None or answer.error_code:
            code = None
        else:
            code = int(answer.responses[0].partitions[0].error_code)
        what = "cancel" if target is None else f"move to {target}"
        self.context.note(f"{TopicPartition(TOPIC, partition)}: {what}: {code}")
        return code

    async def _request_until_accepted(self, partition: int, target: tuple[int, ...]) -> None:
        while await self._request(partition, target) != 0:
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _cancel(self, partition: int) -> bool:
        """Return whether a reassignment was cancelled for certain."""
        return await self._request(partition, None) == 0

    async def _until_nothing_moves(self) -> None:
        while any(each.adding or each.removing for each in self._assigned().values()):
            await asyncio.sleep(_LOOK_EVERY_S)
