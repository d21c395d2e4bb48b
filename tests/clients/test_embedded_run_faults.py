"""Events on a cluster during a run; then resume, undo or the doctor restores order.

Every run is slow enough to be interrupted midway. At the end nothing moves and no throttle is left.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from restow.client import ConnectionSettings, NewTopic, connected
from restow.execute.progress.outcome import Ending
from restow.execute.repair.doctor import diagnose, fix
from restow.execute.run.control import ControlRequest
from restow.execute.run.lock import ClusterLocked
from restow.execute.run.options import Guards, RunOptions
from restow.execute.run.start import execute, resume, undo
from restow.execute.throttle.throttles import ThrottleRates
from restow.model import Limits, TopicPartition
from tests.clients.embedded import WAIT_S, embedded
from tests.clients.watched_run import WatchedRun, fill, make, plan_to, replicas_of, throttles
from tests.unit.log.making import FaultyDisk, full_under

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from restow.client import KafkaAdmin
    from tests.clients.embedded import Running

SLOW = RunOptions(throttle=ThrottleRates(rate=20_000), survey_every_s=0.3, look_every_s=0.05, stall_s=2)
SLOWER = RunOptions(throttle=ThrottleRates(rate=2_000), survey_every_s=0.3, look_every_s=0.05, stall_s=2)
"""For moves that must not arrive before a test has seen them, however slow it is."""
FAST = RunOptions(throttle=ThrottleRates(rate=50_000_000), survey_every_s=0.3, look_every_s=0.05)
ORDERS = [TopicPartition("orders", number) for number in range(2)]
AUDIT = TopicPartition("audit", 0)


@pytest.fixture(autouse=True)
def collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Collect garbage: kafka-python leaves sockets of dead brokers to it, and its log keeps them open."""
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")
    yield
    gc.collect()


async def prepared(running: Running, admin: KafkaAdmin, folder: Path) -> WatchedRun:
    """Create two topics on brokers 0 and 1."""
    await make(admin, "audit", [(0, 1)])
    await make(admin, "orders", [(0, 1), (1, 0)])
    await fill(running.bootstrap, "audit", 1, 500_000)
    await fill(running.bootstrap, "orders", 2, 1_000_000)
    return WatchedRun(admin, folder)


async def nothing_is_left(stage: WatchedRun) -> None:
    assert await stage.admin.list_partition_reassignments() == {}
    assert await throttles(stage.admin) == {}


@asynccontextmanager
async def on_stage(running: Running, folder: Path) -> AsyncIterator[WatchedRun]:
    async with connected(ConnectionSettings(bootstrap=running.bootstrap)) as admin:
        stage = await prepared(running, admin, folder)
        yield stage
        await nothing_is_left(stage)


async def begun(stage: WatchedRun, moves: int) -> None:
    """Wait until the run itself sees these moves under way."""
    await stage.until(lambda: len(stage.told("begun")) >= moves, f"{moves} moves have begun")
    seen = len(stage.statuses)
    await stage.until(lambda: len(stage.statuses) > seen + 1, "the run has looked twice since")


async def at_rest(admin: KafkaAdmin) -> None:
    """Wait until moves of other tools are over, too."""
    async with asyncio.timeout(2 * WAIT_S):
        while await admin.list_partition_reassignments():
            await asyncio.sleep(0.05)


AWAY = {AUDIT: (0, 2), ORDERS[0]: (0, 2), ORDERS[1]: (1, 2)}


def test_run_handles_topics_that_are_deleted_recreated_or_expanded(tmp_path: Path) -> None:
    """A waiting topic may get more partitions. No run, resume or undo moves a recreated topic."""

    async def main(running: Running) -> None:
        async with on_stage(running, tmp_path) as stage:
            admin = stage.admin
            await make(admin, "payments", [(1, 0)])
            aims = {**AWAY, TopicPartition("payments", 0): (1, 2)}
            run = stage.start(await plan_to(admin, aims, Limits(moves_in=1)), SLOWER)
            await begun(stage, 1)
            await admin.create_partitions("payments", 3)
            assert await admin.delete_topics(["orders"]) == {"orders": None}
            anew = NewTopic(name="orders", by_hand={0: (0, 1), 1: (1, 0)})
            while (await admin.create_topics([anew]))["orders"] is not None:
                await asyncio.sleep(0.05)
            await stage.until(lambda: len(stage.told("dropped")) == 2, "both partitions are dropped")
            stage.request(ControlRequest(throttle="50MB/s"))
            outcome = await run
            assert outcome.ending is Ending.IN_PART
            assert set(outcome.dropped) == set(ORDERS)
            assert "`restow resume` would leave these out again" in outcome.next
            assert await replicas_of(admin, "audit") == [(0, 2)]
            assert (await replicas_of(admin, "payments"))[0] == (1, 2)

            outcome = await resume(stage.world, FAST, stage.watcher)
            assert outcome.ending is Ending.IN_PART
            assert all("deleted and made anew" in why for why in outcome.dropped.values())
            outcome = await undo(stage.world, FAST, stage.watcher, as_far_as_possible=True)
            assert outcome.is_good, outcome
            assert await replicas_of(admin, "audit") == [(0, 1)]
            assert (await replicas_of(admin, "payments"))[0] == (1, 0)
            assert await replicas_of(admin, "orders") == [(0, 1), (1, 0)]

    with embedded(3) as running:
        asyncio.run(main(running))


