"""The real executor in virtual time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from restow.client import NewTopic
from restow.execute.progress.outcome import Ending
from restow.execute.progress.status import RunEvent, RunListener
from restow.execute.run import start
from restow.execute.run.options import run_options
from restow.model import Limits, TopicPartition
from restow.plan import plan
from restow.plan.pin import Target, plan_from_targets
from restow.runtime.chance import SeededChance
from restow.sim.admin import connected_admin, run_context
from restow.sim.client import SimClient
from restow.sim.clock import NodeClock
from restow.sim.cluster import SimCluster, SimulatedClusterSettings
from restow.sim.disk import SimDisk
from restow.sim.loop import run
from restow.sim.process import SimProcess
from restow.sim.producer import SimProducer
from restow.snapshot import capture

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from restow.execute.journal.ledger import RunLedger
    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.run.start import RunContext
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


async def fill(cluster: SimCluster, partitions: int = PARTITIONS) -> None:
    client = SimClient("producer", cluster.network, NodeClock())
    producer = SimProducer(client, cluster.nodes, TOPIC)
    for number in range(partitions * 10):
        producer.put(number % partitions, b"x" * RECORD_BYTES)
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


def test_run_goes_on_beside_a_dead_target_gives_up_and_is_resumed_when_it_is_back() -> None:
    """Broker 3 dies with the first two moves on their way to it, which is all that the plan allows."""
    targets = [(0, 1, 3), (0, 1, 3), (0, 1, 4), (0, 1, 4)]
    small = {f"replica.fetch.{each}max.bytes": str(RECORD_BYTES) for each in ("", "response.")}

    async def main() -> tuple[list[RunOutcome], list[Snapshot], Heard]:
        heard, outcomes, seen = Heard(), [], []
        async with SimCluster(5, SimulatedClusterSettings(properties=small)) as cluster:
            disk, clock = SimDisk(SeededChance("tool")), NodeClock()
            process = SimProcess("tool", cluster.network, disk)
            async with connected_admin(process, cluster.network, clock, cluster.nodes) as admin:
                by_hand = dict(enumerate([(0, 1, 2)] * len(targets)))
                await admin.create_topics([NewTopic(name=TOPIC, by_hand=by_hand)])
                for _ in range(3):  # at first, brokers let a batch of each partition through
                    await fill(cluster, len(targets))
                world = run_context(process, admin, clock, disk, SeededChance("executor"))
                seen.append(await capture(admin, clock))
                wanted = [
                    Target(partition=TopicPartition(TOPIC, number), replicas=replicas)
                    for number, replicas in enumerate(targets)
                ]
                limits = Limits(moves_in=2, moves_out=2)
                plan = plan_from_targets(seen[0], wanted, created_ms=1, limits=limits)
                options = run_options(throttle="20kB/s", max_under_replicated=-1, give_up_after=40)
                begun = asyncio.create_task(start.execute(world, plan, options, heard.listener))
                while sum(each.kind == "begun" for each in heard.events) < 2:
                    await clock.sleep(0.1)
                await cluster.nodes[3].kill()
                outcomes.append(await begun)
                seen.append(await capture(admin, clock))
                await cluster.nodes[3].start_until_up(print)
                outcomes.append(await start.resume(world, options, heard.listener))
                seen.append(await capture(admin, clock))
        return outcomes, seen, heard

    (stuck, done), (before, between, after), heard = run(main())
    assert stuck.ending is Ending.STUCK, stuck
    assert stuck.reason.endswith(" to 3: dead target: broker 3 is not there")
    assert {str(name) for name in stuck.under_way} == {"orders-0", "orders-1"}
    now = [between.partition(TopicPartition(TOPIC, number)) for number in range(4)]
    assert [each is not None and each.moving for each in now] == [True, True, False, False]
    assert {each.facts["partition"] for each in heard.events if each.kind == "blocked"} == {
        "orders-0",
        "orders-1",
    }
    assert done.is_good, done
    (moved,) = [topic for topic in after.topics if topic.name == TOPIC]
    assert [each.replicas for each in moved.partitions] == targets
    assert configs_of(after) == configs_of(before)


def test_resumed_run_takes_no_throttle_for_an_earlier_one_that_a_slow_broker_still_tells() -> None:
    """A cancel has taken the throttles off and is killed. The next process hears of that before broker 3."""

    async def main() -> tuple[Snapshot, Snapshot, RunOutcome]:
        disk, clock = SimDisk(SeededChance("tool")), NodeClock()
        async with SimCluster(4) as cluster:

            @asynccontextmanager
            async def tool() -> AsyncIterator[tuple[SimProcess, RunContext]]:
                process = SimProcess("tool", cluster.network, disk)
                async with connected_admin(process, cluster.network, clock, cluster.nodes) as admin:
                    yield process, run_context(process, admin, clock, disk, SeededChance("executor"))

            async def kill(
                work: Callable[[RunContext], Awaitable[object]], when: Callable[[RunLedger], bool]
            ) -> None:
                with suppress(asyncio.CancelledError):
                    async with tool() as (process, world):
                        runs = await world.runs()
                        task = asyncio.ensure_future(work(world))
                        while not (runs.names() and when(runs.latest().ledger)):
                            await clock.sleep(0.001)
                        process.kill()
                        task.cancel()
                        await task

            async with tool() as (_, world):
                await world.admin.create_topics([NewTopic(name=TOPIC, partitions=2, replication_factor=3)])
                await fill(cluster, 2)
                before = await capture(world.admin, clock)
            drain = plan(before, drain=0, seconds=1e9)
            options, listener = run_options(throttle="20kB/s"), Heard().listener
            await kill(
                lambda world: start.execute(world, drain, options, listener),
                lambda ledger: bool(ledger.in_progress),
            )
            await clock.sleep(1.0)
            cluster.nodes[3].store.latency_s = 1.0
            await kill(lambda world: start.cancel(world, listener), lambda ledger: not ledger.ours)
            async with tool() as (_, world):
                outcome = await start.resume(world, options, listener)
                cluster.nodes[3].store.latency_s = 0.001
                await clock.sleep(10.0)
                after = await capture(world.admin, clock)
        return before, after, outcome

    before, after, outcome = run(main())
    assert outcome.is_good, outcome
    assert configs_of(after) == configs_of(before)
