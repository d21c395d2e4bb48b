"""The demo's scene on a live cluster: three brokers in this process, kafka-python writing and reading."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import closing

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from restow.assignors.adapters.kafka_python import CooperativeSticky
from restow.cluster.embedded import EmbeddedCluster
from restow.model import TopicPartition

TOPIC = "orders"
PARTITIONS = 6
RECORDS = 5_000
PATIENCE_S = 60


def play() -> None:
    """Start the cluster, use it, stop a broker under it, read everything back."""
    logging.getLogger("restow").setLevel(
        logging.ERROR
    )  # that a stopped broker does not answer is no news here
    asyncio.run(_story())


async def _story() -> None:
    started = time.perf_counter()
    # Groups are kept in a topic that is made when it is first needed, here with only two brokers left.
    two = {"offsets.topic.replication.factor": "2"}
    async with EmbeddedCluster(brokers=3, racks=("a", "b", "c"), properties=two) as cluster:
        print(f"three brokers, up in {time.perf_counter() - started:.2f} s: {cluster.bootstrap}\n")
        await asyncio.to_thread(_create, cluster.bootstrap)
        await asyncio.to_thread(_write, cluster.bootstrap)
        print(_leaders(cluster))
        await cluster.stop_broker(1)
        print("broker 1 is stopped; what it led is led by others, before it is gone\n")
        print(_leaders(cluster))
        await asyncio.to_thread(_read, cluster.bootstrap)


def _create(bootstrap: str) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        admin.create_topics([NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=3)])


def _write(bootstrap: str) -> None:
    with closing(KafkaProducer(bootstrap_servers=bootstrap, acks="all")) as producer:
        for number in range(RECORDS):
            producer.send(TOPIC, f"order {number}".encode())
        producer.flush()
    print(f"kafka-python wrote {RECORDS:,} records, acknowledged by all in-sync replicas\n")


def _leaders(cluster: EmbeddedCluster) -> str:
    """Return the leader and the ISR of each partition, as a running broker knows them."""
    running = next(broker for broker in cluster.brokers.values() if broker.is_running)
    metadata = running.services.metadata
    lines = ["partition  leader  in sync"]
    for number in range(PARTITIONS):
        known = metadata.partition(TopicPartition(TOPIC, number))
        if known is not None:
            lines.append(f"{number:>9}  {known.leader_id:>6}  {' '.join(map(str, sorted(known.isr)))}")
    return "\n".join(lines) + "\n"


def _read(bootstrap: str) -> None:
    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id="demo",
        auto_offset_reset="earliest",
        partition_assignment_strategy=[CooperativeSticky],
    )
    with closing(consumer):
        found: set[bytes] = set()
        until = time.monotonic() + PATIENCE_S
        while len(found) < RECORDS and time.monotonic() < until:
            for records in consumer.poll(timeout_ms=5_000).values():
                found.update(record.value for record in records)
    if len(found) < RECORDS:
        raise SystemExit(f"demo: only {len(found):,} of {RECORDS:,} records were read in {PATIENCE_S} s")
    print(f"a group read back {len(found):,} records from the two that are left: nothing is lost")
