"""The stage of the kill matrix: a topic with data, foreign throttles, and two ends.

Every round is a plan from one end to the other. A process dies at an entry of the run's journal; then a
remedy is applied, and `in_order` checks the result.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from restow.client import ConfigResource, NewTopic
from restow.execute.progress.status import RunListener
from restow.execute.repair.doctor import diagnose, fix
from restow.execute.run.options import RunOptions
from restow.execute.run.start import RunContext, resume, undo
from restow.execute.throttle.throttles import FOLLOWER_RATE, LEADER_REPLICAS, RATES, REPLICAS
from restow.model import Limits
from restow.plan.pin import Target, plan_from_targets
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk
from restow.snapshot import capture
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from restow.client import KafkaAdmin
    from restow.model import Plan

Ends = dict[int, tuple[int, ...]]

REMEDIES = ("resume", "undo", "doctor")
QUIET = RunListener(event=lambda _: None, status=lambda _: None)
_SCRIPT = Path(__file__).with_name("killed_run.py")
_RECORDS = 400
_TOPIC = "orders"


@dataclass
class KillStage:
    """The topic's partitions move to and fro between `here` and `there`."""

    admin: KafkaAdmin
    bootstrap: str
    folder: Path
    here: Ends
    there: Ends
    throttles: dict[tuple[str, str, str], str | None] = field(default_factory=dict)
    """The foreign throttles, as they were set."""
    written: int = 0
    rounds: int = 0

    async def prepare(self) -> None:
        await self._make()
        await self.write(_RECORDS)
        receiver = max(set(self.there[0]) - set(self.here[0]))
        set_ = await self.admin.incremental_alter_configs(
            {
                ConfigResource("topic", _TOPIC): {LEADER_REPLICAS: "5:1"},
                ConfigResource("broker", str(receiver)): {FOLLOWER_RATE: "99000000"},
            }
        )
        assert set(set_.values()) == {None}
        self.throttles = await self.throttles_now()
        assert len(self.throttles) == 2

    async def _make(self) -> None:
        """Create the topic; its name stays taken until an earlier stage's topic is fully deleted."""
        new = NewTopic(name=_TOPIC, by_hand=self.here)
        async with asyncio.timeout(60):
            while (refused := (await self.admin.create_topics([new]))[_TOPIC]) is not None:
                assert refused.code is ErrorCode.TOPIC_ALREADY_EXISTS, refused
                await asyncio.sleep(0.05)

    async def clear(self) -> None:
        """Delete the topic for the next stage on the same cluster."""
        owners = {ConfigResource(of, name) for of, name, _ in self.throttles if of == "broker"}
        await self.admin.incremental_alter_configs({owner: {FOLLOWER_RATE: None} for owner in owners})
        assert await self.admin.delete_topics([_TOPIC]) == {_TOPIC: None}
        async with asyncio.timeout(60):
            while any(topic.name == _TOPIC for topic in await self.admin.describe_topics()):
                await asyncio.sleep(0.05)

    def world(self) -> RunContext:
        """Return a context with journals of its own for every round."""
        self.rounds += 1
        root = str(self.folder / f"round-{self.rounds}")
        return RunContext(admin=self.admin, clock=SystemClock(), disk=SystemDisk(), root=root)

    async def plan(self) -> Plan:
        """Return a plan to the other end, one partition after the other."""
        snapshot = await capture(self.admin, SystemClock())
        aim = self.there if await self.replicas() == self.here else self.here
        targets = [
            Target(partition=name, replicas=aim[name.partition])
            for name, _ in snapshot.all_partitions()
            if name.topic == _TOPIC
        ]
        return plan_from_targets(snapshot, targets, created_ms=1, limits=Limits(moves_in=1, moves_out=1))

    async def write(self, records: int) -> None:
        """Write records that all in-sync replicas acknowledge."""
        await asyncio.to_thread(self._write, records)
        self.written += records

    def _write(self, records: int) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.bootstrap, "acks": "all"})
        for number in range(self.written, self.written + records):
            producer.produce(_TOPIC, bytes(1000), b"%d" % number, number % len(self.here))
        assert producer.flush(60) == 0

    def _read(self) -> set[bytes]:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "readers", "enable.auto.commit": False}
        )
        consumer.assign([TopicPartition(_TOPIC, number, 0) for number in self.here])
        found: set[bytes] = set()
        try:
            for _ in range(60):
                found |= {message.key() for message in consumer.consume(1000, 1.0) if not message.error()}
                if len(found) >= self.written:
                    break
        finally:
            consumer.close()
        return found

    async def throttles_now(self) -> dict[tuple[str, str, str], str | None]:
        alive = [node.id for node in (await self.admin.describe_cluster()).nodes]
        of = [ConfigResource("topic", _TOPIC), *(ConfigResource("broker", str(broker)) for broker in alive)]
        found = {}
        for owner, configs in (await self.admin.describe_configs(of)).items():
            assert isinstance(configs, dict), (owner, configs)
            for name, config in configs.items():
                if name in (*RATES, *REPLICAS) and config.source == owner.of:
                    found[owner.of, owner.name, name] = config.value
        return found

    async def replicas(self) -> Ends:
        (topic,) = await self.admin.describe_topics([_TOPIC])
        return {each.number: each.replicas for each in topic.partitions}

    async def in_order(self, said: str) -> None:
        """Check that throttles are as before, nothing moves, and all partitions are at an end of the plan."""
        assert await self.throttles_now() == self.throttles, said
        assert await self.admin.list_partition_reassignments() == {}, said
        assert await self.replicas() in (self.here, self.there), said

    async def nothing_is_lost(self) -> None:
        found = await asyncio.to_thread(self._read)
        assert found == {b"%d" % number for number in range(self.written)}


async def bring_order(world: RunContext, remedy: str) -> str:
    """Apply the remedy; return the name of the outcome, or that there was nothing to do."""
    runs = (await world.runs()).all()
    if not runs or (runs[-1].ledger.is_settled and runs[-1].ledger.outcome == "done"):
        return "nothing to do"
    if remedy == "resume":
        return (await resume(world, RunOptions(), QUIET)).ending.value
    if remedy == "undo":
        return (await undo(world, RunOptions(), QUIET)).ending.value
    await fix(world, QUIET)
    assert not [each for each in await diagnose(world) if each.run is not None]
    return "fixed"


async def lead_home(world: RunContext, stage: KillStage) -> None:
    """Move partitions that the doctor left between the ends to one of them, for the next round."""
    if await stage.replicas() not in (stage.here, stage.there):
        assert (await resume(world, RunOptions(), QUIET)).is_good


async def killed_at(bootstrap: str, world: RunContext, plan: Path, entry: int, when: str) -> bool:
    """Run the plan in a process; return whether it was killed there, False if it ended before."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(_SCRIPT),
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
