"""Runs on the embedded cluster, with data: executed, throttled, cancelled, undone; nothing is left."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

import pytest

from restow.client import ConfigResource, ConnectionSettings, KafkaAdmin, NewTopic, connected
from restow.cluster.embedded import EmbeddedCluster
from restow.execute.progress.outcome import Ending
from restow.execute.progress.status import RunListener
from restow.execute.run.control import Control, ControlRequest
from restow.execute.run.options import RunOptions
from restow.execute.run.start import RunContext, execute, resume, undo
from restow.execute.throttle.throttles import LEADER_RATE, LEADER_REPLICAS, RATES, REPLICAS, ThrottleRates
from restow.model import Limits, Move, Plan, TopicPartition
from restow.plan.pin import Target, plan_from_targets
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk
from restow.snapshot import capture
from tests.clients.consumers import keys_of_orders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from restow.execute.progress.status import RunEvent, RunStatus

# kafka-python leaves a refused socket to the garbage collector, which warns of it.
PARTITIONS = 6
RECORDS = 3000
VALUE = bytes(1000)
SLOWLY = 5_000
"""Bytes per second, of half a million in each partition: nothing arrives while a test watches."""
BEFORE = [(0, 1), (1, 0), (0, 1), (1, 0), (0, 1), (1, 0)]
AFTER = [(2, 1), (1, 2), (0, 2), (3, 0), (2, 3), (3, 2)]


@pytest.fixture(autouse=True)
def hushed(caplog: pytest.LogCaptureFixture) -> None:
    """Silence kafka-python's log, whose records of a lost connection would keep its socket open."""
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")


