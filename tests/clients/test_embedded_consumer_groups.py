"""Unmodified clients with `group.protocol=consumer` and the embedded cluster."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from harness.jars import KAFKA_4
from harness.tools import Tools
from tests.clients.embedded import Running, embedded, wait_until
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.apache

PARTITIONS = 6
RECORDS = 120
MEMBER = """
import sys
from confluent_kafka import Consumer
settings = {"bootstrap.servers": sys.argv[1], "group.id": "crew", "group.protocol": sys.argv[2]}
if sys.argv[2] == "classic":
    settings |= {"partition.assignment.strategy": "range", "session.timeout.ms": 6000}
consumer = Consumer(settings)
consumer.subscribe(["t"])
while True:
    consumer.poll(1)
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with embedded(3, data=tmp_path) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        wanted = [NewTopic(name, PARTITIONS, 3) for name in ("t", "u.one")]
        for made in admin.create_topics(wanted).values():
            made.result()
        for name in ("t", "u.one"):
            cluster.wait_until_known(name, PARTITIONS)
        yield cluster


class Crew:
    """The consumers of one group, polled in turn by this thread."""

    def __init__(self, running: Running, stack: ExitStack) -> None:
        self.read: list[str] = []
        self._running = running
        self._stack = stack
        self.members: list[Any] = []

    def join(self, *topics: str, **settings: Any) -> Any:
        consumer = Consumer(
            {
                "bootstrap.servers": self._running.bootstrap,
                "group.id": "crew",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                **settings,
            }
        )
        consumer.subscribe(list(topics) or ["t"])
        self._stack.callback(self.leave, consumer)
        self.members.append(consumer)
        return consumer

    def leave(self, consumer: Any) -> None:
        if consumer in self.members:
            self.members.remove(consumer)
            consumer.close()

    def poll(self) -> None:
        for consumer in self.members:
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                self.read.append(message.value().decode())

    def until_shared(self, *counts: int) -> None:
        """Poll until the members have this many partitions, in any order."""

        def is_so() -> bool:
            self.poll()
            return sorted(len(each.assignment()) for each in self.members) == sorted(counts)

        wait_until(is_so, f"the members have {counts} partitions")

    def until_read(self, values: list[str]) -> None:
        """Poll until all of these have been read, and each once."""

        def is_so() -> bool:
            self.poll()
            return len(self.read) >= len(values)

        wait_until(is_so, "all records are read")
        assert sorted(self.read) == sorted(values)
        self.read.clear()


def produce(running: Running, topic: str = "t", start: int = 0) -> list[str]:
    values = [f"{topic} {number}" for number in range(start, start + RECORDS)]
    producer = Producer({"bootstrap.servers": running.bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
    assert producer.flush(60) == 0
    return values


def test_confluent_members_come_go_and_read_every_record_once(running: Running) -> None:
    with ExitStack() as stack:
        crew = Crew(running, stack)
        first = crew.join()
        crew.until_read(produce(running))
        crew.join()
        crew.join()
        crew.until_shared(2, 2, 2)
        crew.until_read(produce(running, start=1_000))
        crew.leave(first)
        crew.until_shared(3, 3)
        crew.until_read(produce(running, start=2_000))
        coordinator = coordinator_of(running, "crew")
        running.kill(coordinator)
        crew.until_read(produce(running, start=3_000))
        crew.until_shared(3, 3)
        running.start(coordinator)
        crew.join()
        crew.until_shared(2, 2, 2)
        crew.until_read(produce(running, start=4_000))


@pytest.mark.parametrize("strategy", ["range", pytest.param("roundrobin", marks=pytest.mark.full)])
def test_confluent_members_of_both_protocols_share_a_group(running: Running, strategy: str) -> None:
    """Classic members are replaced one by one, and come back one by one; every record is read once."""
    classic = {"group.protocol": "classic", "partition.assignment.strategy": strategy}
    with ExitStack() as stack:
        crew = Crew(running, stack)
        old = [crew.join(**classic), crew.join(**classic)]
        crew.until_shared(3, 3)
        crew.until_read(produce(running))
        new = crew.join()
        crew.until_shared(2, 2, 2)
        crew.until_read(produce(running, start=1_000))
        assert group_type(running) == "CONSUMER"
        crew.leave(old[0])
        crew.until_shared(3, 3)
        coordinator = coordinator_of(running, "crew")
        running.kill(coordinator)
        crew.until_read(produce(running, start=2_000))
        crew.until_shared(3, 3)
        running.start(coordinator)
        crew.join(**classic)
        crew.until_shared(2, 2, 2)
        crew.until_read(produce(running, start=3_000))
        crew.leave(new)
        crew.until_shared(3, 3)
        crew.until_read(produce(running, start=4_000))
        assert group_type(running) == "CLASSIC"


def group_type(running: Running) -> str:
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    (found,) = [each for each in admin.list_consumer_groups().result().valid if each.group_id == "crew"]
    return str(found.type.name)


@pytest.mark.full
def test_confluent_members_with_regular_expressions_and_instance_ids(running: Running) -> None:
    with ExitStack() as stack:
        crew = Crew(running, stack)
        static = crew.join("t", **{"group.instance.id": "one"})
        crew.join("^u\\..*")
        crew.until_shared(6, 6)
        crew.until_read(produce(running) + produce(running, "u.one"))
        held = sorted(p.partition for p in static.assignment())
        crew.leave(static)
        back = crew.join("t", **{"group.instance.id": "one"})
        crew.until_shared(6, 6)
        assert sorted(p.partition for p in back.assignment()) == held
        crew.until_read(produce(running, start=1_000))


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_partitions_of_a_killed_process_go_to_the_others(tmp_path: Path, protocol: str) -> None:
    short = {
        "group.consumer.min.heartbeat.interval.ms": "1000",
        "group.consumer.heartbeat.interval.ms": "1000",
        "group.consumer.min.session.timeout.ms": "6000",
        "group.consumer.session.timeout.ms": "6000",
    }
    with embedded(1, data=tmp_path, properties=short) as running, ExitStack() as stack:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic("t", PARTITIONS, 1)])["t"].result()
        running.wait_until_known("t", PARTITIONS)
        crew = Crew(running, stack)
        crew.join()
        crew.until_read(produce(running))
        process = subprocess.Popen([sys.executable, "-c", MEMBER, running.bootstrap, protocol])
        stack.callback(process.wait)
        stack.callback(process.kill)
        crew.until_shared(3)
        process.kill()
        crew.until_shared(6)
        values = produce(running, start=1_000)
        wait_until(lambda: crew.poll() or set(values) <= set(crew.read), "everything is read")


