"""Clients that keep working while their cluster changes: every acknowledgement must hold.

with Traffic(bootstrap, "orders", partitions=5) as traffic:
    …
    traffic.check()
"""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from confluent_kafka import Message

WAIT_S = 120
ANY_FILL = ("--fill", "1")
"""A broker of Apache Kafka reports the machine's disk, which may be full of other things."""
PAUSE_S = 0.01
POLL_S = 0.1
LOAD_BYTES = 10_000

Records = dict[tuple[int, int], bytes]
"""Values by partition and offset."""


class Traffic(AbstractContextManager["Traffic"]):
    """One producer with acks=all and one group member, each in a thread of its own."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.bootstrap, self.topic, self.partitions = bootstrap, topic, partitions
        self.acknowledged: Records = {}
        self.read: Records = {}
        self._troubles: list[object] = []
        self._last = threading.Event()
        self._leave = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), name=work.__name__)
            for work in (self._produce, self._consume)
        ]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._last.set()
        self._leave.set()
        for thread in self._threads:
            thread.join()

    def flows(self) -> bool:
        """Return whether records have been read."""
        assert not self._troubles, self._troubles
        return bool(self.read)

    def check(self) -> None:
        """Stop writing, read the rest: every acknowledged record is there, once, at its offset.

        The group has read it, and reading from the beginning gives the same.
        """
        self._last.set()
        self._threads[0].join(WAIT_S)
        deadline = time.monotonic() + WAIT_S
        while not self.acknowledged.items() <= self.read.items():
            assert not self._troubles, self._troubles
            missing = self.acknowledged.keys() - self.read.keys()
            assert time.monotonic() < deadline, f"{len(missing)} records have not been read: {min(missing)}"
            time.sleep(PAUSE_S)
        assert not self._troubles, self._troubles
        assert len(set(self.acknowledged.values())) == len(self.acknowledged)
        everything = read_all(self.bootstrap, self.topic, self.partitions)
        assert self.read.items() <= everything.items()
        written = [value for value in everything.values() if not value.startswith(b"load ")]
        assert sorted(written) == sorted(self.acknowledged.values())

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (handed to the test's own thread)
            self._troubles.append(error)

    def _produce(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 0}
        )
        number = 0
        while not self._last.is_set():
            producer.produce(
                self.topic,
                b"record %d" % number,
                partition=number % self.partitions,
                on_delivery=self._delivered,
            )
            producer.poll(PAUSE_S)
            number += 1
        if left := producer.flush(WAIT_S):
            self._troubles.append(f"{left} records were never answered")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        where = message.partition(), message.offset()
        if error is not None:
            self._troubles.append(error)
        elif where in self.acknowledged:
            self._troubles.append(f"{where} was acknowledged twice")
        else:
            self.acknowledged[where] = message.value()

    def _consume(self) -> None:
        settings = {"group.id": "watchers", "auto.offset.reset": "earliest"}
        with closing(Consumer({"bootstrap.servers": self.bootstrap, **settings})) as consumer:
            consumer.subscribe([self.topic])
            while not self._leave.is_set():
                message = consumer.poll(POLL_S)
                if message is not None and message.error() is None:
                    self._note(message)

    def _note(self, message: Message) -> None:
        where, value = (message.partition(), message.offset()), message.value()
        if self.read.setdefault(where, value) != value:
            self._troubles.append(f"{where} was {self.read[where]!r} and is {value!r}")


def load(bootstrap: str, topic: str, partitions: int, bytes_each: int) -> None:
    """Write so many bytes to every partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in range(bytes_each // LOAD_BYTES):
        for partition in range(partitions):
            producer.produce(topic, b"load %d " % number + bytes(LOAD_BYTES), partition=partition)
            producer.poll(0)
    assert producer.flush(WAIT_S) == 0


def read_all(bootstrap: str, topic: str, partitions: int) -> Records:
    """Read from the beginning to the present end."""
    found: Records = {}
    settings = {"group.id": "nobody", "enable.auto.commit": False, "enable.partition.eof": True}
    with closing(Consumer({"bootstrap.servers": bootstrap, **settings})) as consumer:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
        open_ = set(range(partitions))
        deadline = time.monotonic() + WAIT_S
        while open_:
            assert time.monotonic() < deadline, f"the ends of {open_} were not reached"
            message = consumer.poll(POLL_S)
            if message is None:
                continue
            if (error := message.error()) is None:
                found[message.partition(), message.offset()] = message.value()
            elif error.code() == KafkaError._PARTITION_EOF:
                open_.discard(message.partition())
    return found
