"""Set right what the doctor found and what is ours to set right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.execute.progress.standing import RunEvent
from restow.execute.repair.doctor import Finding, Ill, examine, journals
from restow.execute.run.elections import Elections
from restow.execute.run.lock import holder_of
from restow.execute.run.mark import claimed
from restow.execute.run.options import RunOptions
from restow.execute.run.start import RunContext, begun, take_back_run
from restow.model import Plan
from restow.snapshot import capture

if TYPE_CHECKING:
    from restow.execute.journal.runs import Runs
    from restow.execute.run.executor import RunListener


async def diagnose(world: RunContext) -> tuple[Finding, ...]:
    """Look, and touch nothing."""
    runs = await world.runs()
    holder = holder_of(world.disk, runs.folder)
    return await _look(world, runs, None if holder is None else holder.run)


async def fix(world: RunContext, watcher: RunListener) -> tuple[Finding, ...]:
    """Set right what can be, and say what is still out of order afterwards."""
    runs = await world.runs()
    name = runs.new(world.clock)
    async with claimed(world, runs, name) as mark:
        await mark.confirm(world, watcher)
        found = await _look(world, runs)
        for run in dict.fromkeys(each.run for each in found if each.run is not None):
            await take_back_run(world, runs.get(run), watcher)
        await _elect(world, name, watcher)
        return await _look(world, runs)


async def _look(world: RunContext, runs: Runs, active: str | None = None) -> tuple[Finding, ...]:
    """A journal that cannot be relied on is itself a finding; the others still say what is ours."""
    snapshot = await capture(world.admin, world.clock)
    sound, wrong = runs.sound(snapshot.cluster_id)
    return (*journals(wrong, runs), *examine(snapshot, sound, active))


async def _elect(world: RunContext, name: str, watcher: RunListener) -> None:
    runs = await world.runs()
    snapshot = await capture(world.admin, world.clock)
    out_of_place = {each.partition for each in examine(snapshot, ()) if each.ill is Ill.LEADER}
    wanted = {which: each.replicas for which, each in snapshot.all_partitions() if which in out_of_place}
    if not wanted:
        return
    cluster_id = (await world.admin.describe_cluster()).cluster_id
    plan = Plan(cluster_id=cluster_id, created_ms=world.clock.now_ms(), moves=(), title="doctor")

    def tell(kind: str, **facts: object) -> None:
        watcher.event(RunEvent(at_ms=world.clock.now_ms(), kind=kind, facts=facts))

    with begun(world, runs, name, plan, snapshot=snapshot) as book:
        options = RunOptions()
        elections = Elections(world.admin, world.clock, book, wanted, options.elections_at_once, tell)
        elections.line_up(wanted)
        while not elections.over:
            await elections.hold()
            await world.clock.sleep(options.look_every_s)
        book.write("ended", outcome="done", reason="")
