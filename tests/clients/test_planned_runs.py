"""Plans from a request to a verified end, on the embedded cluster and on Apache Kafka 4.3.1."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from harness.apache import apache_kafka
from harness.jars import KAFKA_4
from restow.client import ConnectionSettings, KafkaAdmin, NewTopic, connected
from restow.cluster.embedded import EmbeddedCluster
from restow.execute.progress.status import RunListener
from restow.execute.run.options import RunOptions
from restow.execute.run.start import RunContext, execute
from restow.plan.explain.explain import explain
from restow.plan.files.text import dumps, loads
from restow.plan.judge.evaluate import evaluate
from restow.plan.propose import propose
from restow.plan.request.request import PlanRequest
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk
from restow.snapshot import capture
from restow.verify import verify
from tests.clients.consumers import keys_of_orders
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from pathlib import Path

    from restow.model import Plan, Snapshot

# kafka-python leaves a refused socket to the garbage collector, which warns of it.
ORDERS = 12
VALUE = bytes(1000)
RECORDS_AT_MOST = 200
NO_TRAFFIC = {"leaders": 0.3, "replicas": 0.3}


@pytest.fixture(autouse=True)
def hushed(caplog: pytest.LogCaptureFixture) -> None:
    """Silence kafka-python's log, whose records of a lost connection would keep its socket open."""
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")


def write(bootstrap: str) -> int:
    """Write more into the first partitions than into the last."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    written = 0
    for partition in range(ORDERS):
        for number in range(RECORDS_AT_MOST // (partition + 1)):
            producer.produce("orders", VALUE, b"%d-%d" % (partition, number), partition)
            written += 1
        producer.poll(0)
    assert producer.flush(120) == 0
    return written


async def carried_out(admin: KafkaAdmin, request: PlanRequest, folder: Path) -> tuple[Plan, Snapshot]:
    """Plan, judge, write and read the file, execute, verify; return the plan and the snapshot after it."""
    before = await capture(admin, SystemClock())
    made = propose(before, None, request)
    assert made.moves
    assert not evaluate(before, None, made.moves, request).violations
    assert explain(before, None, made, request).reasons
    plan = loads(dumps(made))
    world = RunContext(admin=admin, clock=SystemClock(), disk=SystemDisk(), root=str(folder))
    watcher = RunListener(event=lambda _: None, status=lambda _: None)
    outcome = await execute(world, plan, RunOptions(survey_every_s=0.5), watcher)
    assert outcome.is_good, outcome
    after = await capture(admin, SystemClock())
    verdict = verify(plan, after)
    assert verdict.holds, verdict
    return plan, after


async def whole_story(bootstrap: str, ids: tuple[int, ...], folder: Path) -> None:
    """Add two brokers to three, drain one of the old ones, then balance the log dirs."""
    first, second, third, *new = ids
    async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
        old = [(first, second), (second, third), (third, first)]
        by_hand = {number: old[number % 3] for number in range(ORDERS)}
        made = await admin.create_topics([NewTopic(name="orders", by_hand=by_hand)])
        assert made == {"orders": None}
        written = await asyncio.to_thread(write, bootstrap)

        add = PlanRequest(add=frozenset(new), bands=NO_TRAFFIC, fill=0.99)
        plan, after = await carried_out(admin, add, folder / "add")
        assert {broker for move in plan.moves for broker in move.adding} == set(new)
        assert plan.waves

        drain = PlanRequest(drain=frozenset({first}), bands=NO_TRAFFIC, fill=0.99)
        plan, after = await carried_out(admin, drain, folder / "drain")
        assert not [name for name, each in after.all_partitions() if first in each.replicas]
        copies = [copy.broker for _, each in after.all_partitions() for copy in each.copies]
        assert first not in copies

        disks = PlanRequest(disks=True, bands={"log_dirs": 0.02}, fill=0.99)
        plan, after = await carried_out(admin, disks, folder / "disks")
        assert all(move.before == move.after and move.dir_changes for move in plan.moves)
        assert len(await asyncio.to_thread(keys_of_orders, bootstrap, ORDERS, written)) == written


def test_planned_runs_work_on_the_embedded_cluster(tmp_path: Path) -> None:
    async def main() -> None:
        cluster = EmbeddedCluster(5, log_dirs=2, data=tmp_path / "data", fsync=False)
        async with cluster:
            await whole_story(cluster.bootstrap, (0, 1, 2, 3, 4), tmp_path)

    asyncio.run(main())


@pytest.mark.apache
@pytest.mark.full
def test_planned_runs_work_on_apache_kafka(tmp_path: Path) -> None:
    with (
        needs_kafka(),
        apache_kafka(tmp_path / "kafka", nodes=5, version=KAFKA_4, heap="256m", log_dirs=2) as cluster,
    ):
        asyncio.run(whole_story(cluster.bootstrap, (1, 2, 3, 4, 5), tmp_path))
