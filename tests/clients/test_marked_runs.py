"""Two operators on two machines: a run is marked on the cluster, embedded or Apache Kafka."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.apache import apache_kafka
from harness.jars import KAFKA_4, KAFKA_VERSION
from restow.client import ConnectionSettings, connected
from restow.cluster.embedded import EmbeddedCluster
from restow.execute.progress.outcome import Ending
from restow.execute.repair.doctor import fix
from restow.execute.run.control import ControlRequest
from restow.execute.run.lock import GROUP, ClusterLocked, other_at_it
from restow.execute.run.options import RunOptions
from restow.execute.run.start import RunContext, execute, resume, undo
from restow.execute.throttle.throttles import ThrottleRates
from restow.model import TopicPartition
from restow.plan.files.text import dumps
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk
from tests.clients.embedded import WAIT_S
from tests.clients.watched_run import WatchedRun, fill, make, plan_to, replicas_of, throttles
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.client import GroupLock, KafkaAdmin
    from restow.model import Plan

SLOW = RunOptions(throttle=ThrottleRates(rate=2_000), survey_every_s=0.3, look_every_s=0.05)
FAST = RunOptions(throttle=ThrottleRates(rate=50_000_000), survey_every_s=0.3, look_every_s=0.05)
SHORTEST_S = 6.0
"""The shortest session timeout that brokers allow."""
ORDERS = TopicPartition("orders", 0)


@pytest.fixture(autouse=True)
def hushed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")


class Machine(WatchedRun):
    """A machine with a state folder of its own."""

    def __init__(self, admin: KafkaAdmin, folder: Path, session_s: float = 60.0) -> None:
        super().__init__(admin, folder)
        self.folder, self.session_s = folder, session_s
        self.world = RunContext(
            admin=admin, clock=SystemClock(), disk=SystemDisk(), root=str(folder), group_locks=self.group_lock
        )

    def group_lock(self, group: str, instance_id: str, said: bytes) -> GroupLock:
        return self.admin.group_lock(group, instance_id, said, self.session_s)


async def until(is_so: Callable[[], object], what: str) -> None:
    for _ in range(int(4 * WAIT_S / 0.1)):
        if is_so():
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"not within {4 * WAIT_S} s: {what}")


async def nobody_is_in_it(admin: KafkaAdmin) -> None:
    group_lock = admin.group_lock(GROUP, "somebody-else", b"")
    for _ in range(int(4 * WAIT_S)):
        if await group_lock.holder() is None:
            return
        await asyncio.sleep(1)
    raise AssertionError(f"{await group_lock.holder()} is still there")


async def the_second_is_refused(admin: KafkaAdmin, folder: Path, plan: Plan) -> None:
    """Check that every command of the second is refused with the active run, and disturbs nothing."""
    first, second = Machine(admin, folder / "first"), Machine(admin, folder / "second")
    run = first.start(plan, SLOW)
    await first.until(lambda: first.told("begun"), "the first has begun")
    name = Path(str(first.told("run")[0].facts["folder"])).name
    told = rf"somebody else carries out a run on this cluster: .*, with run {name}, process \d+ on .*, since"
    with pytest.raises(ClusterLocked, match=told):
        await execute(second.world, plan, FAST, second.watcher)
    with pytest.raises(ClusterLocked, match=told):
        await fix(second.world, second.watcher)
    assert f"with run {name}" in str(await other_at_it(second.world, await second.world.runs()))
    assert second.events == []
    first.request(ControlRequest(throttle="50MB/s"))
    assert (await run).is_good
    assert "warned" not in [each.kind for each in first.events]
    await nobody_is_in_it(admin)
    assert (await undo(first.world, FAST, first.watcher)).is_good
    assert (await execute(second.world, plan, FAST, second.watcher)).is_good
    assert (await undo(second.world, FAST, second.watcher)).is_good
    await nobody_is_in_it(admin)


async def a_killed_one_is_followed_by_its_own(
    bootstrap: str, admin: KafkaAdmin, folder: Path, plan: Plan
) -> None:
    """Check that the same folder takes over at once; others after the session timeout."""
    file = folder / "plan.json"
    file.write_text(dumps(plan))
    state = folder / "killed"
    asked = ["execute", str(file), "--yes", "--throttle", "2kB/s", "-b", bootstrap, "--journal", str(state)]
    process = subprocess.Popen(
        [sys.executable, "-m", "restow", *asked], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        await until(
            lambda: any(b'"kind": "submit"' in each.read_bytes() for each in state.rglob("journal.jsonl")),
            "the run has begun",
        )
    finally:
        process.kill()
        process.wait()
    machine = Machine(admin, state, SHORTEST_S)
    (left,) = (await machine.world.runs()).all()
    assert left.ledger.outcome is None
    outcome = await resume(machine.world, FAST, machine.watcher)
    assert outcome.is_good, outcome
    assert (await undo(machine.world, FAST, machine.watcher)).is_good
    await nobody_is_in_it(admin)


async def a_run_that_was_thrown_out_ends(admin: KafkaAdmin, folder: Path, plan: Plan) -> None:
    """Check that a run that finds another in its place begins nothing more, and ends in order."""
    first = Machine(admin, folder / "thrown out", SHORTEST_S)
    run = first.start(plan, SLOW)
    await first.until(lambda: first.told("begun"), "it has begun")
    usurper = admin.group_lock(GROUP, "usurper", json.dumps(USURPER).encode())
    async with AsyncExitStack() as stack:
        held = await usurper.holder()
        assert held is not None
        await usurper.remove(held)
        await stack.enter_async_context(usurper.kept())
        assert await usurper.taken() is None
        await first.until(
            lambda: first.statuses and "was lost to eve" in (first.statuses[-1].paused or ""), "it pauses"
        )
        assert not run.done()
        first.request(ControlRequest(throttle="50MB/s"))
        outcome = await run
    assert outcome.ending is Ending.FAILED
    assert outcome.reason.startswith("somebody else carries out a run on this cluster now: eve, with run x")
    assert await throttles(admin) == {}
    await nobody_is_in_it(admin)
    assert (await undo(first.world, FAST, first.watcher)).is_good


USURPER = {"user": "eve", "host": "elsewhere", "pid": 7, "run": "x", "since_ms": 1_800_000_000_000}


async def two_that_come_together(admin: KafkaAdmin) -> None:
    """Check that exactly one of two gets the seat, and the other learns which."""
    group_locks = [admin.group_lock(GROUP, f"machine-{number}", b"%d" % number) for number in range(2)]
    async with AsyncExitStack() as stack:
        for group_lock in group_locks:
            await stack.enter_async_context(group_lock.kept())
        found = await asyncio.gather(*(group_lock.taken() for group_lock in group_locks))
        (winner,) = (number for number, other in enumerate(found) if other is None)
        loser = found[1 - winner]
        assert loser is not None
        assert loser.instance_id == f"machine-{winner}"
        assert loser.said == b"%d" % winner
    await nobody_is_in_it(admin)


HOLDER = """
import asyncio, sys
from restow.client import ConnectionSettings, connected

