"""The real executor in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from restow.client import NewTopic
from restow.execute.progress.outcome import Ending
from restow.execute.progress.status import RunEvent, RunListener
from restow.execute.run import start
from restow.execute.run.options import run_options
from restow.plan import plan
from restow.runtime.chance import SeededChance
from restow.sim.admin import connected_admin, run_context
from restow.sim.client import SimClient
from restow.sim.clock import NodeClock
from restow.sim.cluster import SimCluster
from restow.sim.disk import SimDisk
from restow.sim.loop import run
from restow.sim.process import SimProcess
from restow.sim.producer import SimProducer
from restow.snapshot import capture

if TYPE_CHECKING:
    from restow.model import Plan, Snapshot

TOPIC = "orders"
PARTITIONS = 6
RECORD_BYTES = 10_000


@dataclass
class Heard:
    """What a run has told."""

    events: list[RunEvent] = field(default_factory=list)

    @property
    def listener(self) -> RunListener:
        return RunListener(event=self.events.append, status=lambda _: None)


async def fill(cluster: SimCluster) -> None:
    client = SimClient("producer", cluster.network, NodeClock())
    producer = SimProducer(client, cluster.nodes, TOPIC)
    for number in range(PARTITIONS * 10):
        producer.put(number % PARTITIONS, b"x" * RECORD_BYTES)
    while not producer.is_idle:
        await producer.round()
        await client.clock.sleep(0.1)
    client.close()


def configs_of(snapshot: Snapshot) -> object:
    topics = [each for each in snapshot.topics if each.name == TOPIC]
    return [each.configs for each in snapshot.brokers], [each.configs for each in topics]


def test_executor_drains_a_broker_under_a_throttle_and_restores_the_configs() -> None:
    async def main() -> tuple[Plan, Snapshot, Snapshot, Heard]:
        heard = Heard()
        async with SimCluster(4) as cluster:
            disk, clock = SimDisk(SeededChance("tool")), NodeClock()
            process = SimProcess("tool", cluster.network, disk)
            async with connected_admin(process, cluster.network, clock, cluster.nodes) as admin:
                await admin.create_topics([NewTopic(name=TOPIC, partitions=PARTITIONS, replication_factor=3)])
                await fill(cluster)
                world = run_context(process, admin, clock, disk, SeededChance("executor"))
                before = await capture(admin, clock)
                drain = plan(before, drain=3, seconds=1e9)
                outcome = await start.execute(world, drain, run_options(throttle="20kB/s"), heard.listener)
                assert outcome.ending is Ending.DONE
                after = await capture(admin, clock)
        return drain, before, after, heard

    drain, before, after, heard = run(main())
    assert len(drain.moves) > 2
    for move in drain.moves:
        moved = after.partition(move.partition)
        assert moved is not None
        assert moved.replicas == move.after
    assert configs_of(after) == configs_of(before)
    throttles = [
        (event.facts["key"], event.facts["value"]) for event in heard.events if event.kind == "throttle"
    ]
    assert ("follower.replication.throttled.rate", "20000") in throttles
    assert ("follower.replication.throttled.rate", None) in throttles
