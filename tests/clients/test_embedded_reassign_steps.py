"""Every step of a move, and a broker that dies there: label × victim × outcome, while clients write and read.

controller      decides; has no replica
target          gets a replica
source          loses its replica, and follows
leader          leads, and stays
leaving leader  leads, and loses its replica
"""

from __future__ import annotations

import asyncio
import gc
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from restow.cluster.controller import ControllerError, ControllerStep, ReassignmentTarget
from restow.model import TopicPartition as Partition
from tests.clients.embedded import WAIT_S, Running, embedded, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

LABELS = tuple(step.name for step in ControllerStep if step.name[0] in "UAB")
VICTIMS = ("controller", "target", "source", "leader", "leaving leader")
OFTEN = {
    ("U0", "controller"),
    ("U1", "controller"),
    ("A1", "controller"),
    ("B2", "controller"),
    ("B5", "controller"),
    ("A2", "target"),
    ("B1", "target"),
    ("B3", "source"),
    ("A1", "leader"),
    ("B4", "leader"),
    ("B2", "leaving leader"),
}
"""The part of the table that every test run covers; the rest is for long test runs."""
TOPIC = "moved"


class Cast(NamedTuple):
    """The roles. The controller's broker has no replica."""

    controller: int
    target: int
    source: int
    leader: int
    third: int

    def replicas(self, victim: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the replicas before and after."""
        if victim == "leaving leader":
            return (self.source, self.leader, self.third), (self.target, self.leader, self.third)
        return (self.leader, self.source, self.third), (self.leader, self.target, self.third)

    def broker(self, victim: str) -> int:
        named = {"leaving leader": self.source, "controller": self.controller, "target": self.target}
        return named.get(victim, self.source if victim == "source" else self.leader)


class Traffic:
    """A writer that counts up and a reader that follows, until they are stopped."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        self.acknowledged: list[int] = []
        self.read: list[int] = []
        self._writer = threading.Thread(target=self._write)
        self._reader = threading.Thread(target=self._follow)

    def start(self) -> None:
        self._writer.start()
        self._reader.start()

    def end(self) -> None:
        """Stop; return when all acknowledged records have been read."""
        self._stop.set()
        self._writer.join(WAIT_S)
        self._reader.join(WAIT_S)

    def _write(self) -> None:
        with closing(
            KafkaProducer(
                bootstrap_servers=self._bootstrap,
                acks="all",
                enable_idempotence=True,
                retry_backoff_ms=20,
                reconnect_backoff_ms=20,
            )
        ) as producer:
            number = 0
            while not self._stop.is_set():
                producer.send(TOPIC, b"%d" % number, partition=0).get(WAIT_S)
                self.acknowledged.append(number)
                number += 1

    def _follow(self) -> None:
        with closing(
            KafkaConsumer(
                bootstrap_servers=self._bootstrap, auto_offset_reset="earliest", reconnect_backoff_ms=20
            )
        ) as consumer:
            consumer.assign([TopicPartition(TOPIC, 0)])
            while self._writer.is_alive() or len(self.read) < len(self.acknowledged):
                for records in consumer.poll(timeout_ms=100).values():
                    self.read += [int(record.value) for record in records]


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[dict[tuple[str, str], str]]:
    """Collect results, and print them at the end."""
    outcomes: dict[tuple[str, str], str] = {}
    yield outcomes
    terminal = request.config.pluginmanager.getplugin("terminalreporter")
    captured = request.config.pluginmanager.getplugin("capturemanager")
    if terminal is None or captured is None or not outcomes:
        return
    with captured.global_and_fixture_disabled():
        terminal.write_line("")
        terminal.write_line("label " + "".join(f"{victim:>16}" for victim in VICTIMS))
        for label in LABELS:
            cells = "".join(f"{outcomes.get((label, victim), '·'):>16}" for victim in VICTIMS)
            terminal.write_line(f"{label:<6}{cells}")


@pytest.fixture(autouse=True)
def _forget_sockets() -> Iterator[None]:
    """Collect garbage: kafka-python leaves sockets of dead brokers to it."""
    yield
    gc.collect()


@pytest.mark.parametrize(
    ("label", "victim"),
    [
        pytest.param(
            label,
            victim,
            marks=() if (label, victim) in OFTEN else pytest.mark.full,
            id=f"{victim} dies at {label}",
        )
        for label in LABELS
        for victim in VICTIMS
    ],
)
def test_broker_dies_at_a_step(label: str, victim: str, table: dict[tuple[str, str], str]) -> None:
    with embedded(5, properties={"replica.lag.time.max.ms": "3000"}) as running:
        cast = cast_of(running)
        before, after = cast.replicas(victim)
        create(running, before)
        traffic = Traffic(running.bootstrap)
        traffic.start()
        try:
            wait_until(lambda: len(traffic.read) > 20, "the reader follows")
            died = kill_at(running, ControllerStep[label], cast.broker(victim))
            request_is_lost = ask(running, cast.controller, after)
            wait_until(died.is_set, f"a step {label}")
            running.start(cast.broker(victim))
            wait_until(lambda: not moves(running), "nothing moves")
            seen = len(traffic.read)
            wait_until(lambda: len(traffic.read) > seen + 20, "the reader goes on")
        finally:
            traffic.end()
        assert traffic.read[: len(traffic.acknowledged)] == traffic.acknowledged
        assert traffic.read == sorted(set(traffic.read))
        expected = before if label == "U0" and victim == "controller" and request_is_lost else after
        wait_for(running, expected)
        table[label, victim] = "moved" if expected == after else "not begun"


@pytest.mark.parametrize(
    "label",
    [
        pytest.param(label, marks=() if label in ("U0", "U1", "U2", "B5") else pytest.mark.full)
        for label in LABELS
        if not label.startswith("A")
    ],
)
def test_kafka_13972_controller_dies_during_a_cancel_and_leaves_nothing_behind(label: str) -> None:
    with embedded(5) as running:
        cast = cast_of(running)
        before, after = cast.replicas("source")
        create(running, before)
        died = threading.Event()
        tasks: list[asyncio.Task[Any]] = []
        target = running.cluster.brokers[cast.target].services
        controller = running.cluster.brokers[cast.controller].services.controller

        async def kill() -> None:
            await running.cluster.kill_broker(cast.controller)
            died.set()

        async def at(step: ControllerStep) -> None:
            if step is ControllerStep.U2 and not tasks:
                cancel = controller.alter_reassignments({Partition(TOPIC, 0): ReassignmentTarget(None)})
                tasks.append(asyncio.create_task(cancel))
                await asyncio.sleep(0)
            elif step is ControllerStep.A2:
                while target.replicas.partition(Partition(TOPIC, 0)) is None:
                    await asyncio.sleep(0.001)
            elif tasks and step.name == label:
                tasks.append(asyncio.create_task(kill()))
                await asyncio.Event().wait()

        async def arm() -> None:
            controller.at = at

        running.do(arm())
        ask(running, cast.controller, after)
        wait_until(died.is_set, f"a step {label}")
        running.do(gathered(tasks))
        running.start(cast.controller)
        wait_until(lambda: not moves(running), "nothing moves")
        wait_for(running, after if label == "U0" else before)


async def gathered(tasks: list[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def create(running: Running, replicas: tuple[int, ...]) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=running.bootstrap)) as admin:
        topic = NewTopic(
            TOPIC,
            replica_assignments={0: list(replicas)},
            topic_configs={"min.insync.replicas": "2"},
        )
        admin.create_topics([topic])


def wait_for(running: Running, replicas: tuple[int, ...]) -> None:
    """Wait until all brokers agree, and the disks have just these replicas."""
    wait_until(lambda: {frozenset(each) for each in known(running)} == {frozenset(replicas)}, "the replicas")
    wait_until(lambda: running.in_sync(TOPIC) == set(replicas), "all replicas are in sync")
    wait_until(lambda: holders(running) == set(replicas), "nobody else has a log")
    wait_until(lambda: running.leader_of(TOPIC) in replicas, "one of them leads")


def cast_of(running: Running) -> Cast:
    brokers = running.cluster.brokers
    (controller,) = [number for number, each in brokers.items() if each.services.controller.is_active]
    return Cast(controller, *(number for number in brokers if number != controller))


def kill_at(running: Running, label: ControllerStep, victim: int) -> threading.Event:
    """Kill the victim when any controller first comes to that step."""
    died = threading.Event()
    tasks: list[asyncio.Task[None]] = []

    async def kill() -> None:
        await running.cluster.kill_broker(victim)
        died.set()

    async def at(step: ControllerStep) -> None:
        if step is not label or tasks:
            return
        tasks.append(asyncio.create_task(kill()))
        if running.cluster.brokers[victim].services.controller.is_active:
            await asyncio.Event().wait()
        await tasks[0]

    async def arm() -> None:
        for broker in running.cluster.brokers.values():
            broker.services.controller.at = at

    running.do(arm())
    return died


def ask(running: Running, controller: int, target: tuple[int, ...]) -> bool:
    """Submit the move; return whether the answer was lost with the controller."""

    async def alter() -> None:
        office = running.cluster.brokers[controller].services.controller
        outcome = await office.alter_reassignments({Partition(TOPIC, 0): ReassignmentTarget(target)})
        assert outcome == {Partition(TOPIC, 0): None}

    try:
        running.do(alter())
    except ControllerError:
        return True
    return False


def moves(running: Running) -> bool:
    """Return whether a controller lists a move, or there is no controller."""
    for broker in running.cluster.brokers.values():
        if broker.is_running and broker.services.controller.is_active:
            return bool(running.do(broker.services.controller.list_reassignments(None)))
    return True


def known(running: Running) -> set[tuple[int, ...]]:
    """Return the replicas in each broker's metadata."""
    found = set()
    for broker in running.cluster.brokers.values():
        partition = broker.services.metadata.partition(Partition(TOPIC, 0))
        found.add(() if partition is None else partition.replicas)
    return found


def holders(running: Running) -> set[int]:
    """Return the brokers that have a log."""
    return {
        number
        for number, broker in running.cluster.brokers.items()
        if broker.services.logs.get(Partition(TOPIC, 0)) is not None
    }
