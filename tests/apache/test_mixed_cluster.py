"""Apache Kafka 3.9 brokers and one of ours in one cluster, under a controller of either kind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from harness.brokers import wait_for
from tests.apache.mixed import Kind, MixedSide, mixed_cluster
from tests.apache.test_reassign_like_kafka import Ask, Mover
from tests.faults.recording import quiet
from tests.often import often

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.apache
WAIT_S = 120
SETTINGS = {
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "zookeeper.session.timeout.ms": "40000",
}
PLACES = {0: (0, 1), 1: (1, 2), 2: (2, 0)}
MOVES = (Ask(0, (2, 0)), Ask(1, (0, 2)), Ask(2, (1, 0)))
RECORDS = 300


def write(bootstrap: str, topic: str, values: range) -> None:
    """Write these numbers with acks=all, and check that each is acknowledged."""
    acknowledged = []
    producer = Producer(quiet(bootstrap, **{"enable.idempotence": True, "message.timeout.ms": WAIT_S * 1000}))
    for value in values:
        producer.produce(
            topic,
            str(value).encode(),
            partition=value % len(PLACES),
            on_delivery=lambda error, _: acknowledged.append(error),
        )
    producer.flush(WAIT_S)
    assert acknowledged == [None] * len(values)


def read(bootstrap: str, topic: str, count: int) -> list[int]:
    """Return that many numbers of all partitions, sorted."""
    consumer = Consumer(quiet(bootstrap, **{"group.id": "reader", "auto.offset.reset": "earliest"}))
    found: list[int] = []
    consumer.assign([TopicPartition(topic, number, 0) for number in PLACES])

    def all_found() -> bool:
        records = consumer.consume(count, 0.5)
        found.extend(int(record.value()) for record in records if not record.error())
        return len(found) >= count

    try:
        wait_for(f"{count} records of {topic}", all_found, WAIT_S)
    finally:
        consumer.close()
    return sorted(found)


async def topics_moves_and_deletion(side: MixedSide) -> None:
    """Create a topic, write, move every partition, write, read everything, and delete it."""
    mover = Mover(side)
    assert (await mover.create("t", by_hand=PLACES))[0] == 0
    await asyncio.to_thread(write, side.bootstrap, "t", range(RECORDS))
    for ask in MOVES:
        assert await mover.alter("t", ask) == 0
    await mover.until_moved("t", list(PLACES))
    assert await mover.node("t") == {ask.partition: (ask.target, (), ()) for ask in MOVES}
    for ask in MOVES:
        assert ask.target is not None
        _, isr, _, _ = await mover.state("t", ask.partition)
        assert isr == set(ask.target)
    await asyncio.to_thread(write, side.bootstrap, "t", range(RECORDS, 2 * RECORDS))
    assert await asyncio.to_thread(read, side.bootstrap, "t", 2 * RECORDS) == list(range(2 * RECORDS))
    assert await mover.delete("t") == [("t", 0)]
    await mover.until_deleted("t")


@pytest.mark.parametrize("first", often(Kind, Kind.OURS), ids=lambda kind: kind.value)
def test_partitions_of_both_kinds_move_under_either_controller(
    jars: Path, tmp_path: Path, first: Kind
) -> None:
    async def story() -> None:
        async with mixed_cluster(tmp_path, first, SETTINGS) as side:
            await topics_moves_and_deletion(side)

    asyncio.run(story())
