"""The work of `benchmarks.cluster`: through librdkafka, or in the bare protocol."""

from __future__ import annotations

import os
import socket
import struct
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from itertools import count
from multiprocessing import get_context
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from restow.wire.codec import encode_request, parse_response
from restow.wire.messages import MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from multiprocessing.synchronize import Barrier

    import psutil

RECORD_BYTES = 1024
PARTITIONS = 6
_CONSUMERS = 2
RECORDS_A_TRANSACTION = 100
MB = 1_000_000
_PATIENCE_S = 300.0
_LOOK_S = 0.01
_SILENCE_S = 60.0
_RECORDS_A_CALL = 1_000
_RECORDS_IN_A_ROW = 256
_METADATA = 3
_METADATA_VERSION = 9
_QUICK = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100}


def create(bootstrap: str, topic: str, partitions: int, replication_factor: int) -> None:
    """Create a topic; retry until the cluster is ready."""
    deadline_s = time.monotonic() + _PATIENCE_S
    wanted = NewTopic(topic, partitions, replication_factor)
    while True:
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **_QUICK})
        try:
            admin.create_topics([wanted], operation_timeout=30)[topic].result()
            return
        except KafkaException:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(_LOOK_S)


def create_and_see(bootstrap: str, topic: str, partitions: int, replication_factor: int) -> float:
    """Return the seconds until every broker reports a leader for every partition."""
    began_s = time.monotonic()
    create(bootstrap, topic, partitions, replication_factor)
    for address in bootstrap.split(","):
        _until_all_led(address, topic, partitions)
    return time.monotonic() - began_s


def _until_all_led(address: str, topic: str, partitions: int) -> None:
    host, _, port = address.rpartition(":")
    body = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=topic)],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    deadline_s = time.monotonic() + _PATIENCE_S
    with ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=30))
        stream = stack.enter_context(connection.makefile("rb"))
        for number in count():
            frame = b"".join(encode_request(_METADATA, _METADATA_VERSION, number, "bench", body))
            connection.sendall(struct.pack(">i", len(frame)) + frame)
            (size,) = struct.unpack(">i", stream.read(4))
            answer = parse_response(_METADATA, _METADATA_VERSION, stream.read(size)).body
            found = answer.topics[0].partitions
            if len(found) == partitions and all(each.leader_id >= 0 for each in found):
                return
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"{address} does not tell of all leaders of {topic}")
            time.sleep(_LOOK_S)


def first_record(bootstrap: str) -> None:
    """Create a topic with a replica on every broker, and wait until all acknowledge one record."""
    create(bootstrap, "first", 1, 3)
    produce(bootstrap, "first", 1, 1)


def produce(
    bootstrap: str, topic: str, partitions: int, records: int, *, secured: Mapping[str, str] | None = None
) -> float:
    """Return the seconds until all in-sync replicas have acknowledged all records.

    All partitions get the same number. `secured` are settings of a client that connects by TLS."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "queue.buffering.max.kbytes": 256 * 1024,
            "log_level": 0,
            **_QUICK,
            **(secured or {}),
        }
    )
    value = os.urandom(RECORD_BYTES)
    send, poll = producer.produce, producer.poll
    began_s = time.monotonic()
    for number in range(records):
        while True:
            try:
                send(topic, value, partition=number // _RECORDS_IN_A_ROW % partitions)
                break
            except BufferError:
                poll(0.05)
    left = producer.flush(_PATIENCE_S)
    took_s = time.monotonic() - began_s
    if left:
        raise TimeoutError(f"{left} of {records} records were not acknowledged")
    return took_s


def transact(bootstrap: str, topic: str, partitions: int, transactions: int) -> float:
    """Return the seconds that these transactions take, one after the other: 100 records, then a commit.

    Each writes to one partition, and the next one to the next partition.
    """
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "bench", "log_level": 0, **_QUICK}
    )
    value = os.urandom(RECORD_BYTES)
    producer.init_transactions(_PATIENCE_S)
    began_s = time.monotonic()
    for number in range(transactions):
        producer.begin_transaction()
        for _ in range(RECORDS_A_TRANSACTION):
            producer.produce(topic, value, partition=number % partitions)
        producer.commit_transaction(_PATIENCE_S)
    took_s = time.monotonic() - began_s
    found = _ends(bootstrap, topic, partitions)
    if found != transactions * (RECORDS_A_TRANSACTION + 1):
        raise SystemExit(f"{topic} ends at {found} after {transactions} transactions.")
    return took_s


def _ends(bootstrap: str, topic: str, partitions: int) -> int:
    """Return the sum of the partitions' last stable offsets, which count the markers of commits, too."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "isolation.level": "read_committed",
            "log_level": 0,
            **_QUICK,
        }
    )
    try:
        return sum(
            int(consumer.get_watermark_offsets(TopicPartition(topic, each))[1]) for each in range(partitions)
        )
    finally:
        consumer.close()


