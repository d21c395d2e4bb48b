"""A run on an embedded cluster that is watched while the cluster changes."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from restow.client import ConfigResource, NewTopic
from restow.execute.progress.status import RunListener
from restow.execute.run.control import Control, ControlRequest
from restow.execute.run.start import RunContext, execute
from restow.execute.throttle.throttles import RATES, REPLICAS
from restow.model import Limits
from restow.plan.pin import Target, plan_from_targets
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk
from restow.snapshot import capture
from tests.clients.embedded import WAIT_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from restow.client import KafkaAdmin
    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.progress.status import RunEvent, RunStatus
    from restow.execute.progress.stuck import StuckReplica
    from restow.execute.run.options import RunOptions
    from restow.model import Plan, TopicPartition

Replicas = tuple[int, ...]


class WatchedRun:
    """The context of runs, and all their events."""

    def __init__(self, admin: KafkaAdmin, folder: Path) -> None:
        self.admin = admin
        self.world = RunContext(admin=admin, clock=SystemClock(), disk=SystemDisk(), root=str(folder))
        self.events: list[RunEvent] = []
        self.statuses: list[RunStatus] = []
        self.watcher = RunListener(event=self.events.append, status=self.statuses.append)

    def start(self, plan: Plan, options: RunOptions) -> asyncio.Task[RunOutcome]:
        return asyncio.create_task(execute(self.world, plan, options, self.watcher))

    def told(self, kind: str) -> list[RunEvent]:
        return [each for each in self.events if each.kind == kind]

    def still(self) -> dict[str, StuckReplica]:
        """Return the present stalls, by cause."""
        last = self.statuses[-1].report.still if self.statuses else ()
        return {each.cause.value: each for each in last}

    def request(self, request: ControlRequest) -> None:
        Control(self.world.disk, str(self.told("run")[-1].facts["folder"])).request(request)

    async def until(self, is_so: Callable[[], object], what: str) -> None:
        try:
            async with asyncio.timeout(2 * WAIT_S):
                while not is_so():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            last = json.dumps(self.statuses[-1].document()) if self.statuses else "nothing"
            raise AssertionError(f"not within {2 * WAIT_S} s: {what}; last seen: {last}") from None


async def make(admin: KafkaAdmin, topic: str, replicas: Sequence[Replicas]) -> None:
    assert await admin.create_topics([NewTopic(name=topic, by_hand=dict(enumerate(replicas)))]) == {
        topic: None
    }


async def fill(bootstrap: str, topic: str, partitions: int, size: int) -> None:
    """Write so many bytes, acknowledged by all replicas."""

    def write() -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "batch.size": 100_000})
        for number in range(size // 10_000):
            producer.produce(topic, bytes(10_000), partition=number % partitions)
            producer.poll(0)
        assert producer.flush(3 * WAIT_S) == 0

    await asyncio.to_thread(write)


async def plan_to(
    admin: KafkaAdmin, targets: Mapping[TopicPartition, Replicas], limits: Limits | None = None
) -> Plan:
    """Plan to these targets, however full the machine's disk is."""
    snapshot = await capture(admin, SystemClock())
    request = [Target(partition=name, replicas=replicas) for name, replicas in targets.items()]
    return plan_from_targets(snapshot, request, created_ms=1, limits=replace(limits or Limits(), fill=1.0))


async def replicas_of(admin: KafkaAdmin, topic: str) -> list[Replicas]:
    (found,) = await admin.describe_topics([topic])
    return [each.replicas for each in found.partitions]


async def throttles(admin: KafkaAdmin) -> dict[str, str | None]:
    """Return all throttle configs of the present brokers and topics."""
    of = [ConfigResource("topic", topic.name) for topic in await admin.describe_topics()]
    of += [ConfigResource("broker", str(node.id)) for node in (await admin.describe_cluster()).nodes]
    found = {}
    for owner, configs in (await admin.describe_configs(of)).items():
        assert isinstance(configs, dict), (owner, configs)
        for name, config in configs.items():
            if name in (*RATES, *REPLICAS) and config.source == owner.of:
                found[f"{name} of {owner.of} {owner.name}"] = config.value
    return found
