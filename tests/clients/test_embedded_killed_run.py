"""The executor is killed at every entry of its journal; then a resume, an undo or the doctor brings order.

Afterwards every throttle is as it was before, nothing moves, no record is lost, and the partitions are at one
end of the plan or the other.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from restow.client import ConfigOf, KafkaAdmin, NewTopic, Settings, connected
from restow.cluster.embedded import EmbeddedCluster
from restow.execute.executor import Watcher
from restow.execute.fix import diagnose, fix
from restow.execute.options import Options
from restow.execute.start import World, resume, undo
from restow.execute.throttles import FOLLOWER_RATE, LEADER_REPLICAS, RATES, REPLICAS
from restow.model import Limits
from restow.plan.pin import Target, plan_from_targets
from restow.plan.text import dumps
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk
from restow.snapshot import capture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.model import Plan

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

SCRIPT = Path(__file__).with_name("killed_run.py")
BEFORE = {0: (0, 1), 1: (1, 0)}
AFTER = {0: (2, 1), 1: (1, 2)}
RECORDS = 400
QUIET = Watcher(event=lambda _: None, standing=lambda _: None)
MOST_ENTRIES = 40


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Now, and not in the middle of somebody else's test."""
    yield
    gc.collect()


def write(bootstrap: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in range(RECORDS):
        producer.produce("orders", bytes(1000), b"%d" % number, number % len(BEFORE))
    assert producer.flush(60) == 0


def read(bootstrap: str) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "enable.auto.commit": False})
    consumer.assign([TopicPartition("orders", number, 0) for number in BEFORE])
    found: set[bytes] = set()
    try:
        for _ in range(60):
            found |= {message.key() for message in consumer.consume(1000, 1.0)}
            if len(found) >= RECORDS:
                break
    finally:
        consumer.close()
    return len(found)


async def throttles(admin: KafkaAdmin) -> dict[tuple[str, str, str], str | None]:
    of = [ConfigOf("topic", "orders"), *(ConfigOf("broker", str(broker)) for broker in range(3))]
    found = {}
    for owner, configs in (await admin.configs(of)).items():
        assert isinstance(configs, dict)
        for name, config in configs.items():
            if name in (*RATES, *REPLICAS) and config.source == owner.of:
                found[owner.of, owner.name, name] = config.value
    return found


async def replicas(admin: KafkaAdmin) -> dict[int, tuple[int, ...]]:
    (topic,) = await admin.topics(["orders"])
    return {each.number: each.replicas for each in topic.partitions}


async def plan_now(admin: KafkaAdmin) -> Plan:
    """To the other end, one partition after the other."""
    snapshot = await capture(admin, SystemClock())
    now = await replicas(admin)
    targets = [
        Target(partition=name, replicas=(AFTER if now == BEFORE else BEFORE)[name.partition])
        for name, _ in snapshot.all_partitions()
        if name.topic == "orders"
    ]
    return plan_from_targets(snapshot, targets, created_ms=1, limits=Limits(moves_in=1, moves_out=1))


async def bring_order(world: World, remedy: str) -> str:
    """The name of how it came out; if there was nothing to bring to order, that."""
    runs = (await world.runs()).all()
    if not runs or (runs[-1].ledger.is_settled and runs[-1].ledger.outcome == "done"):
        return "nothing to do"
    if remedy == "resume":
        return (await resume(world, Options(), QUIET)).ending.value
    if remedy == "undo":
        return (await undo(world, Options(), QUIET)).ending.value
    await fix(world, QUIET)
    assert not [each for each in await diagnose(world) if each.run is not None]
    return "fixed"


async def killed_at(bootstrap: str, world: World, plan: Path, entry: int, when: str) -> bool:
    """Whether it was; False if it had ended before."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SCRIPT),
        bootstrap,
        world.root,
        str(plan),
        str(entry),
        when,
        stderr=subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), said.decode()
    return process.returncode != 0


async def matrix(folder: Path, when: str, remedies: tuple[str, ...]) -> list[str]:
    outcomes = []
    async with (
        EmbeddedCluster(3) as cluster,
        connected(Settings(bootstrap=cluster.bootstrap)) as admin,
    ):
        assert await admin.create([NewTopic(name="orders", by_hand=BEFORE)]) == {"orders": None}
        await asyncio.to_thread(write, cluster.bootstrap)
        await admin.set_configs(
            {
                ConfigOf("topic", "orders"): {LEADER_REPLICAS: "5:1"},
                ConfigOf("broker", "2"): {FOLLOWER_RATE: "99000000"},
            }
        )
        before = await throttles(admin)
        assert len(before) == 2
        for entry in count():
            assert entry < MOST_ENTRIES
            root = folder / f"{when}-{entry}"
            world = World(admin=admin, clock=SystemClock(), disk=SystemDisk(), root=str(root))
            plan = folder / "plan.json"
            plan.write_text(dumps(await plan_now(admin)))
            killed = await killed_at(cluster.bootstrap, world, plan, entry, when)
            remedy = remedies[entry % len(remedies)]
            outcome = await bring_order(world, remedy)
            outcomes.append(f"{remedy}: {outcome}")
            assert await throttles(admin) == before, (entry, outcome)
            assert await admin.moves() == {}, (entry, outcome)
            now = await replicas(admin)
            if remedy != "doctor":
                assert now in (BEFORE, AFTER), (entry, outcome, now)
            else:
                await _home(world, now)
            if not killed:
                break
        assert await asyncio.to_thread(read, cluster.bootstrap) == RECORDS
    return outcomes


async def _home(world: World, now: dict[int, tuple[int, ...]]) -> None:
    """What the doctor leaves between two ends is led to one of them, so that the next round can begin."""
    if now not in (BEFORE, AFTER):
        assert (await resume(world, Options(), QUIET)).is_good


@pytest.mark.parametrize("when", ["after", "before"])
def test_killed_at_every_entry(tmp_path: Path, when: str) -> None:
    outcomes = asyncio.run(matrix(tmp_path, when, ("resume", "undo", "doctor")))
    assert len(outcomes) > 8
    assert {"resume: done", "undo: done", "doctor: fixed"} <= set(outcomes)


@pytest.mark.full
@pytest.mark.parametrize("when", ["after", "before"])
@pytest.mark.parametrize("remedy", ["resume", "undo", "doctor"])
def test_every_remedy_at_every_entry(tmp_path: Path, when: str, remedy: str) -> None:
    assert len(asyncio.run(matrix(tmp_path, when, (remedy,)))) > 8
