"""Topics that are made, expanded, deleted and made again under the same names."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.cluster.store.znodes import DeleteTopic
from restow.sim.states import topics_in
from restow.sim.workloads.base import WorkContext, Workload
from restow.sim.workloads.controlling import REQUEST_TIMEOUT_MS, ControllerClient, new_topic
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import CreatePartitionsRequest, DeleteTopicsRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from restow.cluster.store.znodes import TopicZNode

_NAMES = tuple(f"short-lived-{number}" for number in range(4))
_MOST_PARTITIONS = 4
_PAUSE_MS = 5_000
_LATE_REQUESTS_S = 20.0
_LOOK_EVERY_S = 0.5


class ChangingTopics(Workload):
    """A few topics that come and go."""

    name = "topics"

    def __init__(self, context: WorkContext) -> None:
        super().__init__(context)
        self._chance = context.chance("topics")
        self._controller = ControllerClient(context, "topic-maker")
        self._seen: dict[tuple[str, str | None], int] = {}
        """The partition counts seen of each life of a topic."""
        self._wanted: dict[str, int] = {}
        """The partition counts at the end; 0 means no topic."""

    async def start(self) -> None:
        await self._create(_NAMES[0], 2)

    async def run(self, until_s: float) -> None:
        while self.context.now_s() < until_s:
            name = _NAMES[self._chance.randrange(len(_NAMES))]
            action = self._chance.randrange(3)
            if action == 0:
                await self._create(name, 1 + self._chance.randrange(_MOST_PARTITIONS))
            elif action == 1:
                await self._expand(name, 2 + self._chance.randrange(2 * _MOST_PARTITIONS))
            else:
                await self._delete(name)
            await asyncio.sleep(self._chance.randrange(_PAUSE_MS) / 1000)

    async def settle(self) -> None:
        """Delete all topics, make some of them again, and wait until they are as requested.

        Before that, every deletion that is already in the store must be carried out without a new request.
        """
        await asyncio.sleep(_LATE_REQUESTS_S)
        while self._deleting():
            await asyncio.sleep(_LOOK_EVERY_S)
        for name in _NAMES:
            await self._delete(name)
        await self._until({})
        self._wanted = {
            name: 1 + self._chance.randrange(_MOST_PARTITIONS) for name in _NAMES if self._chance.randrange(2)
        }
        for name, partitions in self._wanted.items():
            await self._create(name, partitions)
        await self._until(self._wanted)

    def check(self) -> Iterator[str]:
        """The partitions of one life of a topic never become fewer."""
        for name, topic in self._topics():
            key, count = (name, topic.topic_id), len(topic.partitions)
            if count < self._seen.get(key, 0):
                yield f"the topic {name} has {count} partitions, but had {self._seen[key]} before"
            self._seen[key] = count

    async def finish(self) -> AsyncIterator[str]:
        found = {name: len(topic.partitions) for name, topic in self._topics()}
        if found != self._wanted:
            yield f"the topics were to have {self._wanted} partitions at the end, but have {found}"
        self._controller.close()

    def _topics(self) -> Iterator[tuple[str, TopicZNode]]:
        return (each for each in topics_in(self.context.cluster.store.tree) if each[0] in _NAMES)

    def _deleting(self) -> tuple[str, ...]:
        """Return the topics whose deletion the store has been asked for."""
        return self.context.cluster.store.tree.children(DeleteTopic.PARENT)

    async def _until(self, wanted: dict[str, int]) -> None:
        """Wait for these topics; repeat what the store has not heard of."""
        while (found := {name: len(topic.partitions) for name, topic in self._topics()}) != wanted:
            await asyncio.sleep(_LOOK_EVERY_S)
            for name in _NAMES:
                if name in wanted and name not in found:
                    await self._create(name, wanted[name])
                elif name in found and name not in wanted and name not in self._deleting():
                    await self._delete(name)

    async def _create(self, name: str, partitions: int) -> None:
        answer = await self._controller.ask(new_topic(name, partitions, 3, {}))
        self._note(f"create {name}", None if answer is None else answer.topics[0].error_code)

    async def _expand(self, name: str, partitions: int) -> None:
        topic = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=partitions, assignments=None)
        answer = await self._controller.ask(
            CreatePartitionsRequest(topics=[topic], timeout_ms=REQUEST_TIMEOUT_MS, validate_only=False)
        )
        self._note(f"expand {name} to {partitions}", None if answer is None else answer.results[0].error_code)

    async def _delete(self, name: str) -> None:
        topic = DeleteTopicsRequest.DeleteTopicState(name=name)
        answer = await self._controller.ask(
            DeleteTopicsRequest(topics=[topic], topic_names=[name], timeout_ms=REQUEST_TIMEOUT_MS)
        )
        self._note(f"delete {name}", None if answer is None else answer.responses[0].error_code)

    def _note(self, what: str, code: int | None) -> None:
        outcome = "no response" if code is None else ErrorCode.of(code).name
        self.context.note(f"{what}: {outcome}")
