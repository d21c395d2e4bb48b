"""Clients that write down everything they do: producers, members of a group, a reader, a watcher."""

from __future__ import annotations

import json
import random
import threading
import time
from itertools import count
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka import KafkaProducer

from tests.faults.history import Event, Kind, Op, value_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TOPIC = "numbers"
PARTITIONS = 3
GROUP = "readers"
_PAUSE_S = 0.004
_PATIENCE_S = 90.0
_POLL_S = 0.2


class Recorder:
    """The history as it grows. Clients of many threads write to it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.over = threading.Event()
        """Nobody is to begin anything new."""
        self.enough = threading.Event()
        """Readers may end as well."""

    def note(self, client: str, op: Op, kind: Kind, **more: Any) -> None:
        self.events.append(Event(time.monotonic(), client, op, kind, **more))

    def save(self, path: Path) -> None:
        """One event a line, for whoever looks into what went wrong."""
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(event._asdict()) + "\n" for event in self.events)


def quiet(bootstrap: str, **more: Any) -> dict[str, Any]:
    """The settings of a librdkafka client that finds dying brokers nothing to talk about."""
    return {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        "error_cb": lambda _: None,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": 1000,
        **more,
    }


def produce(recorder: Recorder, name: str, bootstrap: str, seed: int) -> None:
    """librdkafka, idempotent: rising numbers to partitions by chance."""
    producer = Producer(
        quiet(
            bootstrap,
            **{
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "message.timeout.ms": int(_PATIENCE_S * 1000),
                "socket.timeout.ms": 10_000,
            },
        )
    )

    def send(number: int, partition: int) -> None:
        def told(error: object, message: Any) -> None:
            kind = Kind.UNKNOWN if error else Kind.OK
            offset = -1 if error else message.offset()
            value = value_of(name, number)
            recorder.note(
                name, Op.WRITE, kind, number=number, partition=partition, offset=offset, value=value
            )

        producer.produce(TOPIC, value_of(name, number), partition=partition, on_delivery=told)
        producer.poll(0)

    _write(recorder, name, seed, send)
    producer.flush(_PATIENCE_S)


def produce_in_python(recorder: Recorder, name: str, bootstrap: str, seed: int) -> None:
    """The same with kafka-python."""
    producer = KafkaProducer(
        bootstrap_servers=bootstrap.split(","),
        acks="all",
        enable_idempotence=True,
        delivery_timeout_ms=int(_PATIENCE_S * 1000),
        request_timeout_ms=10_000,
        max_block_ms=int(_PATIENCE_S * 1000),
        linger_ms=2,
    )

    def send(number: int, partition: int) -> None:
        value = value_of(name, number)
        more = {"number": number, "partition": partition, "value": value}
        sent = producer.send(TOPIC, value.encode(), partition=partition)
        sent.add_callback(lambda it: recorder.note(name, Op.WRITE, Kind.OK, offset=it.offset, **more))
        sent.add_errback(lambda _: recorder.note(name, Op.WRITE, Kind.UNKNOWN, **more))

    try:
        _write(recorder, name, seed, send)
        producer.flush(_PATIENCE_S)
    finally:
        producer.close(timeout=5)


def _write(recorder: Recorder, name: str, seed: int, send: Callable[[int, int], None]) -> None:
    chance = random.Random(f"{name}/{seed}")
    for number in count():
        if recorder.over.is_set():
            return
        partition = chance.randrange(PARTITIONS)
        value = value_of(name, number)
        recorder.note(name, Op.WRITE, Kind.INVOKE, number=number, partition=partition, value=value)
        send(number, partition)
        time.sleep(_PAUSE_S * chance.random() * 2)


def consume(recorder: Recorder, name: str, bootstrap: str) -> None:
    """A member of the group: begins at what is committed, and commits what it has read."""
    numbers = count()
    consumer = Consumer(
        quiet(
            bootstrap,
            **{
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 4000,
                "heartbeat.interval.ms": 500,
                "fetch.wait.max.ms": 100,
            },
        )
    )
    position: dict[int, int] = {}

    def began(consumer: Consumer, assigned: list[TopicPartition]) -> None:
        """Where the group is. Until that is known there is nothing to begin with."""
        position.clear()
        while assigned:
            number = next(numbers)
            for each in assigned:
                recorder.note(name, Op.RESUME, Kind.INVOKE, number=number, partition=each.partition)
            try:
                found = consumer.committed(assigned, timeout=5)
            except KafkaException:
                if recorder.enough.is_set():
                    return
                continue
            for each in found:
                each.offset = max(each.offset, 0)
                recorder.note(
                    name, Op.RESUME, Kind.OK, number=number, partition=each.partition, offset=each.offset
                )
            consumer.assign(found)
            return

    def ended(_: Consumer, __: list[TopicPartition]) -> None:
        position.clear()

    consumer.subscribe([TOPIC], on_assign=began, on_revoke=ended, on_lost=ended)
    try:
        while not recorder.enough.is_set():
            for message in consumer.consume(200, _POLL_S):
                if not message.error():
                    _note_read(recorder, name, message)
                    position[message.partition()] = message.offset() + 1
            if position:
                _commit(recorder, name, consumer, dict(position), next(numbers))
                position.clear()
    finally:
        consumer.close()


def _commit(recorder: Recorder, name: str, consumer: Consumer, position: dict[int, int], number: int) -> None:
    for partition, offset in position.items():
        recorder.note(name, Op.COMMIT, Kind.INVOKE, number=number, partition=partition, offset=offset)
    wanted = [TopicPartition(TOPIC, partition, offset) for partition, offset in position.items()]
    try:
        done = consumer.commit(offsets=wanted, asynchronous=False)
    except KafkaException:
        for partition, offset in position.items():
            recorder.note(name, Op.COMMIT, Kind.UNKNOWN, number=number, partition=partition, offset=offset)
        return
    for each in done:
        kind = Kind.UNKNOWN if each.error else Kind.OK
        recorder.note(name, Op.COMMIT, kind, number=number, partition=each.partition, offset=each.offset)


def read_along(recorder: Recorder, name: str, bootstrap: str) -> None:
    """A reader of all partitions without a group, from the beginning; it also looks at high watermarks."""
    numbers = count()
    consumer = Consumer(quiet(bootstrap, **{"group.id": name, "fetch.wait.max.ms": 100}))
    everything = [TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)]
    consumer.assign(everything)
    try:
        while not recorder.enough.is_set():
            for message in consumer.consume(200, _POLL_S):
                if not message.error():
                    _note_read(recorder, name, message)
            which = everything[next(numbers) % PARTITIONS]
            try:
                _, high = consumer.get_watermark_offsets(which, timeout=0.5)
            except KafkaException:
                continue
            recorder.note(name, Op.WATERMARK, Kind.OK, partition=which.partition, offset=high)
    finally:
        consumer.close()


def _note_read(recorder: Recorder, name: str, message: Any) -> None:
    value = message.value().decode()
    recorder.note(name, Op.READ, Kind.OK, partition=message.partition(), offset=message.offset(), value=value)
