"""A process dies at an entry of a run's journal: entry × victim × outcome.

executor      killed when the entry is on the disk but its announcement is not carried out
… later       killed when that is carried out too, but the next entry is not written
target        the broker that gets the replicas, dead from the entry on. When the run has said what it waits
              for, the broker comes back; or the run is cancelled, and rolled back when the broker is back
source        the broker that loses its replicas, and leads one of them; likewise
controller    the broker that is the controller; likewise, and most runs end before it comes back

Afterwards, by resume, undo or the doctor if the run did not complete by itself: throttles are as before,
nothing moves, no record is lost, and the partitions are at one end of the plan.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from restow.client import ConnectionSettings, connected
from restow.execute.journal.journal import Journal
from restow.execute.progress.status import RunListener
from restow.execute.run.control import Control, ControlRequest
from restow.execute.run.options import RunOptions
from restow.execute.run.start import RunContext, execute
from restow.execute.throttle.throttles import ThrottleRates
from restow.plan.files.text import dumps
from tests.clients.embedded import WAIT_S, Running, embedded
from tests.clients.kill_stage import REMEDIES, KillStage, bring_order, killed_at, lead_home

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator
    from pathlib import Path

    from restow.execute.journal.journal import JournalEntry
    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.progress.status import RunEvent, RunStatus

Table = dict[tuple[int, str], str]

KIND = "kind"
COMES_BACK = "comes back"
OFTEN = {
    "target": ((1, COMES_BACK), (3, "undo"), (5, "doctor")),
    "source": ((3, COMES_BACK),),
    "controller": ((3, COMES_BACK), (6, COMES_BACK)),
}
"""The entries that every test run covers, with their remedies; the rest is for long test runs."""
MOST_ENTRIES = 40
OPTIONS = RunOptions(throttle=ThrottleRates(rate=1_000_000), look_every_s=0.05, survey_every_s=0.5)


@pytest.fixture(autouse=True)
def collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Collect garbage: kafka-python leaves sockets of dead brokers to it, and its log keeps them open."""
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")
    yield
    gc.collect()


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    """Collect results, and print them at the end."""
    outcomes: Table = {}
    yield outcomes
    terminal = request.config.pluginmanager.getplugin("terminalreporter")
    captured = request.config.pluginmanager.getplugin("capturemanager")
    if terminal is None or captured is None or not outcomes:
        return
    with captured.global_and_fixture_disabled():
        terminal.write_line("")
        columns = sorted({column for _, column in outcomes} - {KIND})
        terminal.write_line(f"{'entry':<14}" + "".join(f"{column:>22}" for column in columns))
        for entry in range(max(number for number, _ in outcomes) + 1):
            cells = "".join(f"{outcomes.get((entry, column), '·'):>22}" for column in columns)
            terminal.write_line(f"{entry:>2} {outcomes.get((entry, KIND), ''):<11}{cells}")


@asynccontextmanager
async def on_stage(running: Running, folder: Path) -> AsyncIterator[tuple[KillStage, dict[str, int]]]:
    """Prepare a stage on which neither the controller nor the target has a replica; yield the roles."""
    brokers = running.cluster.brokers
    (controller,) = [number for number, each in brokers.items() if each.services.controller.is_active]
    first, second, target = (number for number in brokers if number != controller)
    async with connected(ConnectionSettings(bootstrap=running.bootstrap)) as admin:
        stage = KillStage(
            admin=admin,
            bootstrap=running.bootstrap,
            folder=folder,
            here={0: (first, second), 1: (second, first)},
            there={0: (target, second), 1: (second, target)},
        )
        await stage.prepare()
        yield stage, {"controller": controller, "source": first, "target": target}


async def executor_dies(folder: Path, running: Running, when: str, remedies: tuple[str, ...]) -> list[str]:
    """Kill the executor at every entry; return the remedies and their outcomes."""
    outcomes = []
    async with on_stage(running, folder) as (stage, _):
        for entry in count():
            assert entry < MOST_ENTRIES
            world = stage.world()
            plan = folder / "plan.json"
            plan.write_text(dumps(await stage.plan()))
            killed = await killed_at(running.bootstrap, world, plan, entry, when)
            remedy = remedies[entry % len(remedies)]
            outcomes.append(f"{remedy}: {await bring_order(world, remedy)}")
            if remedy == "doctor":
                assert await stage.throttles_now() == stage.throttles
                await lead_home(world, stage)
            await stage.in_order(f"entry {entry}, {outcomes[-1]}")
            if not killed:
                break
        await stage.nothing_is_lost()
    return outcomes


@pytest.mark.parametrize("when", ["after", "before"])
def test_executor_dies_at_every_entry(tmp_path: Path, when: str, table: Table) -> None:
    with embedded(4) as running:
        outcomes = asyncio.run(executor_dies(tmp_path, running, when, REMEDIES))
    for entry, outcome in enumerate(outcomes):
        table[entry, "executor" if when == "after" else "executor, later"] = outcome
    assert len(outcomes) > 8
    assert {"resume: done", "undo: done", "doctor: fixed"} <= set(outcomes)


