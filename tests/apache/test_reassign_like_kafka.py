"""Our reassignments beside those of Apache Kafka 3.9 in ZooKeeper mode: same requests, answers and trees.

With all brokers alive every move completes. With a dead broker, moves to it wait, and are replaced and
cancelled meanwhile. `docs/reassignment.md` lists the differences.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from restow.cluster.store import NoNode
from restow.cluster.store.znodes import ControllerZNode, TopicZNode
from restow.wire.messages import AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest
from tests.apache.test_controller_like_kafka import Pair, pair
from tests.apache.two_sides import NOT_CONTROLLER, PATIENCE_S, Conversation
from tests.seeds import seeded
from tests.unit.broker.conversations import Client

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["pair"]
pytestmark = pytest.mark.apache

ALTER, LIST = 45, 46
DEAD = 2
PARTITIONS = 3
INVALID = ((), (1, 1), (-1,), (0, 9))
IN_CI, IN_FULL = 8, 100


class Ask(NamedTuple):
    """The target of a partition; None cancels."""

    partition: int
    target: tuple[int, ...] | None


class Script(NamedTuple):
    """The start of a topic, and its requests one after the other."""

    topic: str
    replicas: dict[int, tuple[int, ...]]
    asks: tuple[Ask, ...]


def sequence_of(seed: int) -> Script:
    """Return the same script for the same seed."""
    chance = Random(seeded(seed))

    def some(replication_factor: int) -> tuple[int, ...]:
        return tuple(chance.sample(range(3), replication_factor))

    asks = []
    for _ in range(8):
        kind = chance.random()
        partition = chance.randrange(PARTITIONS) if kind < 0.95 else 7
        target = None if kind < 0.2 else chance.choice(INVALID) if kind < 0.3 else some(chance.randint(1, 3))
        asks.append(Ask(partition, target))
    replication_factor = chance.choice((2, 3))
    return Script(
        f"seed-{seed}", {number: some(replication_factor) for number in range(PARTITIONS)}, tuple(asks)
    )


class Mover(Conversation):
    """Submits moves and inspects them."""

    async def alter(self, topic: str, ask: Ask) -> int:
        make = AlterPartitionReassignmentsRequest.ReassignableTopic
        replicas = None if ask.target is None else self._outward(ask.target)
        partition = make.ReassignablePartition(partition_index=ask.partition, replicas=replicas)
        body = AlterPartitionReassignmentsRequest(
            timeout_ms=30_000, topics=[make(name=topic, partitions=[partition])]
        )
        ((answer,),) = [each.partitions for each in (await self.of_controller(ALTER, body)).responses]
        return int(answer.error_code)

    async def moving(self, topic: str) -> Any:
        """Return the topic's reassignments: replicas, adding and removing."""
        make = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
        wanted = [make(name=topic, partition_indexes=list(range(PARTITIONS)))]
        answer = await self.of_controller(LIST, ListPartitionReassignmentsRequest(topics=wanted))
        return sorted(
            (
                each.partition_index,
                self._inward(each.replicas),
                self._inward(each.adding_replicas),
                self._inward(each.removing_replicas),
            )
            for found in answer.topics
            for each in found.partitions
        )

    async def node(self, topic: str) -> Any:
        """Return the same from the topic's node, for all partitions."""
        found = TopicZNode.decode((await self.side.store.get(TopicZNode.path(topic))).data, topic)
        return {number: tuple(map(self._inward, each)) for number, each in sorted(found.partitions.items())}

    async def until_moved(self, topic: str, partitions: Sequence[int]) -> None:
        """Wait until these are at rest."""
        async with asyncio.timeout(PATIENCE_S):
            while any(added or removed for _, added, removed in await self.some(topic, partitions)):
                await asyncio.sleep(0.05)

    async def some(self, topic: str, partitions: Sequence[int]) -> list[Any]:
        node = await self.node(topic)
        return [node[number] for number in partitions]

    async def of_controller(self, api_key: int, body: Any) -> Any:
        """Ask the controller, and retry when it has just changed or there is none."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(OSError, NoNode):
                    answer = await self._of_controller(api_key, body)
                    if answer.error_code != NOT_CONTROLLER:
                        return answer
                await asyncio.sleep(0.1)

    async def _of_controller(self, api_key: int, body: Any) -> Any:
        node = await self.side.store.get(ControllerZNode.PATH)
        client = await Client.connect(self.side.port(ControllerZNode.decode(node.data).broker_id))
        client.ask(api_key, 0, 1, body)
        try:
            return await client.answer(api_key, 0)
        finally:
            client.connection.close()


async def tell(mover: Mover, it: Script, dead: int | None) -> list[Any]:
    """Return the answer to each request, and the tree once nothing more can happen."""
    seen: list[Any] = []
    for ask in it.asks:
        code = await mover.alter(it.topic, ask)
        if code == 0 and (ask.target is None or dead not in ask.target):
            await mover.until_moved(it.topic, (ask.partition,))
        seen.append((ask, code, await mover.moving(it.topic), await mover.node(it.topic)))
    return seen


@pytest.mark.parametrize(
    "count", [IN_CI, pytest.param(IN_FULL, marks=pytest.mark.full)], ids="{} sequences".format
)
def test_moves_are_answered_and_end_like_kafkas(pair: Pair, count: int) -> None:
    sequences = [sequence_of(seed) for seed in range(count)]

    async def story(conversation: Conversation) -> Any:
        mover = Mover(conversation.side)
        seen = []
        for it in sequences:
            name = f"{it.topic}-of-{count}"
            assert (await mover.create(name, by_hand=it.replicas))[0] == 0
            seen.append(await tell(mover, it._replace(topic=name), None))
            home = tuple(Ask(number, replicas) for number, replicas in it.replicas.items())
            seen.append(await tell(mover, Script(name, it.replicas, home), None))
        await mover.side.stop(DEAD)
        for it in sequences:
            for number in range(PARTITIONS):
                await until_out_of_sync(mover, f"{it.topic}-of-{count}", number)
            seen.append(await tell(mover, it._replace(topic=f"{it.topic}-of-{count}"), DEAD))
        await mover.side.start(DEAD)
        for it in sequences:
            name = f"{it.topic}-of-{count}"
            await mover.until_moved(name, range(PARTITIONS))
            seen.append(await mover.node(name))
            for number in range(PARTITIONS):
                leader, isr, _, _ = await mover.state(name, number)
                assert leader in isr
        return seen

    assert len(pair.both(story)) == 4 * count


async def until_out_of_sync(mover: Mover, topic: str, number: int) -> None:
    """Wait until a dead broker is in no ISR, unless it is the last in it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            leader, isr, _, _ = await mover.state(topic, number)
            if leader != DEAD and (DEAD not in isr or len(isr) == 1):
                return
            await asyncio.sleep(0.05)
