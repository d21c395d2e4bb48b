"""One broker as a process: its start, refusals, end, and the faults it survives."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from harness.brokers import wait_for
from harness.process import free_ports
from restow.cluster.store.znodes import PartitionStateZNode
from tests.faults.after import until_in_sync
from tests.faults.recording import quiet
from tests.faults.tree import with_store
from tests.often import often

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.brokers import BrokerProcess, BrokerProcesses
    from restow.cluster.store import Store

    Start = Callable[..., BrokerProcesses]

pytestmark = pytest.mark.jvm

TOPIC = "t"
STEADY = {"zookeeper.session.timeout.ms": "30000"}
"""Session timeout of brokers that are not killed, long enough for a busy machine."""
_CLIENT_S = 120.0


def attempt(session_ms: int = 20_000, **options: object) -> str:
    """Run a broker that must refuse to start; return its error line."""
    flags = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    command = [sys.executable, "-m", "restow", "broker", *flags]
    command += ["--config", f"zookeeper.session.timeout.ms={session_ms}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 1, done
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def create(
    brokers: BrokerProcesses, partitions: int = 4, replication_factor: int = 3, **configs: str
) -> None:
    admin = AdminClient(quiet(brokers.bootstrap))
    admin.create_topics([NewTopic(TOPIC, partitions, replication_factor, config=configs)])[TOPIC].result(
        _CLIENT_S
    )
    until_in_sync(brokers)


def state(brokers: BrokerProcesses) -> dict[int, Any]:
    """Return the topic's partitions from the first broker that answers."""
    found: dict[int, Any] = (
        AdminClient(quiet(brokers.bootstrap)).list_topics(TOPIC, _CLIENT_S).topics[TOPIC].partitions
    )
    return found


