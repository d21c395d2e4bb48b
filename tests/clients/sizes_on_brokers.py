"""Replicas of one partition that differ in size, on any cluster, and the moves that they take part in."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from restow.client import ConfigResource, ConnectionSettings, connected
from restow.execute.progress.outcome import Ending
from restow.execute.run.options import RunOptions
from restow.execute.throttle.throttles import ThrottleRates
from restow.model import Limits
from restow.plan.planning import make_plan
from restow.plan.request.request import PlanRequest
from restow.runtime.clock import SystemClock
from restow.snapshot import capture
from tests.clients.embedded import WAIT_S
from tests.clients.true_numbers import OFTEN
from tests.clients.watched_run import WatchedRun, make

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from restow.client import KafkaAdmin
    from restow.model import Plan, Snapshot

TOPIC, RECORD = "orders", 10_000
OFTEN_TENDED = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500"}
"""How brokers of Apache Kafka are to be started: they look for old segments twice a second."""


async def look_at(admin: KafkaAdmin) -> Snapshot:
    """Return a snapshot with the sizes of all replicas."""
    while True:
        snapshot = await capture(admin, SystemClock())
        if not snapshot.unanswered:
            return snapshot


def bytes_on(snapshot: Snapshot) -> Counter[int]:
    """Return the bytes of the topic's replicas on each broker."""
    found: Counter[int] = Counter()
    for partition in snapshot.topic[TOPIC].partitions:
        for copy in partition.copies:
            found[copy.broker] += copy.size_bytes
    return found


async def let_sizes_differ(
    bootstrap: str, admin: KafkaAdmin, brokers: Sequence[int], size: int, segment: int
) -> None:
    """Fill six partitions of two brokers, of which the first deletes most: by its own log configs.

    The first leads half of them, and their followers are larger; the others have smaller followers.
    """
    short, long = brokers[:2]
    await _configure(admin, short, {"log.segment.bytes": str(segment), "log.flush.interval.ms": "200"})
    await make(admin, TOPIC, [(short, long)] * 3 + [(long, short)] * 3)
    await asyncio.to_thread(_write, bootstrap, size // RECORD)
    await _configure(admin, short, {"log.retention.bytes": str(segment)})
    async with asyncio.timeout(600):
        while True:
            # The embedded cluster looks for old segments after something was written.
            await asyncio.to_thread(_write, bootstrap, 6)
            await asyncio.sleep(0.5)
            told = [each.own_sizes for each in (await look_at(admin)).topic[TOPIC].partitions]
            if all(0 < each.get(short, 0) < 1.85 * segment < each.get(long, 0) for each in told):
                return


async def _configure(admin: KafkaAdmin, broker: int, configs: dict[str, str | None]) -> None:
    of = ConfigResource("broker", str(broker))
    assert await admin.incremental_alter_configs({of: configs}) == {of: None}


def _write(bootstrap: str, records: int) -> None:
    """Write records one by one, so that all full segments have the same size."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "batch.num.messages": 1})
    for number in range(records):
        producer.produce(TOPIC, bytes(RECORD), partition=number % 6)
        producer.poll(0)
    assert producer.flush(3 * WAIT_S) == 0


async def move_and_look(
    bootstrap: str, folder: Path, brokers: Sequence[int], *, size: int, segment: int, rate: int
) -> None:
    """Drain the broker that keeps all, two replicas at a time, and look at the disks all the while."""
    async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
        await let_sizes_differ(bootstrap, admin, brokers, size, segment)
        before = await look_at(admin)
        gone, news = brokers[1], brokers[2:]
        request = PlanRequest(drain=frozenset({gone}), only_topics=(TOPIC,), fill=1.0)
        limits = Limits(moves_in=1, moves_out=2, fill=1.0)
        plan = make_plan(before, None, request, limits=limits).plan
        assert len(plan.moves) == 6
        assert {move.size_bytes < move.own_size(gone) for move in plan.moves} == {True, False}
        stage = WatchedRun(admin, folder)
        run = stage.start(plan, RunOptions(throttle=ThrottleRates(rate=rate), **OFTEN))
        at_first, partly = bytes_on(before), 0
        while not run.done():
            arrived = _partitions(stage, "arrived")
            seen = bytes_on(await look_at(admin))
            begun = _partitions(stage, "begun")
            for broker in news:
                least, most = _coming(plan, arrived, broker), _coming(plan, begun, broker)
                assert least <= seen[broker] <= most, f"broker {broker}"
                partly += least < seen[broker] < most
            left = at_first[gone] - sum(m.own_size(gone) for m in plan.moves if str(m.partition) in begun)
            assert left <= seen[gone] <= at_first[gone]
            assert seen[brokers[0]] == at_first[brokers[0]], "nothing comes to it, and nothing leaves it"
        outcome = await run
        assert outcome.ending is Ending.DONE
        assert outcome.summary is not None
        assert outcome.summary.copied_bytes == plan.bytes_to_copy
        assert partly, "copies were seen under way"
        everything = {str(move.partition) for move in plan.moves}
        end = Counter({broker: _coming(plan, everything, broker) for broker in news})
        end[brokers[0]] = at_first[brokers[0]]
        async with asyncio.timeout(600):
            while bytes_on(await look_at(admin)) != +end:
                await asyncio.sleep(0.1)


def _partitions(stage: WatchedRun, kind: str) -> set[str]:
    return {str(each.facts["partition"]) for each in stage.told(kind)}


def _coming(plan: Plan, partitions: set[str], broker: int) -> int:
    """Return the bytes that the moves of these partitions bring to a broker."""
    return sum(
        move.size_bytes for move in plan.moves if str(move.partition) in partitions and broker in move.adding
    )
