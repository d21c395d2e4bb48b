"""Consumers that poll in a thread of their own, so that a test can watch their partitions."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, TopicPartition
from kafka import ConsumerRebalanceListener, KafkaConsumer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    from py4j.java_gateway import JavaGateway

    from tests.clients.topics import Held, Topics

WAIT_S = 180
POLL_MS = 50
# If the timeout of kafka-python's poll ends between its JoinGroup and its SyncGroup, it never takes up its
# assignment. So the timeout is longer than a test needs, and a record ends the poll instead.
LONG_POLL_MS = 20_000
# Longer than a busy machine stalls, so that no live member is removed; and so much shorter than the wait that
# a dead member is gone by then.
SESSION = {"session_timeout_ms": 45_000, "heartbeat_interval_ms": 200}


class Watched(AbstractContextManager["Watched"], ABC):
    """A consumer in a thread. `held` are its latest partitions; `check` raises its errors.

    `read` has the values that came, where the client's class keeps them.
    """

    def __init__(self, topics: Topics, strategy: Any) -> None:
        self.topics = topics
        self.strategy = strategy
        self.held: Held = frozenset()
        self.read: list[bytes] = []
        self._leave = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded, name=type(self).__name__)

    @abstractmethod
    def consume(self) -> None:
        """Read until `_leave` is set, keep `held` up to date, and leave the group."""

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()
        if error is None:
            self.check()

    def leave(self) -> None:
        self._leave.set()
        self.topics.nudge()
        self._thread.join()

    def check(self) -> None:
        if self._error is not None:
            raise AssertionError(f"{type(self).__name__} failed") from self._error

    def _guarded(self) -> None:
        try:
            self.consume()
        except BaseException as error:  # noqa: BLE001 (handed to the test's own thread)
            self._error = error
        finally:
            self.held = frozenset()


class KafkaPython(Watched, ConsumerRebalanceListener):
    def consume(self) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=self.topics.bootstrap,
            group_id=self.topics.group,
            partition_assignment_strategy=[self.strategy],
            auto_offset_reset="earliest",
            **SESSION,
        )
        try:
            consumer.subscribe(self.topics.names, listener=self)
            while not self._leave.is_set():
                for records in consumer.poll(timeout_ms=LONG_POLL_MS).values():
                    self.read += [record.value for record in records]
        finally:
            consumer.close()

    def on_partitions_assigned(self, assigned: Iterable[tuple[str, int]]) -> None:
        self.held |= {(topic, partition) for topic, partition in assigned}

    def on_partitions_revoked(self, revoked: Iterable[tuple[str, int]]) -> None:
        self.held -= {(topic, partition) for topic, partition in revoked}


class Aiokafka(Watched):
    def consume(self) -> None:
        asyncio.run(self._consume())

    async def _consume(self) -> None:
        consumer = AIOKafkaConsumer(
            *self.topics.names,
            bootstrap_servers=self.topics.bootstrap,
            group_id=self.topics.group,
            partition_assignment_strategy=[self.strategy],
            **SESSION,
        )
        try:
            await consumer.start()
            while not self._leave.is_set():
                await consumer.getmany(timeout_ms=POLL_MS)
                self.held = frozenset(map(tuple, consumer.assignment()))
        finally:
            await consumer.stop()


class Librdkafka(Watched):
    """confluent-kafka's consumer; `strategy` is the assignor's name."""

    def consume(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.topics.bootstrap,
                "group.id": self.topics.group,
                "partition.assignment.strategy": self.strategy,
                "auto.offset.reset": "earliest",
                **{key.replace("_", "."): value for key, value in SESSION.items()},
            }
        )
        try:
            consumer.subscribe(list(self.topics.names))
            while not self._leave.is_set():
                message = consumer.poll(POLL_MS / 1000)
                if message is not None and message.error() is None:
                    self.read.append(message.value())
                self.held = frozenset((each.topic, each.partition) for each in consumer.assignment())
        finally:
            consumer.close()


class Java(Watched):
    """Apache Kafka's own consumer, with its own assignor of the class named by `strategy`."""

    def __init__(self, topics: Topics, strategy: str, gateway: JavaGateway) -> None:
        super().__init__(topics, strategy)
        self._jvm = gateway.jvm

    def consume(self) -> None:
        bytes_ = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
        consumer = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
            {
                "bootstrap.servers": self.topics.bootstrap,
                "group.id": self.topics.group,
                "partition.assignment.strategy": f"org.apache.kafka.clients.consumer.{self.strategy}",
                "key.deserializer": bytes_,
                "value.deserializer": bytes_,
                **{key.replace("_", "."): str(value) for key, value in SESSION.items()},
            }
        )
        try:
            consumer.subscribe(list(self.topics.names))
            moment = self._jvm.java.time.Duration.ofMillis(POLL_MS)
            while not self._leave.is_set():
                consumer.poll(moment)
                self.held = frozenset((p.topic(), p.partition()) for p in consumer.assignment())
        finally:
            consumer.close()


def wait_until_shared_evenly(topics: Topics, members: Sequence[Watched]) -> list[Held]:
    """Wait until every partition has exactly one owner and all members have as many; return them."""
    quota = len(topics.everything) // len(members)
    return _wait_until_shared(topics, members, lambda sizes: set(sizes) == {quota})


def wait_until_shared(topics: Topics, members: Sequence[Watched]) -> list[Held]:
    """Wait until every partition has exactly one owner and no member has none; return them."""
    return _wait_until_shared(topics, members, all)


def _wait_until_shared(
    topics: Topics, members: Sequence[Watched], is_fair: Callable[[Sequence[int]], bool]
) -> list[Held]:
    held: list[Held] = []

    def settled() -> bool:
        held[:] = [member.held for member in members]
        times = Counter(partition for each in held for partition in each)
        once = times.keys() == topics.everything and set(times.values()) == {1}
        return once and is_fair([len(each) for each in held])

    _wait_until(settled, members)
    return held


def _wait_until(condition: Callable[[], bool], members: Sequence[Watched]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        for member in members:
            member.check()
        held = {f"{i} {type(member).__name__}": sorted(member.held) for i, member in enumerate(members)}
        assert time.monotonic() < deadline, f"not settled within {WAIT_S} s: {held}"
        time.sleep(0.02)


def keys_of_orders(bootstrap: str, partitions: int, wanted: int) -> set[bytes]:
    """Return the keys of so many records of the topic `orders`, or of those that arrived in a minute."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "enable.auto.commit": False})
    consumer.assign([TopicPartition("orders", number, 0) for number in range(partitions)])
    found: set[bytes] = set()
    try:
        for _ in range(60):
            found |= {message.key() for message in consumer.consume(1000, 1.0) if not message.error()}
            if len(found) >= wanted:
                break
    finally:
        consumer.close()
    return found