def produce(brokers: BrokerProcesses, values: list[str], partitions: int = 4, size: int = 0) -> None:
    """Write values with acks=all."""
    producer = Producer(quiet(brokers.bootstrap, **{"enable.idempotence": True}))
    errors: list[object] = []
    for number, value in enumerate(values):
        producer.produce(
            TOPIC,
            value.ljust(size),
            partition=number % partitions,
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
    assert producer.flush(_CLIENT_S) == 0
    assert not errors


def test_broker_refuses_invalid_options(start_brokers: Start, tmp_path: Path) -> None:
    brokers = start_brokers(harms=False, count=1, configs=STEADY)
    taken = brokers[1].address.rpartition(":")[2]
    store = f"zookeeper://{brokers.zookeeper.address}/restow"
    new = tmp_path / "new"
    with ThreadPoolExecutor() as at_once, free_ports(1) as (nobody,):
        port_taken = at_once.submit(attempt, id=2, store=store, data=new, port=taken)
        in_use = at_once.submit(attempt, id=1, store=store, data=brokers[1].data, port=0)
        silent = at_once.submit(
            attempt, 1000, id=2, store=f"zookeeper://127.0.0.1:{nobody}", data=tmp_path / "y", port=0
        )
    said = port_taken.result()
    assert said == f"Error: port {taken} of 127.0.0.1 is taken: give another --port, or 0 for a free one"
    assert "log-0 is in use by another broker" in in_use.result()
    assert silent.result().startswith(f"Error: no ZooKeeper answered at 127.0.0.1:{nobody} within 1 s")
    assert brokers[1].stop() == 0
    assert "says the log dir belongs to broker 1" in attempt(id=7, store=store, data=brokers[1].data, port=0)
    elsewhere = f"zookeeper://{brokers.zookeeper.address}/other"
    assert "of cluster" in attempt(id=1, store=elsewhere, data=brokers[1].data, port=0)
    brokers[1].start()


@pytest.mark.full
def test_broker_refuses_a_registered_id_after_two_sessions(start_brokers: Start, tmp_path: Path) -> None:
    brokers = start_brokers(harms=False, count=1, configs=STEADY)
    store = f"zookeeper://{brokers.zookeeper.address}/restow"
    assert "a broker of id 1 is registered already" in attempt(id=1, store=store, data=tmp_path / "x", port=0)


def test_stopped_broker_hands_over_its_leaders(start_brokers: Start) -> None:
    brokers = start_brokers(harms=False, configs=STEADY)
    create(brokers)
    produce(brokers, [str(number) for number in range(100)])
    leader = state(brokers)[0].leader
    assert brokers[leader].stop() == 0
    assert (brokers[leader].data / "log-0" / ".kafka_cleanshutdown").exists()
    assert not {-1, leader} & with_store(brokers, leaders)
    wait_for(
        "the others have heard of it",
        lambda: all(each.leader not in (-1, leader) for each in state(brokers).values()),
    )
    brokers[leader].start()
    until_in_sync(brokers)


async def leaders(store: Store) -> set[int]:
    """Return all leaders of the topic's partitions."""
    paths = [PartitionStateZNode.path(TOPIC, number) for number in range(4)]
    return {
        PartitionStateZNode.decode(node.data, path).leader
        for path, node in zip(paths, await store.get_each(paths), strict=True)
        if node is not None
    }


def test_group_continues_after_all_brokers_were_killed(start_brokers: Start) -> None:
    brokers = start_brokers(harms=True)
    create(brokers, partitions=1, **{"min.insync.replicas": "2"})
    produce(brokers, [str(number) for number in range(50)], partitions=1)
    assert consumed(brokers, 20) == [str(number) for number in range(20)]
    for broker in brokers.values():
        broker.kill()
    brokers.start_all()
    produce(brokers, ["50"], partitions=1)
    assert consumed(brokers, 31) == [str(number) for number in range(20, 51)]


def is_unheard_of(error: KafkaError | None) -> bool:
    """Return whether the broker has just started. The client will retry."""
    return error is not None and error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def consumed(brokers: BrokerProcesses, count: int) -> list[str]:
    """Return that many values from the group's position, and commit them.

    A leaving member is answered before that is written. Brokers that are killed in between may load it again,
    and the next member then waits until its session expires.
    """
    consumer = Consumer(
        quiet(
            brokers.bootstrap,
            **{
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 10_000,
                "heartbeat.interval.ms": 500,
            },
        )
    )
    values: list[str] = []
    deadline = time.monotonic() + _CLIENT_S
    try:
        consumer.subscribe([TOPIC])
        while len(values) < count:
            assert time.monotonic() < deadline, f"only {len(values)} of {count} came"
            message = consumer.poll(1.0)
            if message is None or is_unheard_of(message.error()):
                continue
            assert not message.error()
            values.append(message.value().decode())
            position = TopicPartition(TOPIC, message.partition(), message.offset() + 1)
        (done,) = consumer.commit(offsets=[position], asynchronous=False)
        assert not done.error
    finally:
        consumer.close()
    return values


@pytest.mark.parametrize("pause", often([True, False], True), ids=["cut off", "killed"])
def test_brokers_survive_a_zookeeper_outage(start_brokers: Start, pause: bool) -> None:
    """Whether they keep their sessions or start again: records are there, and writes work."""
    brokers = start_brokers(harms=True)
    create(brokers, **{"min.insync.replicas": "2"})
    produce(brokers, ["before"] * 8)
    if pause:
        with brokers.zookeeper.paused():
            for broker in brokers.values():
                wait_for(
                    f"broker {broker.id} misses it",
                    lambda it=broker: "lost its store session" in it.log.read_text(),
                )
    else:
        brokers.restart_zookeeper()
    until_in_sync(brokers)
    produce(brokers, ["after"] * 8)
    admin = AdminClient(quiet(brokers.bootstrap))
    admin.create_topics([NewTopic("another", 1, 3)])["another"].result(_CLIENT_S)
    assert all(broker.is_running for broker in brokers.values())


def home_of(broker: BrokerProcess, partition: int) -> str:
    (found,) = broker.data.glob(f"log-*/{TOPIC}-{partition}")
    return found.parent.name


def offline(broker: BrokerProcess, directory: str) -> bool:
    return (
        f"the log dir {broker.data / directory} and the replicas in it are offline" in broker.log.read_text()
    )


def without(brokers: BrokerProcesses, partitions: set[int], broker_id: int) -> bool:
    """Return whether exactly these partitions have lost their replica on the broker."""
    return partitions == {number for number, each in state(brokers).items() if broker_id not in each.isrs}


@pytest.mark.parametrize("fault", often(["full", "unreadable"], "full"))
def test_broker_serves_other_log_dirs_when_one_fails(start_brokers: Start, fault: str) -> None:
    brokers = start_brokers(
        harms=False, log_dirs=2, configs={**STEADY, "replica.high.watermark.checkpoint.interval.ms": "200"}
    )
    create(brokers, **{"min.insync.replicas": "2"})
    produce(brokers, ["before"] * 8)
    victim = brokers[state(brokers)[0].leader]
    failing = home_of(victim, 0)
    lost = {number for number in range(4) if home_of(victim, number) == failing}
    assert 0 < len(lost) < 4
    if fault == "full":
        assert victim.pid is not None
        hard = resource.prlimit(victim.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(victim.pid, resource.RLIMIT_FSIZE, (64 * 1024, hard))
        produce(brokers, ["large"] * 20, partitions=1, size=10_000)
    else:
        (victim.data / failing).rename(victim.data / "away")
        (victim.data / failing).write_text("not a directory")
        produce(brokers, ["more"] * 8)
    wait_for("the directory is offline", lambda: offline(victim, failing))
    wait_for("its replicas are out of sync, and no others", lambda: without(brokers, lost, victim.id))
    produce(brokers, ["after"] * 8)
    assert victim.is_running
    assert not any(offline(victim, each) for each in ("log-0", "log-1") if each != failing)