def write(bootstrap: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "batch.size": 16_384})
    for number in range(RECORDS):
        producer.produce("orders", VALUE, b"%d" % number, number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(60) == 0


read = partial(keys_of_orders, partitions=PARTITIONS, wanted=RECORDS)


async def throttles(admin: KafkaAdmin, brokers: int) -> dict[ConfigResource, dict[str, str | None]]:
    """Return the throttle configs of all brokers and the topic."""
    of = [
        ConfigResource("topic", "orders"),
        *(ConfigResource("broker", str(broker)) for broker in range(brokers)),
    ]
    found: dict[ConfigResource, dict[str, str | None]] = {}
    for owner, configs in (await admin.describe_configs(of)).items():
        assert isinstance(configs, dict)
        here = {
            name: config.value
            for name, config in configs.items()
            if name in (*RATES, *REPLICAS) and config.source == owner.of
        }
        if here:
            found[owner] = here
    return found


async def plan_of(
    admin: KafkaAdmin, targets: Sequence[tuple[int, ...]], limits: Limits | None = None
) -> Plan:
    snapshot = await capture(admin, SystemClock())
    moves = []
    for name, partition in snapshot.all_partitions():
        if name.topic == "orders" and partition.replicas != targets[name.partition]:
            moves.append(
                Move(
                    partition=name,
                    before=partition.replicas,
                    after=targets[name.partition],
                    size_bytes=partition.size_bytes,
                )
            )
    return Plan(
        cluster_id=snapshot.cluster_id, created_ms=0, moves=tuple(moves), limits=limits or Limits(moves_in=2)
    )


async def replicas(admin: KafkaAdmin) -> list[tuple[int, ...]]:
    (topic,) = await admin.describe_topics(["orders"])
    return [each.replicas for each in topic.partitions]


class Stage:
    """The context of a run on an embedded cluster of four brokers."""

    def __init__(self, admin: KafkaAdmin, folder: Path) -> None:
        self.world = RunContext(admin=admin, clock=SystemClock(), disk=SystemDisk(), root=str(folder))
        self.events: list[RunEvent] = []
        self.statuses: list[RunStatus] = []
        self.watcher = RunListener(event=self.events.append, status=self.statuses.append)

    async def control(self) -> Control:
        while not any(each.kind == "begun" for each in self.events):
            await asyncio.sleep(0.02)
        folder = next(str(each.facts["folder"]) for each in self.events if each.kind == "run")
        return Control(SystemDisk(), folder)


async def prepared(
    cluster: EmbeddedCluster, admin: KafkaAdmin
) -> Mapping[ConfigResource, dict[str, str | None]]:
    """Create the topic with its data, and foreign throttles."""
    made = await admin.create_topics([NewTopic(name="orders", by_hand=dict(enumerate(BEFORE)))])
    assert made == {"orders": None}
    await asyncio.to_thread(write, cluster.bootstrap)
    set_ = await admin.incremental_alter_configs(
        {
            ConfigResource("topic", "orders"): {LEADER_REPLICAS: "77:1"},
            ConfigResource("broker", "1"): {LEADER_RATE: "123456789"},
        }
    )
    assert set(set_.values()) == {None}
    return await throttles(admin, 4)


def test_run_executes_and_undoes_a_plan(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            EmbeddedCluster(4) as cluster,
            connected(ConnectionSettings(bootstrap=cluster.bootstrap)) as admin,
        ):
            before = await prepared(cluster, admin)
            stage = Stage(admin, tmp_path)
            options = RunOptions(throttle=ThrottleRates(rate=5_000_000), survey_every_s=0.5)
            outcome = await execute(stage.world, await plan_of(admin, AFTER), options, stage.watcher)
            assert outcome.is_good, outcome
            assert await replicas(admin) == AFTER
            assert await throttles(admin, 4) == before
            assert await admin.list_partition_reassignments() == {}
            (topic,) = await admin.describe_topics(["orders"])
            assert [each.leader for each in topic.partitions] == [each[0] for each in AFTER]
            assert len(await asyncio.to_thread(read, cluster.bootstrap)) == RECORDS

            outcome = await undo(stage.world, options, stage.watcher)
            assert outcome.is_good, outcome
            assert await replicas(admin) == BEFORE
            assert await throttles(admin, 4) == before
            assert len(await asyncio.to_thread(read, cluster.bootstrap)) == RECORDS

    asyncio.run(main())


def test_run_is_cancelled_midway_and_resumed(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            EmbeddedCluster(4) as cluster,
            connected(ConnectionSettings(bootstrap=cluster.bootstrap)) as admin,
        ):
            before = await prepared(cluster, admin)
            stage = Stage(admin, tmp_path)
            slow = RunOptions(throttle=ThrottleRates(rate=SLOWLY), survey_every_s=0.5)
            plan = await plan_of(admin, AFTER)
            running = asyncio.create_task(execute(stage.world, plan, slow, stage.watcher))
            control = await stage.control()
            await asyncio.sleep(1)
            control.request(ControlRequest(stop="cancel"))
            outcome = await running
            assert outcome.ending is Ending.CANCELLED, outcome
            assert await throttles(admin, 4) == before
            assert await admin.list_partition_reassignments() == {}
            assert await replicas(admin) == BEFORE

            outcome = await resume(
                stage.world, RunOptions(throttle=ThrottleRates(rate=50_000_000)), stage.watcher
            )
            assert outcome.is_good, outcome
            assert await replicas(admin) == AFTER
            assert await throttles(admin, 4) == before
            assert len(await asyncio.to_thread(read, cluster.bootstrap)) == RECORDS

    asyncio.run(main())


@pytest.mark.parametrize("victim", ["target", "controller"])
def test_run_survives_a_broker_that_dies_and_comes_back(tmp_path: Path, victim: str) -> None:
    async def main() -> None:
        async with (
            EmbeddedCluster(4) as cluster,
            connected(ConnectionSettings(bootstrap=cluster.bootstrap)) as admin,
        ):
            before = await prepared(cluster, admin)
            stage = Stage(admin, tmp_path)
            options = RunOptions(throttle=ThrottleRates(rate=SLOWLY), survey_every_s=0.5)
            plan = await plan_of(admin, AFTER)
            running = asyncio.create_task(execute(stage.world, plan, options, stage.watcher))
            control = await stage.control()
            controller = await admin.controller()
            assert controller is not None
            broker = 3 if victim == "target" else controller
            await cluster.kill_broker(broker)
            await asyncio.sleep(3)
            await cluster.start_broker(broker)
            control.request(ControlRequest(throttle="50MB/s"))
            outcome = await running
            assert outcome.is_good, outcome
            assert await replicas(admin) == AFTER
            assert await throttles(admin, 4) == before
            assert len(await asyncio.to_thread(read, cluster.bootstrap)) == RECORDS

    asyncio.run(main())


def test_run_moves_log_dirs_and_undo_moves_them_back(tmp_path: Path) -> None:
    async def where(admin: KafkaAdmin) -> dict[int, str]:
        snapshot = await capture(admin, SystemClock())
        partition = snapshot.partition(TopicPartition("orders", 0))
        assert partition is not None
        assert not any(copy.future for copy in partition.copies)
        return {copy.broker: copy.log_dir for copy in partition.copies}

    async def main() -> None:
        async with (
            EmbeddedCluster(3, log_dirs=2) as cluster,
            connected(ConnectionSettings(bootstrap=cluster.bootstrap)) as admin,
        ):
            hand = dict.fromkeys(range(PARTITIONS), (0, 1))
            assert await admin.create_topics([NewTopic(name="orders", by_hand=hand)]) == {"orders": None}
            await asyncio.to_thread(write, cluster.bootstrap)
            lies = await where(admin)
            snapshot = await capture(admin, SystemClock())
            dirs = {each.id: [d.path for d in each.log_dirs] for each in snapshot.brokers}
            other = next(path for path in dirs[0] if path != lies[0])
            target = Target(
                partition=TopicPartition("orders", 0), replicas=(0, 2), log_dirs=(other, dirs[2][1])
            )
            plan = plan_from_targets(snapshot, [target], created_ms=1)
            stage = Stage(admin, tmp_path)
            options = RunOptions(
                throttle=ThrottleRates(rate=5_000_000, dir_rate=5_000_000), survey_every_s=0.5
            )
            outcome = await execute(stage.world, plan, options, stage.watcher)
            assert outcome.is_good, outcome
            assert await where(admin) == {0: other, 2: dirs[2][1]}
            assert await throttles(admin, 3) == {}

            outcome = await undo(stage.world, options, stage.watcher)
            assert outcome.is_good, outcome
            assert await where(admin) == lies
            assert await throttles(admin, 3) == {}

    asyncio.run(main())
