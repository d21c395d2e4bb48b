"""The three clients behind one face, for tests that cause the same fault to each of them."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PATIENCE_S = 120
SESSION_MS = 60_000
"""A machine that stands still must not remove a member."""
CONSUMER: dict[str, Any] = {
    "client_id": "tester",
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "session_timeout_ms": SESSION_MS,
    "metadata_max_age_ms": 1000,
    "retry_backoff_ms": 20,
}
"""Settings that consumers of kafka-python and aiokafka have in common."""


def do_nothing() -> None:
    """Go on at once."""


class FaultClient(Protocol):
    """Writes idempotently and reads with a group, as client `client_id`."""

    def send(
        self,
        bootstrap: str,
        topic: str,
        values: Sequence[bytes],
        *,
        timeout_ms: int = ...,
        after_first: Callable[[], object] = ...,
    ) -> None:
        """Write all values to partition 0 and return when all are acknowledged.

        `after_first` is called when the first one is, by a client that is connected to the leader.
        """

    def read(self, bootstrap: str, topic: str, group: str, count: int) -> list[bytes]:
        """Read so many records, and commit."""


class KafkaPython:
    """kafka-python."""

    def send(
        self,
        bootstrap: str,
        topic: str,
        values: Sequence[bytes],
        *,
        timeout_ms: int = 30_000,
        after_first: Callable[[], object] = do_nothing,
    ) -> None:
        with closing(
            KafkaProducer(
                bootstrap_servers=bootstrap,
                client_id="tester",
                acks="all",
                enable_idempotence=True,
                request_timeout_ms=timeout_ms,
                retry_backoff_ms=20,
                linger_ms=0,
            )
        ) as producer:
            producer.send(topic, values[0], partition=0).get(timeout=PATIENCE_S)
            after_first()
            sent = [producer.send(topic, value, partition=0) for value in values[1:]]
            for each in sent:
                each.get(timeout=PATIENCE_S)

    def read(self, bootstrap: str, topic: str, group: str, count: int) -> list[bytes]:
        found: list[bytes] = []
        with closing(
            KafkaConsumer(
                topic,
                bootstrap_servers=bootstrap,
                group_id=group,
                **CONSUMER,
            )
        ) as consumer:
            deadline = time.monotonic() + PATIENCE_S
            while len(found) < count and time.monotonic() < deadline:
                records = consumer.poll(timeout_ms=500, max_records=count - len(found))
                found += [record.value for batch in records.values() for record in batch]
            consumer.commit()
        return found


class Aiokafka:
    """aiokafka, on a loop of its own."""

    def send(
        self,
        bootstrap: str,
        topic: str,
        values: Sequence[bytes],
        *,
        timeout_ms: int = 30_000,
        after_first: Callable[[], object] = do_nothing,
    ) -> None:
        async def work() -> None:
            async with AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                client_id="tester",
                acks="all",
                enable_idempotence=True,
                request_timeout_ms=timeout_ms,
                retry_backoff_ms=20,
            ) as producer:
                await producer.send_and_wait(topic, values[0], partition=0)
                after_first()
                sent = [await producer.send(topic, value, partition=0) for value in values[1:]]
                await asyncio.gather(*sent)

        asyncio.run(asyncio.wait_for(work(), PATIENCE_S))

    def read(self, bootstrap: str, topic: str, group: str, count: int) -> list[bytes]:
        async def work() -> list[bytes]:
            found: list[bytes] = []
            async with AIOKafkaConsumer(
                topic,
                bootstrap_servers=bootstrap,
                group_id=group,
                **CONSUMER,
            ) as consumer:
                while len(found) < count:
                    records = await consumer.getmany(timeout_ms=500, max_records=count - len(found))
                    found += [record.value for batch in records.values() for record in batch]
                await consumer.commit()
            return found

        return asyncio.run(asyncio.wait_for(work(), PATIENCE_S))


class Confluent:
    """confluent-kafka, which is librdkafka."""

    def send(
        self,
        bootstrap: str,
        topic: str,
        values: Sequence[bytes],
        *,
        timeout_ms: int = 30_000,
        after_first: Callable[[], object] = do_nothing,
    ) -> None:
        refused: list[Any] = []
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": "tester",
                "enable.idempotence": True,
                "socket.timeout.ms": timeout_ms,
                "request.timeout.ms": timeout_ms,
                "retry.backoff.ms": 20,
                "reconnect.backoff.ms": 20,
                "linger.ms": 0,
                "topic.metadata.refresh.fast.interval.ms": 20,
            }
        )

        def produce(value: bytes) -> None:
            producer.produce(topic, value, partition=0, on_delivery=lambda error, _: refused.append(error))

        produce(values[0])
        assert producer.flush(PATIENCE_S) == 0
        after_first()
        for value in values[1:]:
            produce(value)
        assert producer.flush(PATIENCE_S) == 0
        assert refused == [None] * len(values)

    def read(self, bootstrap: str, topic: str, group: str, count: int) -> list[bytes]:
        found: list[bytes] = []
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": "tester",
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": SESSION_MS,
                "retry.backoff.ms": 20,
                "reconnect.backoff.ms": 20,
                "topic.metadata.refresh.fast.interval.ms": 20,
            }
        )
        try:
            consumer.subscribe([topic])
            deadline = time.monotonic() + PATIENCE_S
            while len(found) < count and time.monotonic() < deadline:
                record = consumer.poll(0.5)
                if record is not None and record.error() is None:
                    found.append(record.value())
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()
        return found


CLIENTS: dict[str, FaultClient] = {
    "kafka-python": KafkaPython(),
    "aiokafka": Aiokafka(),
    "confluent-kafka": Confluent(),
}
