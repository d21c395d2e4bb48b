"""Clients that record everything they do: producers, group members, a reader, a watcher."""

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
COUNTER = 1000
"""In the history, the partition of the group that only commits."""
_PAUSE_S = 0.004
_PATIENCE_S = 90.0
_POLL_S = 0.2
_COMMIT_PATIENCE_S = 10.0
_MOMENT_S = 0.02
_LOOK_EVERY = 5


class Recorder:
    """The growing history. Clients of many threads write to it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.over = threading.Event()
        """Whether clients should start no new operation."""
        self.enough = threading.Event()
        """Whether readers may end as well."""

    def note(self, client: str, op: Op, kind: Kind, **more: Any) -> None:
        self.events.append(Event(time.monotonic(), client, op, kind, **more))

    def save(self, path: Path) -> None:
        """Write one event per line, for the analysis of a failure."""
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(event._asdict()) + "\n" for event in self.events)


def quiet(bootstrap: str, **more: Any) -> dict[str, Any]:
    """Return settings of a librdkafka client that does not log dying brokers."""
    return {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        "error_cb": lambda _: None,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": 1000,
        **more,
    }


def produce(recorder: Recorder, name: str, bootstrap: str, seed: int) -> str:
    """Write rising numbers to random partitions with an idempotent librdkafka producer. Return why it failed.

    It fails when a leader lacks an acknowledged record.
    """
    producer = Producer(
        quiet(
            bootstrap,
            **{
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "message.timeout.ms": int(_PATIENCE_S * 1000),
                "socket.timeout.ms": 10_000,
                # With more in flight, librdkafka may answer a gap in one partition with a new producer
                # epoch, under which it writes records of another partition twice: its issue 4953.
                "max.in.flight.requests.per.connection": 1,
            },
        )
    )

    def send(number: int, partition: int) -> None:
        def told(error: object, message: Any) -> None:
            kind = Kind.UNKNOWN if error else Kind.OK
            known = None if error else message.offset()  # None, too, after a repeated request
            offset = -1 if known is None else known
            value = value_of(name, number)
            recorder.note(
                name, Op.WRITE, kind, number=number, partition=partition, offset=offset, value=value
            )

        producer.produce(TOPIC, value_of(name, number), partition=partition, on_delivery=told)
        producer.poll(0)

    try:
        _write(recorder, name, seed, send)
    except KafkaException as error:
        return f"gave up: producer {name} met {error}"
    producer.flush(_PATIENCE_S)
    return ""


def produce_in_python(recorder: Recorder, name: str, bootstrap: str, seed: int) -> str:
    """Do the same with kafka-python, which continues with another producer id instead of failing."""
    producer = KafkaProducer(
        bootstrap_servers=bootstrap.split(","),
        acks="all",
        enable_idempotence=True,
        bootstrap_timeout_ms=int(_PATIENCE_S * 1000),
        delivery_timeout_ms=int(_PATIENCE_S * 1000),
        request_timeout_ms=10_000,
        max_block_ms=int(_PATIENCE_S * 1000),
        linger_ms=2,
    )

    def send(number: int, partition: int) -> None:
        value = value_of(name, number)
        more = {"number": number, "partition": partition, "value": value}
        while True:
            try:
                sent = producer.send(TOPIC, value.encode(), partition=partition)
                break
            except ValueError:  # it looks twice, and a broker without topics may have answered meanwhile
                time.sleep(_POLL_S)
        sent.add_callback(lambda it: recorder.note(name, Op.WRITE, Kind.OK, offset=it.offset, **more))
        sent.add_errback(lambda _: recorder.note(name, Op.WRITE, Kind.UNKNOWN, **more))

    try:
        _write(recorder, name, seed, send)
        producer.flush(2 * _PATIENCE_S)
    finally:
        producer.close(timeout=5)
    return ""


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


class Member:
    """A group member: starts at the committed position, and commits what it has read.

    Commits use a callback, because librdkafka's blocking commit can wait for ever when the coordinator
    changes.
    """

    def __init__(self, recorder: Recorder, name: str, bootstrap: str) -> None:
        self._recorder = recorder
        self._name = name
        self._numbers = count()
        self._position: dict[int, int] = {}
        self._waiting: dict[tuple[int, int], int] = {}
        """Positions of pending commits, and their numbers."""
        self._waits_until_s = 0.0
        self._consumer = Consumer(
            quiet(
                bootstrap,
                **{
                    "group.id": GROUP,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "session.timeout.ms": 4000,
                    "heartbeat.interval.ms": 500,
                    "fetch.wait.max.ms": 100,
                    "on_commit": self._committed,
                },
            )
        )

    def run(self) -> None:
        """Run until stopped."""
        consumer = self._consumer
        consumer.subscribe([TOPIC], on_assign=self._began, on_revoke=self._ended, on_lost=self._ended)
        try:
            while not self._recorder.enough.is_set():
                for message in consumer.consume(200, _POLL_S):
                    if not message.error():
                        _note_read(self._recorder, self._name, message)
                        self._position[message.partition()] = message.offset() + 1
                self._commit()
        finally:
            consumer.close()

    def _began(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        """Look up the group's position, and wait until it is known."""
        self._position.clear()
        while assigned and not self._recorder.enough.is_set():
            number = next(self._numbers)
            for each in assigned:
                self._note(Op.RESUME, Kind.INVOKE, number, each.partition)
            try:
                found = consumer.committed(assigned, timeout=5)
            except KafkaException:
                continue
            for each in found:
                each.offset = max(each.offset, 0)
                self._note(Op.RESUME, Kind.OK, number, each.partition, each.offset)
            consumer.assign(found)
            return

    def _ended(self, _: Consumer, __: list[TopicPartition]) -> None:
        """Drop the positions of revoked partitions, so that a failed commit of them is not repeated."""
        self._position.clear()
        self._waiting.clear()

    def _commit(self) -> None:
        """Commit one position at a time; after a long wait without a response, commit the latest.

        At the end of the run, repeat the last one.
        """
        if self._waiting and time.monotonic() < self._waits_until_s:
            return
        if self._recorder.over.is_set():
            for partition, offset in self._waiting:
                self._position.setdefault(partition, offset)
        if not self._position:
            return
        number = next(self._numbers)
        wanted = [TopicPartition(TOPIC, partition, offset) for partition, offset in self._position.items()]
        self._waiting = {place: self._waiting.get(place, number) for place in self._position.items()}
        self._waits_until_s = time.monotonic() + _COMMIT_PATIENCE_S
        for (partition, offset), its_number in self._waiting.items():
            if its_number == number:
                self._note(Op.COMMIT, Kind.INVOKE, number, partition, offset)
        self._position.clear()
        try:
            self._consumer.commit(offsets=wanted, asynchronous=True)
        except KafkaException:
            self._position = dict(self._waiting.keys())
            self._waiting.clear()

    def _committed(self, error: object, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            number = self._waiting.pop((each.partition, each.offset), None)
            if number is not None:
                failed = error or each.error
                self._note(
                    Op.COMMIT, Kind.UNKNOWN if failed else Kind.OK, number, each.partition, each.offset
                )
                if failed:
                    self._position.setdefault(each.partition, each.offset)

    def _note(self, op: Op, kind: Kind, number: int, partition: int, offset: int = -1) -> None:
        self._recorder.note(self._name, op, kind, number=number, partition=partition, offset=offset)


def read_along(recorder: Recorder, name: str, bootstrap: str) -> None:
    """Read all partitions from the start without a group, and record high watermarks."""
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


def count_up(recorder: Recorder, name: str, bootstrap: str) -> None:
    """Commit rising positions as fast as possible without reading, and look up the group's position.

    Unlike a reader it continues while no record can be read, when a coordinator is alone.
    """
    positions = count(1)
    waiting: set[int] = set()

    def committed(error: object, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            kind = Kind.UNKNOWN if error or each.error else Kind.OK
            waiting.discard(each.offset)
            recorder.note(name, Op.COMMIT, kind, number=each.offset, partition=COUNTER, offset=each.offset)

    settings = {"group.id": name, "enable.auto.commit": False, "on_commit": committed}
    consumer = Consumer(quiet(bootstrap, **settings))
    waited_s = 0.0
    try:
        while not recorder.enough.is_set():
            if not waiting or waited_s > _COMMIT_PATIENCE_S:
                waiting.clear()
                waited_s = 0.0
                position = next(positions)
                waiting.add(position)
                recorder.note(
                    name, Op.COMMIT, Kind.INVOKE, number=position, partition=COUNTER, offset=position
                )
                consumer.commit(offsets=[TopicPartition(TOPIC, 0, position)], asynchronous=True)
            consumer.poll(_MOMENT_S)
            waited_s += _MOMENT_S
            if not waiting and position % _LOOK_EVERY == 0:
                _look(recorder, name, consumer, position)
    finally:
        consumer.close()


def _look(recorder: Recorder, name: str, consumer: Consumer, number: int) -> None:
    recorder.note(name, Op.RESUME, Kind.INVOKE, number=number, partition=COUNTER)
    try:
        (found,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=5)
    except KafkaException:
        return
    offset = max(found.offset, 0)
    recorder.note(name, Op.RESUME, Kind.OK, number=number, partition=COUNTER, offset=offset)


def _note_read(recorder: Recorder, name: str, message: Any) -> None:
    value = message.value().decode()
    recorder.note(name, Op.READ, Kind.OK, partition=message.partition(), offset=message.offset(), value=value)