def consume(
    bootstrap: str, topic: str, partitions: int, records: int, *, secured: Mapping[str, str] | None = None
) -> float:
    """Return the seconds from the first record to the last, for two consumers with half the partitions each.

    One alone is busy all the time at the speed of the fastest cluster, and would measure itself. They are
    processes of their own, and begin together.
    """
    context = get_context("spawn")
    begins = context.Barrier(_CONSUMERS)
    with ProcessPoolExecutor(_CONSUMERS, context, initializer=_share, initargs=(begins,)) as pool:
        work = [
            pool.submit(_read, bootstrap, topic, range(first, partitions, _CONSUMERS), dict(secured or {}))
            for first in range(_CONSUMERS)
        ]
        read = [each.result() for each in work]
    if sum(each.records for each in read) != records:
        raise SystemExit(f"{topic} has {sum(each.records for each in read)} records instead of {records}.")
    return max(each.ended_s for each in read) - min(each.began_s for each in read)


class _Read(NamedTuple):
    """What one consumer has read, and when, by the clock of all processes."""

    records: int
    began_s: float
    ended_s: float


_begins: Barrier


def _share(begins: Barrier) -> None:
    global _begins  # noqa: PLW0603  the only way to give a pool's processes a barrier
    _begins = begins


def _read(bootstrap: str, topic: str, partitions: Sequence[int], secured: Mapping[str, str]) -> _Read:
    """Read some partitions to their ends.

    Before the first records come the client waits by timers of its own, of up to half a second; and it would
    rest a whole second, by default, whenever its queue is full.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 1,
            "log_level": 0,
            **_QUICK,
            **secured,
        }
    )
    there = [TopicPartition(topic, each, 0) for each in partitions]
    try:
        records = sum(consumer.get_watermark_offsets(each)[1] for each in there)
        _begins.wait(_PATIENCE_S)
        consumer.assign(there)
        seen = len(_next_records(consumer, 1))
        began_s = time.monotonic()
        while seen < records:
            seen += len(_next_records(consumer, min(_RECORDS_A_CALL, records - seen)))
        ended_s = time.monotonic()
        # An error would have come in place of a record.
        if sum(each.offset for each in consumer.position(there)) != records:
            raise SystemExit(f"a consumer of {topic} has not come to the ends of its partitions")
        return _Read(records, began_s, ended_s)
    finally:
        consumer.close()


def _next_records(consumer: Consumer, most: int) -> list[Message]:
    messages = consumer.consume(most, timeout=_SILENCE_S)
    if not messages:
        raise TimeoutError(f"no record has come for {_SILENCE_S:g} s")
    return messages


def delete(bootstrap: str, topic: str) -> None:
    """Delete a topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.delete_topics([topic])[topic].result()


def memory_mb(processes: Sequence[psutil.Process]) -> float:
    """Return the memory of the processes, shared pages counted once."""
    return sum(process.memory_full_info().pss for process in processes) / MB


def cpu_percent(processes: Sequence[psutil.Process], seconds: float) -> float:
    """Return the idle CPU time of the processes, in percent of one core."""
    before = _cpu_s(processes)
    time.sleep(seconds)
    return 100 * (_cpu_s(processes) - before) / seconds


def _cpu_s(processes: Sequence[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)
