"""The demo's clients, each a process of its own: one that writes, one that reads in a group.

    python scripts/demo_load.py write BOOTSTRAP FILE      until its input is closed
    python scripts/demo_load.py read BOOTSTRAP

Every record has a number. The writer notes the numbers that all in-sync replicas have acknowledged, and when:
one line per second while it runs, the numbers themselves at its end. What it noted must be found later.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer

RECORD_BYTES = 4_000
GROUP = "billing"
# Topic by topic the replicas of each partition, and how much of the load it gets: broker 0 has far too much.
TOPICS: dict[str, tuple[tuple[tuple[int, int], int], ...]] = {
    "orders": (
        ((0, 1), 9),
        ((0, 2), 7),
        ((0, 4), 8),
        ((0, 1), 6),
        ((3, 1), 2),
        ((0, 2), 7),
        ((1, 0), 5),
        ((0, 4), 6),
    ),
    "clicks": (((0, 1), 5), ((1, 3), 3), ((0, 2), 4), ((4, 0), 2), ((0, 1), 5), ((2, 3), 1)),
    "payments": (((1, 0), 3), ((0, 4), 4), ((2, 1), 2), ((0, 1), 3)),
}
FIRST_BYTES = 48_000_000
BYTES_PER_S = 250_000
_TURN_S = 0.05


@dataclass
class Noted:
    """The acknowledged records. The producer calls back from a thread of its own."""

    acked: list[int] = field(default_factory=list)
    failed: int = 0

    def ack(self, number: int) -> None:
        self.acked.append(number)

    def fail(self) -> None:
        self.failed += 1


def schedule() -> list[tuple[str, int]]:
    """Return a mixed round of topics and partitions, each as often as its weight."""
    weights = [
        (topic, partition, weight)
        for topic, partitions in TOPICS.items()
        for partition, (_, weight) in enumerate(partitions)
    ]
    most = max(weight for *_, weight in weights)
    return [
        (topic, p) for turn in range(most) for topic, p, weight in weights if turn * weight % most < weight
    ]


def write(bootstrap: str, file: Path) -> None:
    """Write the first load as fast as possible, then steadily until the input is closed."""
    noted, rounds = Noted(), schedule()
    told = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), told.set()), daemon=True).start()
    number = 0
    with closing(_producer(bootstrap)) as producer:
        while number * RECORD_BYTES < FIRST_BYTES and not told.is_set():
            _send(producer, rounds, number, noted)
            number += 1
        producer.flush()
        _say(len(noted.acked))
        began, first, last = time.monotonic(), number, time.monotonic()
        while not told.wait(_TURN_S):
            due = first + int((time.monotonic() - began) * BYTES_PER_S / RECORD_BYTES)
            while number < due:
                _send(producer, rounds, number, noted)
                number += 1
            if time.monotonic() - last >= 1:
                last = time.monotonic()
                _say(len(noted.acked))
        producer.flush()
    _say(len(noted.acked))
    file.write_text(json.dumps({"acked": sorted(noted.acked), "failed": noted.failed, "sent": number}))


def _producer(bootstrap: str) -> KafkaProducer:
    return KafkaProducer(
        bootstrap_servers=bootstrap, acks="all", linger_ms=10, batch_size=64_000, delivery_timeout_ms=120_000
    )


def _send(producer: KafkaProducer, rounds: list[tuple[str, int]], number: int, noted: Noted) -> None:
    topic, partition = rounds[number % len(rounds)]
    sent = producer.send(topic, f"{number} ".encode().ljust(RECORD_BYTES, b"."), partition=partition)
    sent.add_callback(lambda _: noted.ack(number))
    sent.add_errback(lambda _: noted.fail())


def _say(acked: int) -> None:
    print(json.dumps({"at": time.time(), "acked": acked}), flush=True)


def read(bootstrap: str) -> None:
    """Poll with two members of one group, a thread each, until this process is ended."""

    def member() -> None:
        with closing(_consumer(bootstrap, group_id=GROUP)) as consumer:
            consumer.subscribe(["orders", "payments"])
            while True:
                consumer.poll(timeout_ms=5_000)

    threads = [threading.Thread(target=member, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    sys.stdin.read()


def _consumer(bootstrap: str, **options: Any) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", auto_commit_interval_ms=1_000, **options
    )


def everything(bootstrap: str, patience_s: float) -> set[int]:
    """Read every partition from beginning to end; return the numbers of all records."""
    from kafka import TopicPartition

    with closing(_consumer(bootstrap, max_partition_fetch_bytes=4_000_000)) as consumer:
        partitions = [TopicPartition(name, n) for name, all_ in TOPICS.items() for n in range(len(all_))]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions)
        found: set[int] = set()
        until = time.monotonic() + patience_s
        while any(consumer.position(each) < ends[each] for each in partitions):
            if time.monotonic() > until:
                break
            for records in consumer.poll(timeout_ms=5_000, max_records=5_000).values():
                found.update(int(record.value[: record.value.index(b" ")]) for record in records)
    return found


if __name__ == "__main__":
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    if sys.argv[1] == "write":
        write(sys.argv[2], Path(sys.argv[3]))
    else:
        read(sys.argv[2])