def test_run_handles_another_tools_cancellation_and_redirection(tmp_path: Path) -> None:
    async def main(running: Running) -> None:
        async with on_stage(running, tmp_path) as stage:
            admin = stage.admin
            run = stage.start(await plan_to(admin, AWAY), SLOWER)
            await begun(stage, 3)
            done = await admin.alter_partition_reassignments({ORDERS[0]: None, ORDERS[1]: (1, 3)})
            assert set(done.values()) == {None}
            await stage.until(lambda: len(stage.told("dropped")) == 2, "both have been noticed")
            stage.request(ControlRequest(throttle="50MB/s"))
            outcome = await run
            assert outcome.ending is Ending.IN_PART
            assert "somebody else has cancelled it" in outcome.dropped[ORDERS[0]]
            assert "[1, 3]" in outcome.dropped[ORDERS[1]]
            assert "`restow undo` would be refused now: orders-1" in outcome.next
            outcome = await undo(stage.world, FAST, stage.watcher, as_far_as_possible=True)
            assert outcome.is_good, outcome
            await at_rest(admin)
            assert await replicas_of(admin, "orders") == [(0, 1), (1, 3)], "theirs stays as they wanted it"
            assert await replicas_of(admin, "audit") == [(0, 1)]

    with embedded(4) as running:
        asyncio.run(main(running))


def test_run_names_a_full_log_dir_and_is_resumed(tmp_path: Path) -> None:
    """One of two log dirs fails, and the broker continues. The run is cancelled; with room again, resumed."""
    disk = FaultyDisk()

    async def main(running: Running) -> None:
        async with on_stage(running, tmp_path / "state") as stage:
            run = stage.start(await plan_to(stage.admin, AWAY), SLOW)
            await begun(stage, 3)
            full = str(tmp_path / "data" / "broker-2" / "log-0")
            await stage.until(
                lambda: any(
                    each.broker == 2 and each.copied_bytes
                    for seen in stage.statuses
                    for each in seen.report.copying
                ),
                "something has been copied",
            )
            disk.fault = full_under(full)
            await stage.until(lambda: "full dir" in stage.still(), "the directory is named")
            assert f"{full} has failed" in stage.still()["full dir"].evidence
            stage.request(ControlRequest(stop="cancel"))
            outcome = await run
            assert outcome.ending is Ending.CANCELLED
            assert "`restow resume` goes on from here" in outcome.next
            assert await throttles(stage.admin) == {}

            disk.fault = lambda name, path: None
            await asyncio.to_thread(running.stop, 2)
            await asyncio.to_thread(running.start, 2)
            outcome = await resume(stage.world, FAST, stage.watcher)
            assert outcome.is_good, outcome
            assert await replicas_of(stage.admin, "orders") == [(0, 2), (1, 2)]

    with (
        patch("restow.cluster.faults.faults.FaultDisk", lambda: disk),
        embedded(3, log_dirs=2, data=tmp_path / "data") as running,
    ):
        asyncio.run(main(running))


@pytest.mark.full
def test_run_ends_when_all_brokers_are_gone_and_is_repaired_later(tmp_path: Path) -> None:
    """When the brokers are back, the leftovers are found and fixed."""

    async def left(running: Running) -> None:
        async with connected(ConnectionSettings(bootstrap=running.bootstrap, timeout_s=5)) as admin:
            stage = await prepared(running, admin, tmp_path)
            hasty = RunOptions(throttle=SLOW.throttle, survey_every_s=0.3, patience_s=1)
            run = stage.start(await plan_to(admin, AWAY), hasty)
            await begun(stage, 3)
            for broker in running.cluster.brokers:
                await asyncio.to_thread(running.kill, broker)
            outcome = await run
            assert outcome.ending is Ending.LOST
            assert "when the cluster can be reached again: `restow resume`" in outcome.next

    async def found(running: Running) -> None:
        async with connected(ConnectionSettings(bootstrap=running.bootstrap)) as admin:
            stage = WatchedRun(admin, tmp_path)
            assert await throttles(admin), "what still moves stays throttled"
            (finding, *_) = await diagnose(stage.world)
            assert "it stopped: out of reach" in finding.evidence
            await fix(stage.world, stage.watcher)
            assert await replicas_of(admin, "orders") == [(0, 1), (1, 0)]
            await nothing_is_left(stage)

    with embedded(3) as running:
        asyncio.run(left(running))
        for broker in running.cluster.brokers:
            running.start(broker)
        asyncio.run(found(running))


def test_second_run_is_refused_with_the_active_one_and_disturbs_nothing(tmp_path: Path) -> None:
    async def main(running: Running) -> None:
        async with on_stage(running, tmp_path) as stage:
            plan = await plan_to(stage.admin, AWAY, Limits(moves_in=1))
            run = stage.start(plan, RunOptions(throttle=SLOWER.throttle, survey_every_s=0.3, guards=Guards()))
            await begun(stage, 1)
            second = WatchedRun(stage.admin, tmp_path)
            for attempt in (
                execute(second.world, plan, FAST, second.watcher),
                resume(second.world, FAST, second.watcher),
                undo(second.world, FAST, second.watcher),
            ):
                with pytest.raises(ClusterLocked, match=r"is at it: run .* Look at it with `restow watch`"):
                    await attempt
            assert second.events == []
            assert not [each for each in await diagnose(second.world) if each.run]
            stage.request(ControlRequest(throttle="50MB/s"))
            assert (await run).is_good

    with embedded(3) as running:
        asyncio.run(main(running))