async def main():
    async with connected(ConnectionSettings(bootstrap=sys.argv[1])) as admin:
        seat = admin.group_lock(sys.argv[2], "killed", b"", float(sys.argv[3]))
        async with seat.kept():
            assert await seat.taken() is None
            print("held", flush=True)
            await asyncio.sleep(3600)

asyncio.run(main())
"""


async def a_dead_one_is_forgotten(bootstrap: str, admin: KafkaAdmin) -> None:
    """Check that another machine gets the seat after the session timeout of a killed holder."""
    command = [sys.executable, "-c", HOLDER, bootstrap, GROUP, str(SHORTEST_S)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == b"held\n"
        there = await admin.group_lock(GROUP, "another", b"").holder()
        assert there is not None
        assert there.instance_id == "killed"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    await nobody_is_in_it(admin)
    group_lock = admin.group_lock(GROUP, "another", b"")
    async with group_lock.kept():
        assert await group_lock.taken() is None


async def two_machines(bootstrap: str, ids: tuple[int, ...], folder: Path) -> None:
    first, second, third = ids
    async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
        await make(admin, "orders", [(first, second), (second, first)])
        await fill(bootstrap, "orders", 2, 6_000_000)
        wanted = {ORDERS: (first, third), TopicPartition("orders", 1): (second, third)}
        plan = await plan_to(admin, wanted)
        await two_that_come_together(admin)
        await a_dead_one_is_forgotten(bootstrap, admin)
        await the_second_is_refused(admin, folder, plan)
        await a_killed_one_is_followed_by_its_own(bootstrap, admin, folder, plan)
        await a_run_that_was_thrown_out_ends(admin, folder, plan)
        assert await replicas_of(admin, "orders") == [(first, second), (second, first)]
        assert await throttles(admin) == {}


def test_one_run_at_a_time_on_the_embedded_cluster(tmp_path: Path) -> None:
    async def main() -> None:
        async with EmbeddedCluster(3, data=tmp_path / "data", fsync=False) as cluster:
            await two_machines(cluster.bootstrap, (0, 1, 2), tmp_path)

    asyncio.run(main())


@pytest.mark.apache
@pytest.mark.parametrize("version", [KAFKA_4, pytest.param(KAFKA_VERSION, marks=pytest.mark.full)])
def test_one_run_at_a_time_on_apache_kafka(tmp_path: Path, version: str) -> None:
    with (
        needs_kafka(),
        apache_kafka(tmp_path / "kafka", nodes=3, version=version, heap="256m") as cluster,
    ):
        asyncio.run(two_machines(cluster.bootstrap, (1, 2, 3), tmp_path))
