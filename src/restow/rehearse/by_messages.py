"""Rehearse message by message: the executor against the simulated cluster, for small plans.

Brokers, controller, replication and throttles are those of the embedded cluster, in virtual time. All bytes
are scaled down alike, so that times stay what they are: contents, throttle and fetch sizes. Only topics with
moves are there, and of them only partitions that move have contents. Wires are never what limits a copy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from restow.client import NewTopic, TopicPartitionReplica
from restow.errors import InvalidInput
from restow.execute.progress.status import RunListener
from restow.execute.run import start
from restow.execute.throttle.throttles import ThrottleRates
from restow.plan.flow.constants import FETCH_BYTES, RESPONSE_BYTES
from restow.plan.schedule.schedule import SPECIAL_TOPICS
from restow.rehearse.by_executor import RunNotes
from restow.runtime.chance import SeededChance
from restow.sim.admin import connected_admin, run_context
from restow.sim.client import SimClient
from restow.sim.clock import NodeClock
from restow.sim.cluster import SimCluster, SimulatedClusterSettings
from restow.sim.disk import SimDisk
from restow.sim.loop import run as run_in_virtual_time
from restow.sim.process import SimProcess
from restow.sim.producer import SimProducer
from restow.snapshot import capture

if TYPE_CHECKING:
    from restow.client import KafkaAdmin
    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.run.options import RunOptions
    from restow.model import Plan, Snapshot
    from restow.plan.flow.forecast import StepTimes

SCALE = 256
"""One byte stands for so many: a fetch of 1 MiB brings 4 KiB."""
_BATCH_BYTES = FETCH_BYTES // SCALE // 2
_OVERHEAD_BYTES = 72
"""What a batch of one record takes beside the record's value."""
_MOST_BYTES, _MOST_MOVES, _MOST_BROKERS, _LONGEST_S = 20 * 10**9, 100, 12, 3600.0


class MessageRun(NamedTuple):
    """A run of the executor on the simulated cluster."""

    outcome: RunOutcome
    seconds: float
    steps: list[StepTimes]


def run_messages(plan: Plan, snapshot: Snapshot, options: RunOptions, expected_s: float) -> MessageRun:
    """Run the executor on this plan, message by message."""
    _check(plan, snapshot, options, expected_s)

    async def main() -> MessageRun:
        dirs = {broker.id: tuple(each.path for each in broker.log_dirs) for broker in snapshot.brokers}
        settings = SimulatedClusterSettings(
            seed="rehearsal",
            log_dir_paths={broker: paths for broker, paths in dirs.items() if paths},
            properties={
                "replica.fetch.max.bytes": str(FETCH_BYTES // SCALE),
                "replica.fetch.response.max.bytes": str(RESPONSE_BYTES // SCALE),
            },
        )
        disk, clock = SimDisk(SeededChance("rehearsal")), NodeClock()
        async with SimCluster(dirs, settings) as cluster:
            process = SimProcess("tool", cluster.network, disk)
            async with connected_admin(process, cluster.network, clock, cluster.nodes) as admin:
                await _fill(plan, snapshot, cluster, admin)
                here = await capture(admin, clock)
                world = run_context(process, admin, clock, disk, SeededChance("rehearsal"))
                notes = RunNotes(clock.now_ms())
                listener = RunListener(event=notes.event, status=lambda _: None)
                began_s = clock.monotonic_s()
                outcome = await start.execute(world, _scaled(plan, here), _slower(options), listener)
                return MessageRun(outcome, clock.monotonic_s() - began_s, notes.steps(plan))

    return run_in_virtual_time(main())


def _check(plan: Plan, snapshot: Snapshot, options: RunOptions, expected_s: float) -> None:
    """Refuse what the simulated cluster cannot show."""
    where = "at message level (--exact)"
    if options.throttle.rate is None or options.auto or options.hourly is not None:
        raise InvalidInput(f"give one rate as the throttle, like 50MB/s: nothing else limits copies {where}")
    if plan.bytes_to_copy > _MOST_BYTES or len(plan.moves) > _MOST_MOVES:
        raise InvalidInput(f"only plans of up to {_MOST_MOVES} moves and 20 GB can be rehearsed {where}")
    if len(snapshot.brokers) > _MOST_BROKERS or expected_s > _LONGEST_S:
        raise InvalidInput(f"only runs of up to an hour on {_MOST_BROKERS} brokers can be rehearsed {where}")
    for move in plan.moves:
        if move.partition.topic in SPECIAL_TOPICS:
            raise InvalidInput(f"{move.partition}: internal topics cannot be moved {where}")
        if missing := set(move.before + move.after) - snapshot.broker.keys():
            raise InvalidInput(f"{move.partition}: broker {min(missing)} is down, which is not shown {where}")


async def _fill(plan: Plan, snapshot: Snapshot, cluster: SimCluster, admin: KafkaAdmin) -> None:
    """Create the topics of the plan with every replica in its log dir, and write what will be copied."""
    topics = [snapshot.topic[name] for name in sorted({move.partition.topic for move in plan.moves})]
    lies: dict[TopicPartitionReplica, str] = {}
    for name, partition in snapshot.all_partitions():
        if name.topic in {topic.name for topic in topics}:
            lies.update({TopicPartitionReplica(name, b): path for b, path in partition.log_dirs.items()})
    await admin.alter_replica_log_dirs(lies)  # brokers remember it for replicas that they will get
    await admin.create_topics(
        [
            NewTopic(
                name=topic.name,
                by_hand={each.number: each.replicas for each in topic.partitions},
                configs={"min.insync.replicas": str(topic.min_insync_replicas)},
            )
            for topic in topics
        ]
    )
    client = SimClient("producer", cluster.network, NodeClock())
    for topic in topics:
        producer = SimProducer(client, cluster.nodes, topic.name)
        left = {m.partition: _small(m.size_bytes) for m in plan.moves if m.partition.topic == topic.name}
        while left or not producer.is_idle:
            left = {name: rest for name, rest in left.items() if rest > _OVERHEAD_BYTES}
            for name, rest in left.items():
                size = min(rest, _BATCH_BYTES)
                producer.put(name.partition, bytes(size - _OVERHEAD_BYTES))
                left[name] = rest - size
            await producer.round()
            await client.clock.sleep(0.01)
    client.close()


def _small(size_bytes: int) -> int:
    return size_bytes // SCALE


def _scaled(plan: Plan, here: Snapshot) -> Plan:
    """Return the plan for the simulated cluster."""
    return replace(
        plan,
        cluster_id=here.cluster_id,
        moves=tuple(replace(move, size_bytes=_small(move.size_bytes), sizes={}) for move in plan.moves),
        waves=tuple(
            tuple(replace(step, size_bytes=_small(step.size_bytes)) for step in wave) for wave in plan.waves
        ),
        topic_ids={},
        promises=(),
        bound_bytes=None,
    )


def _slower(options: RunOptions) -> RunOptions:
    rates = (options.throttle.rate, options.throttle.dir_rate)
    rate, dir_rate = (None if each is None else max(1, _small(each)) for each in rates)
    return replace(options, throttle=ThrottleRates(rate=rate, dir_rate=dir_rate))
