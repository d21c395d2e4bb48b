"""Writers and readers on a mixed cluster, and moves that stay under way."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import Consumer, Producer, TopicPartition

from harness.brokers import wait_for
from restow.wire.messages import IncrementalAlterConfigsRequest
from tests.apache.two_sides import PATIENCE_S
from tests.faults.recording import quiet
from tests.unit.broker.conversations import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tests.apache.mixed import MixedSide
    from tests.apache.test_reassign_like_kafka import Ask, Mover

WAIT_S = 120
PARTITIONS = 3
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_ALTER_CONFIGS = 44
_TOPIC, _BROKER = 2, 4
_SET, _REMOVE = 0, 1
SLOW = "100"
"""Bytes per second: a window lets one batch through."""


def producer(bootstrap: str, **more: Any) -> Producer:
    return Producer(
        quiet(bootstrap, **{"enable.idempotence": True, "message.timeout.ms": WAIT_S * 1000, **more})
    )


def write(bootstrap: str, topic: str, values: range, **more: Any) -> None:
    """Write these numbers with acks=all, and check that each is acknowledged."""
    answers: list[Any] = []
    sender = producer(bootstrap, **more)
    for value in values:
        sender.produce(
            topic,
            str(value).encode(),
            partition=value % PARTITIONS,
            on_delivery=lambda error, _: answers.append(error),
        )
    sender.flush(WAIT_S)
    assert answers == [None] * len(values)


def read(bootstrap: str, topic: str, count: int) -> list[int]:
    """Return all numbers in the topic, sorted. `count` is how many were written, or at most so many."""
    consumer = Consumer(quiet(bootstrap, **{"group.id": "reader", "enable.partition.eof": True}))
    found: list[int] = []
    ended: set[int] = set()
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])

    def all_found() -> bool:
        for record in consumer.consume(1000, 0.5):
            if not record.error():
                found.append(int(record.value()))
            elif record.error().name() == "_PARTITION_EOF":
                ended.add(record.partition())
        return len(ended) == PARTITIONS

    try:
        wait_for(f"the ends of {topic}", all_found, WAIT_S)
    finally:
        consumer.close()
    assert len(found) <= count
    return sorted(found)


class Load:
    """A thread that writes rising numbers with acks=all until the block ends."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.acknowledged: list[int] = []
        self.sent = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    async def until_more(self) -> None:
        """Wait until some more records are acknowledged."""
        goal = len(self.acknowledged) + 50
        async with asyncio.timeout(PATIENCE_S):
            while len(self.acknowledged) < goal:
                await asyncio.sleep(0.05)

    def _work(self) -> None:
        sender = producer(self._bootstrap, **{"linger.ms": 2})
        while not self._over.wait(0.005):
            value = self.sent

            def told(error: object, _: object, value: int = value) -> None:
                if error is None:
                    self.acknowledged.append(value)

            sender.produce(
                self._topic, str(value).encode(), partition=value % self._partitions, on_delivery=told
            )
            self.sent += 1
            sender.poll(0)
        sender.flush(WAIT_S)


@asynccontextmanager
async def slow_moves(
    side: MixedSide, mover: Mover, topic: str, moves: Sequence[Ask], records: int, *, known: int = 3
) -> AsyncIterator[None]:
    """Write to the topic and start the moves under a throttle that comes off after the block."""
    await asyncio.to_thread(
        write, side.bootstrap, topic, range(records), **{"batch.num.messages": 2, "linger.ms": 0}
    )
    brokers = sorted(await mover.registered())
    assert len(brokers) == known
    for broker in brokers:
        await _throttle(side, broker, topic, on=True)
    for ask in moves:
        assert await mover.alter(topic, ask) == 0
    async with asyncio.timeout(PATIENCE_S):
        while not any(added for _, added, _ in await mover.some(topic, range(PARTITIONS))):
            await asyncio.sleep(0.05)
    yield
    for broker in brokers:
        await _throttle(side, broker, topic, on=False)


async def _throttle(side: MixedSide, broker: int, topic: str, *, on: bool) -> None:
    """Throttle all replicas of the topic on a broker, or end that. Ask the broker itself."""
    make = IncrementalAlterConfigsRequest.AlterConfigsResource
    wanted = {
        (_TOPIC, topic): dict.fromkeys(REPLICAS, "*"),
        (_BROKER, str(broker)): dict.fromkeys(RATES, SLOW),
    }
    resources = [
        make(
            resource_type=kind,
            resource_name=name,
            configs=[
                make.AlterableConfig(
                    name=key, config_operation=_SET if on else _REMOVE, value=value if on else None
                )
                for key, value in values.items()
            ],
        )
        for (kind, name), values in wanted.items()
    ]
    client = await Client.connect(side.port(broker))
    client.ask(_ALTER_CONFIGS, 1, 1, IncrementalAlterConfigsRequest(resources=resources, validate_only=False))
    try:
        answer = await client.answer(_ALTER_CONFIGS, 1)
    finally:
        client.connection.close()
    assert [each.error_code for each in answer.responses] == [0, 0]
