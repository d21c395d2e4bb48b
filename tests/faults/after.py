"""What is left when everything is well again: the whole log, the replicas' files, who is in sync."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from harness.brokers import wait_for
from tests.faults.recording import PARTITIONS, TOPIC, quiet

if TYPE_CHECKING:
    from pathlib import Path

    from harness.brokers import BrokerProcesses
    from tests.faults.history import FinalLog

_CLIENT_S = 10.0
_POLL_S = 0.3
"""A client waits for as many messages as it may have for as long as this."""


def until_in_sync(brokers: BrokerProcesses, timeout_s: float = 90.0) -> None:
    """Every partition has a leader and every replica in its ISR."""
    admin = AdminClient(quiet(brokers.bootstrap))

    def in_sync() -> bool:
        try:
            topics = admin.list_topics(timeout=_CLIENT_S).topics.values()
        except KafkaException:  # asked of a broker that has not heard of anybody yet
            return False
        found = [each for topic in topics for each in topic.partitions.values()]
        return bool(found) and all(
            each.leader >= 0 and len(each.isrs) == len(each.replicas) for each in found
        )

    wait_for("all replicas in sync", in_sync, timeout_s)


def read_everything(bootstrap: str) -> FinalLog:
    """All partitions from the beginning to the high watermark, with a client that has seen nothing yet."""
    consumer = Consumer(quiet(bootstrap, **{"group.id": "afterwards", "enable.partition.eof": False}))
    final: FinalLog = {}
    try:
        for number in range(PARTITIONS):
            partition = TopicPartition(TOPIC, number, 0)
            _, high = consumer.get_watermark_offsets(partition, timeout=_CLIENT_S)
            consumer.assign([partition])
            entries = final[number] = []
            while not entries or entries[-1][0] < high - 1:
                if high == 0:
                    break
                for message in consumer.consume(500, _POLL_S):
                    if message.error():
                        raise AssertionError(f"reading everything: {message.error()}")
                    entries.append((message.offset(), message.value().decode()))
    finally:
        consumer.close()
    return final


def different_replicas(brokers: BrokerProcesses) -> list[str]:
    """Partitions whose files are not the same bytes on all brokers. The brokers must have stopped."""
    problems = []
    names = {
        path.name for broker in brokers.values() for path in broker.data.glob("log-*/*-*") if path.is_dir()
    }
    for name in sorted(names):
        copies = {broker.id: _bytes_of(broker.data, name) for broker in brokers.values()}
        for (one, left), (other, right) in pairwise(sorted(copies.items())):
            if left != right:
                problems.append(
                    f"different: {name} has {len(left)} bytes on broker {one} and {len(right)} on {other}, "
                    f"the same up to {_first_difference(left, right)}"
                )
    return problems


def _bytes_of(data: Path, name: str) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(data.glob(f"log-*/{name}/*.log")))


def _first_difference(left: bytes, right: bytes) -> int:
    shorter = min(len(left), len(right))
    return next((at for at in range(shorter) if left[at] != right[at]), shorter)