@pytest.mark.full
@pytest.mark.parametrize("when", ["after", "before"])
@pytest.mark.parametrize("remedy", REMEDIES)
def test_every_remedy_works_at_every_entry(tmp_path: Path, when: str, remedy: str) -> None:
    with embedded(4) as running:
        assert len(asyncio.run(executor_dies(tmp_path, running, when, (remedy,)))) > 8


@contextmanager
def at_entry(number: int, do: Callable[[], None]) -> Iterator[list[str]]:
    """Call `do` when the entry of that number is on the disk. Yield the kinds so far."""
    write = Journal.write
    kinds: list[str] = []

    def told(self: Journal, kind: str, **facts: Any) -> JournalEntry:
        entry = write(self, kind, **facts)
        kinds.append(kind)
        if len(kinds) == number + 1:
            do()
        return entry

    with patch.object(Journal, "write", told):
        yield kinds


class Onlooker:
    """The status of a run."""

    def __init__(self, world: RunContext) -> None:
        self._world = world
        self._folder = ""
        self.statuses: list[RunStatus] = []
        self.watcher = RunListener(event=self._event, status=self.statuses.append)

    def _event(self, event: RunEvent) -> None:
        if event.kind == "run":
            self._folder = str(event.facts["folder"])

    def request(self, request: ControlRequest) -> None:
        Control(self._world.disk, self._folder).request(request)

    async def says_what_it_waits_for(self, broker: int, run: asyncio.Task[RunOutcome]) -> bool:
        """Return whether the run names the dead broker or a missing replica; False if it ended without."""
        reasons = (f"broker {broker} is not there", "became under-replicated")
        async with asyncio.timeout(WAIT_S):
            while not run.done():
                if self.statuses and any(each in _said(self.statuses[-1]) for each in reasons):
                    return True
                await asyncio.sleep(0.05)
        return False


def _said(status: RunStatus) -> str:
    """Return all reasons for stalls."""
    still = (str(each) for each in status.report.still)
    return "; ".join([status.waits or "", status.paused or "", *still])


async def broker_dies(
    stage: KillStage, running: Running, broker: int, entry: int, remedy: str
) -> tuple[str, list[str]]:
    """Return the outcome, and the kinds of its entries."""
    world = stage.world()
    onlooker = Onlooker(world)
    plan = await stage.plan()
    with at_entry(entry, lambda: running.kill(broker)) as kinds:
        run = asyncio.create_task(execute(world, plan, OPTIONS, onlooker.watcher))
        while len(kinds) <= entry and not run.done():
            await asyncio.sleep(0.02)
        if await onlooker.says_what_it_waits_for(broker, run) and remedy != COMES_BACK:
            onlooker.request(ControlRequest(stop="cancel"))
            await asyncio.wait([run], timeout=WAIT_S)
        await stage.write(20)
        if not running.cluster.brokers[broker].is_running:
            await asyncio.to_thread(running.start, broker)
        ending = (await asyncio.wait_for(run, 2 * WAIT_S)).ending.value
    settled = (await world.runs()).latest().ledger.is_settled
    if remedy == COMES_BACK and ending == "done" and settled:
        said = "by itself: done"
    else:
        remedy = "resume" if remedy == COMES_BACK else remedy
        said = f"{remedy}: {await bring_order(world, remedy)}"
    if remedy == "doctor":
        assert await stage.throttles_now() == stage.throttles
        await lead_home(world, stage)
    await stage.in_order(f"entry {entry}, {ending}, {said}")
    return said, kinds


async def brokers_die(
    folder: Path, running: Running, victim: str, cells: Iterable[tuple[int, str]]
) -> list[tuple[int, str, str]]:
    """Yield cell by cell, until there is no such entry: its number, its kind, the outcome."""
    found = []
    for entry, remedy in cells:
        assert entry < MOST_ENTRIES
        async with on_stage(running, folder / f"{victim}-{entry}-{remedy}") as (stage, cast):
            said, kinds = await broker_dies(stage, running, cast[victim], entry, remedy)
            await stage.nothing_is_lost()
            if entry >= len(kinds):
                break
            found.append((entry, kinds[entry], said))
            assert said.rpartition(": ")[2] in ("done", "fixed", "nothing to do"), (entry, said)
            await stage.clear()
    return found


@pytest.mark.parametrize("victim", list(OFTEN))
def test_broker_dies_at_an_entry(tmp_path: Path, victim: str, table: Table) -> None:
    with embedded(4) as running:
        found = asyncio.run(brokers_die(tmp_path, running, victim, OFTEN[victim]))
    assert len(found) == len(OFTEN[victim])
    for entry, kind, said in found:
        table[entry, KIND], table[entry, victim] = kind, said


@pytest.mark.full
@pytest.mark.parametrize(
    ("victim", "remedy"),
    [
        ("controller", COMES_BACK),
        *((victim, remedy) for victim in ("target", "source") for remedy in (COMES_BACK, *REMEDIES)),
    ],
)
def test_broker_dies_at_every_entry(tmp_path: Path, victim: str, remedy: str, table: Table) -> None:
    with embedded(4) as running:
        cells = ((entry, remedy) for entry in count())
        found = asyncio.run(brokers_die(tmp_path, running, victim, cells))
    assert len(found) > 8
    for entry, kind, said in found:
        table[entry, KIND], table[entry, f"{victim} {remedy}"] = kind, said