@pytest.mark.parametrize("protocol", ["consumer", pytest.param("classic", marks=pytest.mark.full)])
def test_console_consumer_of_kafka_3_9_shares_a_group(running: Running, protocol: str) -> None:
    """It reads until nothing more comes, beside a member of confluent-kafka."""
    with needs_kafka():
        tools = Tools()
    values = produce(running)
    with ExitStack() as stack:
        crew = Crew(running, stack)
        crew.join()
        crew.until_shared(6)
        stop = threading.Event()
        polling = threading.Thread(target=lambda: [crew.poll() for _ in iter(stop.is_set, True)])
        polling.start()
        stack.callback(polling.join)
        stack.callback(stop.set)
        where = ("--bootstrap-server", running.bootstrap, "--topic", "t", "--group", "crew")
        options = ("--consumer-property", f"group.protocol={protocol}", "--max-messages", "1")
        producing = threading.Thread(target=lambda: _produce_until(running, stop, values))
        producing.start()
        stack.callback(producing.join)
        read = tools.run("kafka-console-consumer", *where, *options).splitlines()
        stop.set()
        producing.join()
        polling.join()
        assert len(read) == 1
        wait_until(lambda: crew.poll() or set(values) <= {*crew.read, *read}, "every record is read")


def _produce_until(running: Running, stop: threading.Event, values: list[str]) -> None:
    """Produce again and again, so that a member that comes has something to read."""
    turn = 0
    while not stop.wait(0.5):
        turn += 1
        values += produce(running, start=turn * RECORDS)


def test_console_consumer_of_kafka_4_reads_and_its_dump_tool_reads_the_group(
    running: Running, tmp_path: Path
) -> None:
    with needs_kafka():
        tools = Tools(KAFKA_4)
    values = produce(running)
    where = ("--bootstrap-server", running.bootstrap)
    consume = ("--topic", "t", "--from-beginning", "--group", "console", "--timeout-ms", "60000")
    read = tools.run(
        "kafka-console-consumer",
        *where,
        *consume,
        "--max-messages",
        str(RECORDS),
        "--command-property",
        "group.protocol=consumer",
    )
    assert sorted(read.splitlines()) == sorted(values)
    listed = tools.run("kafka-groups", *where, "--list")
    assert [line.split() for line in listed.splitlines() if "console" in line] == [
        ["console", "Consumer", "consumer"]
    ]
    shown = tools.run("kafka-consumer-groups", *where, "--describe", "--group", "console")
    lags = [line.split()[5] for line in shown.splitlines() if " t " in line]
    assert lags == ["0"] * PARTITIONS
    segments = sorted(tmp_path.rglob("__consumer_offsets-*/*.log"))
    used = ",".join(str(path) for path in segments if path.stat().st_size)
    written = tools.run("kafka-dump-log", "--offsets-decoder", "--files", used)
    kinds = {int(kind) for kind in re.findall(r'"type":"(\d+)"', written)}
    assert {3, 5, 6, 7, 8} <= kinds


def coordinator_of(running: Running, group: str) -> int:
    """Return the broker that coordinates the group."""
    from restow.cluster.groups import partition_of_group

    partitions = 50
    return running.leader_of("__consumer_offsets", partition_of_group(group, partitions))
