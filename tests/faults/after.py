"""The state after a run: the whole log, the replicas' files, and the ISRs."""

from __future__ import annotations

import time
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

_CLIENT_S = 60.0
_SAME_S = 120.0
_POLL_S = 0.3
"""How long a client waits for its allowed number of messages."""


def until_in_sync(brokers: BrokerProcesses, timeout_s: float = 180.0) -> None:
    """Wait until every broker knows all brokers, the same controller and topics, and full ISRs."""
    admins = [AdminClient(quiet(broker.address)) for broker in brokers.values()]

    def in_sync() -> bool:
        try:
            told = [admin.list_topics(timeout=_CLIENT_S) for admin in admins]
        except KafkaException:  # the broker had no metadata yet
            return False
        agreed = {(each.controller_id, frozenset(each.brokers), frozenset(each.topics)) for each in told}
        found = [
            each for view in told for topic in view.topics.values() for each in topic.partitions.values()
        ]
        return (
            len(agreed) == 1
            and told[0].brokers.keys() == brokers.keys()
            and bool(found)
            and all(each.leader >= 0 and len(each.isrs) == len(each.replicas) for each in found)
        )

    wait_for("all replicas in sync", in_sync, timeout_s)


def read_everything(bootstrap: str) -> FinalLog:
    """Read all partitions from start to high watermark with a new client."""
    consumer = Consumer(quiet(bootstrap, **{"group.id": "afterwards", "enable.partition.eof": False}))
    final: FinalLog = {}
    try:
        for number in range(PARTITIONS):
            partition = TopicPartition(TOPIC, number, 0)
            high = _end_of(partition, consumer)
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


def _end_of(partition: TopicPartition, consumer: Consumer) -> int:
    """Return the high watermark. Retry without a leader: on a busy machine a session may expire."""
    deadline = time.monotonic() + _CLIENT_S
    while True:
        try:
            _, high = consumer.get_watermark_offsets(partition, timeout=_CLIENT_S)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)
        else:
            return int(high)


def until_the_same(brokers: BrokerProcesses) -> None:
    """Wait until followers have the last records: a leaving member is answered before they do.

    If they never get them, `different_replicas` reports it.
    """
    deadline = time.monotonic() + _SAME_S
    while different_replicas(brokers) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def different_replicas(brokers: BrokerProcesses) -> list[str]:
    """Return the partitions whose files differ between brokers."""
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
