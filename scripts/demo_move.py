"""The demo's scene of a move: a broker joins, and data goes to it under a throttle while a client writes."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import closing

from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPartition

from restow.client import ConfigResource, ConnectionSettings, KafkaAdmin, NewTopic, connected
from restow.cluster.embedded import EmbeddedCluster
from restow.execute.throttle.throttles import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from restow.model import TopicPartition
from restow.runtime.loop import run

TOPIC = "payments"
PARTITIONS = 4
RECORD_BYTES = 10_000
RECORDS = 4_000
MORE = 500
RATE = 4_000_000
PATIENCE_S = 90
BAR = 40


def play() -> None:
    """Fill three brokers, add a fourth, move half of the replicas to it, count everything afterwards."""
    logging.getLogger("restow").setLevel(logging.ERROR)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    run(_story())


async def _story() -> None:
    async with (
        EmbeddedCluster(brokers=3) as cluster,
        connected(ConnectionSettings(bootstrap=cluster.bootstrap)) as admin,
    ):
        await admin.create_topics(
            [NewTopic(name=TOPIC, by_hand={n: (n % 3, (n + 1) % 3) for n in range(PARTITIONS)})]
        )
        await asyncio.to_thread(_write, cluster.bootstrap, 0, RECORDS)
        new = await cluster.add_broker()
        print(f"broker {new} has joined; it holds nothing yet\n")
        targets = {TopicPartition(TOPIC, n): (n % 3, new) for n in range(PARTITIONS)}
        await _throttle(admin, targets, new, str(RATE))
        began = time.perf_counter()
        await admin.alter_partition_reassignments(targets)
        writing = asyncio.create_task(asyncio.to_thread(_write, cluster.bootstrap, RECORDS, MORE))
        await _watch(admin, new)
        await writing
        took = time.perf_counter() - began
        await _throttle(admin, targets, new, None)
        moved = await _size_on(admin, new)
        print(
            f"\nmoved {moved / 1e6:.0f} MB in {took:.1f} s at no more than {RATE / 1e6:.0f} MB/s; "
            "the throttles are off again"
        )
        for partition in (await admin.describe_topics([TOPIC]))[0].partitions:
            in_sync = sorted(partition.isr)
            print(f"  {TOPIC}-{partition.number}  replicas {partition.replicas}  in sync {in_sync}")
        await asyncio.to_thread(_count, cluster.bootstrap, RECORDS + MORE)


def _write(bootstrap: str, first: int, count: int) -> None:
    with closing(KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=5)) as producer:
        for number in range(first, first + count):
            producer.send(
                TOPIC, f"{number} ".encode().ljust(RECORD_BYTES, b"."), partition=number % PARTITIONS
            )
        producer.flush()


async def _throttle(
    admin: KafkaAdmin, targets: dict[TopicPartition, tuple[int, int]], new: int, rate: str | None
) -> None:
    """Set the throttle for senders and receivers; None removes it."""
    senders = ",".join(f"{name.partition}:{b}" for name in targets for b in range(3))
    receivers = ",".join(f"{name.partition}:{new}" for name in targets)
    lists = {LEADER_REPLICAS: senders, FOLLOWER_REPLICAS: receivers}
    changes = {
        ConfigResource("topic", TOPIC): {key: None if rate is None else value for key, value in lists.items()}
    }
    for broker in (0, 1, 2):
        changes[ConfigResource("broker", str(broker))] = {LEADER_RATE: rate}
    changes[ConfigResource("broker", str(new))] = {FOLLOWER_RATE: rate}
    for error in (await admin.incremental_alter_configs(changes)).values():
        if error is not None:
            raise SystemExit(f"demo: {error}")


async def _watch(admin: KafkaAdmin, new: int) -> None:
    """Print a line per second until no partition is moving."""
    goal = RECORDS * RECORD_BYTES
    until = time.monotonic() + PATIENCE_S
    while await admin.list_partition_reassignments():
        here = await _size_on(admin, new)
        done = min(here / goal, 1.0)
        print(f"  {'█' * int(done * BAR):<{BAR}}  {here / 1e6:5.1f} MB on broker {new}", flush=True)
        if time.monotonic() > until:
            raise SystemExit(f"demo: the move did not end in {PATIENCE_S} s")
        await asyncio.sleep(1)


async def _size_on(admin: KafkaAdmin, broker: int) -> int:
    disks = (await admin.describe_log_dirs([broker]))[broker]
    if isinstance(disks, Exception):
        raise SystemExit(f"demo: {disks}")
    return sum(replica.size_bytes for replica in disks.replicas)


def _count(bootstrap: str, wanted: int) -> None:
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")) as consumer:
        consumer.assign([KafkaPartition(TOPIC, number) for number in range(PARTITIONS)])
        found: list[int] = []
        until = time.monotonic() + PATIENCE_S
        while len(found) < wanted and time.monotonic() < until:
            for records in consumer.poll(timeout_ms=2_000).values():
                found += [int(record.value.split()[0]) for record in records]
    if sorted(found) != list(range(wanted)):
        raise SystemExit(
            f"demo: {wanted:,} records were written, {len(set(found)):,} different ones are there"
        )
    print(f"\nall {wanted:,} records are there once each, those written during the move among them")
