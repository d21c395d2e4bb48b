"""Begin, resume, cancel or undo a run: each under the cluster's lock, each with a journal.

The checks before the first change are here too; `restow.execute.run.examine` only reports them.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import asdict, field
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.client import ClientError, versions_of
from restow.errors import InvalidInput, RestowError
from restow.execute.journal.journal import Journal
from restow.execute.journal.ledger import RunJournal, has_heard_of
from restow.execute.journal.runs import Run, Runs, runs_of, state_folder
from restow.execute.progress.status import RunEvent, RunListener, status_writer
from restow.execute.repair.undo import CannotUndo, inverse
from restow.execute.run.control import CANCEL, Control, ControlRequest
from restow.execute.run.executor import Executor
from restow.execute.run.foresight import advice, forbidding, foresee
from restow.execute.run.lock import Holder, Mark, ProcessIdentity, claimed, holder_of
from restow.execute.run.options import RunOptions
from restow.execute.run.steps import rest_of
from restow.plan.drift import REBASE, differences
from restow.plan.files.approval import check_digest
from restow.plan.files.text import document_of
from restow.plan.judge.waves import check_sound
from restow.plan.pin import topic_ids
from restow.runtime.chance import SystemChance
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk
from restow.sizes import count, some
from restow.snapshot import capture
from restow.verify import blocking, preflight

if TYPE_CHECKING:
    from collections.abc import Collection
    from os import PathLike

    from restow.client import Admin, KafkaAdmin
    from restow.execute.journal.ledger import RunLedger
    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.run.foresight import Foreseen
    from restow.execute.run.lock import GroupLocks
    from restow.model import Plan, Snapshot, Verdict
    from restow.runtime.chance import Chance
    from restow.runtime.clock import Clock
    from restow.runtime.disk import Disk


_GRACE_S, _ASK_AGAIN_S = 5.0, 0.2


class NotNow(RestowError):
    """The cluster's state does not allow this now. Nothing was changed."""


@frozen
class RunContext:
    """What a run needs to work. `root` is the folder that holds the journals."""

    admin: Admin
    clock: Clock
    disk: Disk
    root: str
    group_locks: GroupLocks | None = None
    """Makes the mark on the cluster; None to rely on this machine's lock alone."""
    chance: Chance = field(default_factory=SystemChance)
    process: ProcessIdentity = field(default_factory=ProcessIdentity.own)

    async def runs(self) -> Runs:
        """Return the runs of the cluster that `admin` is connected to."""
        return runs_of(self.disk, self.root, (await self.admin.describe_cluster()).cluster_id)


def run_context(admin: KafkaAdmin, journal: str | PathLike[str] | None = None) -> RunContext:
    """Return the context of a run on this machine; `journal` is the folder of the journals, if not the
    usual."""
    return RunContext(
        admin=admin,
        clock=SystemClock(),
        disk=SystemDisk(private=True),
        root=str(journal or state_folder(os.environ)),
        group_locks=admin.group_lock,
    )


async def execute(world: RunContext, plan: Plan, options: RunOptions, watcher: RunListener) -> RunOutcome:
    """Execute a plan, if the cluster is still what the plan was made for."""
    runs = await world.runs()
    name = runs.new(world.clock)
    async with claimed(world, runs, name, plan) as mark:
        snapshot = await capture(world.admin, world.clock)
        check_begin(plan, snapshot, runs)
        await _check_ready(world, plan, snapshot)
        foreseen = foresee(world, plan, snapshot, options)
        if problems := forbidding(foreseen, options):
            why = f"{'; '.join(problems)} ({advice(foreseen.objections)})"
            raise NotNow(f"the rehearsal speaks against this run, so nothing was begun: {why}")
        await mark.confirm(world, watcher)
        with begun(world, runs, name, plan, snapshot=snapshot, foreseen=foreseen) as book:
            return await _run(world, book, snapshot, options, watcher, mark, foreseen)


async def resume(
    world: RunContext,
    options: RunOptions,
    watcher: RunListener,
    name: str | None = None,
    digest: str | None = None,
) -> RunOutcome:
    """Resume a run that was killed, cancelled or left; by default the latest that needs it.

    With a digest, refuse a run of any other plan.
    """
    runs = await world.runs()
    run = runs.get(name) if name else run_to_resume(runs)
    if digest is not None:
        check_digest(run.ledger.plan, digest, f"the plan of run {run.name}")
    async with claimed(world, runs, run.name, run.ledger.plan) as mark:
        snapshot = await _after(world, run)
        with _opened(world, run.folder) as book:
            _check_cluster(book.ledger.plan, snapshot, run.folder)
            await _check_rest(world, rest_of(book.ledger.plan, snapshot), snapshot, watcher)
            await mark.confirm(world, watcher)
            foreseen = foresee(world, book.ledger.plan, snapshot, options, resumed=True)
            told = foreseen.document
            book.write("resumed", who=_who(world, run.name), turn=runs.next_turn(), prediction=told)
            return await _run(world, book, snapshot, options, watcher, mark, foreseen)


async def cancel(world: RunContext, watcher: RunListener, name: str | None = None) -> RunOutcome | None:
    """Cancel the moves that a run has under way. An active run is told to do so itself; then return None."""
    runs = await world.runs()
    run = runs.get(name) if name else runs.latest(unsettled=True)
    holder = holder_of(world.disk, runs.folder)
    if holder is not None and holder.run == run.name:
        Control(world.disk, run.folder).request(ControlRequest(stop=CANCEL))
        return None
    async with claimed(world, runs, run.name) as mark:
        await mark.confirm(world, watcher)
        return await take_back_run(world, run, watcher)


async def undo(
    world: RunContext,
    options: RunOptions,
    watcher: RunListener,
    name: str | None = None,
    *,
    as_far_as_possible: bool = False,
) -> RunOutcome:
    """Undo a run, newest change first: cancel what is under way, then move back what has arrived."""
    runs = await world.runs()
    run = runs.get(name) if name else runs.last_to_move()
    own = runs.new(world.clock)
    async with claimed(world, runs, own) as mark:
        if not run.ledger.is_settled:
            await mark.confirm(world, watcher)
            taken = await take_back_run(world, run, watcher)
            alive = {node.id for node in (await world.admin.describe_cluster()).nodes}
            if runs.get(run.name).ledger.is_open(alive):
                raise NotNow(f"run {run.name} could not be taken back ({taken.reason}): {taken.next}")
        run = runs.get(run.name)
        plan, snapshot = await way_back(world, run, as_far_as_possible=as_far_as_possible)
        await mark.confirm(world, watcher)
        foreseen = foresee(world, plan, snapshot, options)
        with begun(world, runs, own, plan, snapshot=snapshot, undo_of=run.name, foreseen=foreseen) as book:
            return await _run(world, book, snapshot, options, watcher, mark, foreseen)


async def way_back(world: RunContext, run: Run, *, as_far_as_possible: bool = False) -> tuple[Plan, Snapshot]:
    """Return the plan that undoes a run, and its snapshot; refuse what `undo` refuses."""
    snapshot = await _after(world, run)
    plan = inverse(run, snapshot, as_far_as_possible=as_far_as_possible)
    if plan.moves:
        await _check_ready(world, plan, snapshot)
    return plan, snapshot


def check_complete(plan: Plan, name: str, flag: str) -> None:
    """Refuse a plan that leaves partitions behind."""
    if plan.leaves:
        left = some(each.partition for each in plan.leaves)
        raise InvalidInput(
            f"{name} is an incomplete plan: it leaves {count(len(plan.leaves), 'partition')} behind ({left}; "
            f"`restow show` says why). Plan again, or carry out the rest with {flag}"
        )


def check_begin(plan: Plan, snapshot: Snapshot, runs: Runs) -> None:
    """Refuse a broken plan, another cluster's, a cluster that has drifted, and an earlier run not settled."""
    check_sound(plan)
    _check_cluster(plan, snapshot, "the plan")
    check_earlier_runs(runs, snapshot)
    if drifted := differences(plan, snapshot):
        raise NotNow(f"the cluster is not what the plan was made for: {some(drifted)}. To go on, {REBASE}")


def check_earlier_runs(runs: Runs, snapshot: Snapshot) -> None:
    """Refuse to begin while an earlier run's journal is damaged or shows leftovers on brokers that are up."""
    sound, wrong = runs.sound(snapshot.cluster_id)
    for name, why in wrong.items():
        raise NotNow(f"the journal {runs.path(name)} is in the way: {why}. See `restow doctor`")
    open_runs = [run.name for run in sound if run.ledger.is_open(snapshot.broker)]
    if open_runs:
        raise NotNow(
            f"run {open_runs[-1]} has not been brought to its end: `restow resume`, `restow undo`, or "
            "`restow doctor --fix` first"
        )


async def _check_ready(world: RunContext, plan: Plan, snapshot: Snapshot) -> None:
    """Refuse a plan that would get stuck: a permission, a broker, a version or disk space is missing."""
    if problems := why_not(await readiness(world.admin, plan, snapshot)):
        raise NotNow(f"this plan would get stuck, so nothing was begun: {problems}")


async def _check_rest(world: RunContext, rest: Plan, snapshot: Snapshot, watcher: RunListener) -> None:
    """Refuse to resume if nothing could continue; report problems of single moves."""
    if not rest.moves:
        return
    verdict = await readiness(world.admin, rest, snapshot)
    if problems := why_not(verdict, FOR_ALL):
        raise NotNow(f"this cannot go on, and nothing was changed: {problems}")
    if problems := why_not(verdict, FOR_SOME):
        watcher.event(RunEvent(at_ms=world.clock.now_ms(), kind="warned", facts={"why": problems}))


def _check_cluster(plan: Plan, snapshot: Snapshot, what: str) -> None:
    if plan.cluster_id != snapshot.cluster_id:
        raise NotNow(
            f"{what} is for the cluster {plan.cluster_id!r}, and this one is {snapshot.cluster_id!r}: check "
            "the bootstrap servers"
        )


async def _after(world: RunContext, run: Run) -> Snapshot:
    """Return a snapshot after a run. Outdated metadata would make the run look undone already.

    A snapshot may have waited long for a new controller, and its metadata is from before that. So brokers get
    their time to hear of the run after the first one, and the last one begins after that time.
    """
    until_s: float | None = None
    while True:
        began_s = world.clock.monotonic_s()
        snapshot = await capture(world.admin, world.clock)
        if has_heard_of(run.ledger, snapshot) or (until_s is not None and began_s >= until_s):
            return snapshot
        until_s = until_s or world.clock.monotonic_s() + _GRACE_S
        await world.clock.sleep(_ASK_AGAIN_S)


def run_to_resume(runs: Runs) -> Run:
    """Return the run that is still open, else the last one unless it is done.

    To resume an earlier one would move back what later runs have moved, so it has to be named.
    """
    unfinished = [run for run in runs.all() if run.ledger.outcome != "done"]
    under_way = [run for run in unfinished if run.ledger.outcome is None or run.ledger.in_progress]
    if under_way:
        return under_way[-1]
    last = runs.last_to_move()
    if not last.ledger.is_settled or last.ledger.outcome != "done":
        return last
    why = f"run {last.name} was the last one, and it is done"
    if unfinished:
        named = some(run.name for run in unfinished)
        why += f". Earlier ones are not ({named}): name the run to resume it with its plan of that time"
    raise InvalidInput(why)


async def take_back_run(world: RunContext, run: Run, watcher: RunListener) -> RunOutcome:
    """Roll back a run: start its executor with a request to cancel."""
    snapshot = await _after(world, run)
    with _opened(world, run.folder) as book:
        _check_cluster(book.ledger.plan, snapshot, run.folder)
        control = Control(world.disk, run.folder)
        control.clear()
        executor = Executor(
            world.admin, world.clock, book, snapshot, RunOptions(), control, watcher, Mark(None)
        )
        executor.pace.ask(ControlRequest(stop=CANCEL))
        return await executor.run()


async def _run(
    world: RunContext,
    book: RunJournal,
    snapshot: Snapshot,
    options: RunOptions,
    watcher: RunListener,
    mark: Mark,
    foreseen: Foreseen,
) -> RunOutcome:
    control = Control(world.disk, book.folder)
    control.clear()
    watcher = status_writer(world.disk, book.folder, watcher)
    name = book.folder.rpartition("/")[2]

    async def why_no_undo(ledger: RunLedger) -> str | None:
        try:
            plan, _ = await way_back(world, Run(name, book.folder, ledger))
        except (CannotUndo, NotNow) as error:
            return str(error)
        except ClientError:
            return None
        return None if plan.moves or ledger.in_progress else "this run has changed nothing"

    executor = Executor(
        world.admin, world.clock, book, snapshot, options, control, watcher, mark, why_no_undo, foreseen
    )
    predicted = foreseen.prediction
    told = None if predicted is None else {**predicted.document(), "curve": None}
    executor.tell("run", folder=book.folder, moves=len(book.ledger.plan.moves), predicted=told)
    if foreseen.objections:
        executor.tell("warned", why="; ".join(each.why for each in foreseen.objections))
    return await executor.run()


def begun(
    world: RunContext,
    runs: Runs,
    name: str,
    plan: Plan,
    *,
    snapshot: Snapshot,
    undo_of: str | None = None,
    foreseen: Foreseen | None = None,
) -> closing[RunJournal]:
    """Write the first entry of a journal: the plan, its prediction, who begins it, the ids of its topics."""
    folder = runs.path(name)
    world.disk.make_directory(folder)
    journal = Journal(world.disk, world.clock, folder)
    who = _who(world, name)
    ids = {**topic_ids(snapshot, plan.moves), **plan.topic_ids}
    turn = runs.next_turn()
    journal.write(
        "began",
        plan=document_of(plan),
        who=who,
        turn=turn,
        undo_of=undo_of,
        topic_ids=ids,
        prediction=None if foreseen is None else foreseen.document,
    )
    return closing(RunJournal(journal))


def _who(world: RunContext, run: str) -> dict[str, object]:
    return asdict(Holder(**asdict(world.process), run=run))


def _opened(world: RunContext, folder: str) -> closing[RunJournal]:
    return closing(RunJournal(Journal(world.disk, world.clock, folder)))


FOR_ALL = ("cluster", "api versions", "permissions")
"""Checks without which nothing could begin."""
FOR_SOME = ("brokers alive", "leaders alive", "log dirs", "free space")
"""Checks of single partitions, which the executor holds back while the others continue."""


async def readiness(admin: Admin, plan: Plan, snapshot: Snapshot) -> Verdict:
    """Check the plan against the brokers' versions and permissions; leave out brokers without an answer."""
    versions = await versions_of(admin, (broker.id for broker in snapshot.brokers))
    topics = sorted({move.partition.topic for move in plan.moves})
    return preflight(snapshot, plan, versions, await admin.permissions(topics))


def why_not(verdict: Verdict, of: Collection[str] | None = None) -> str | None:
    """Say which failed checks prevent the run, of all or of the named ones; None if none does."""
    stops = [f"{check.name}: {check.evidence} ({check.advice})" for check in blocking(verdict, of)]
    return "; ".join(stops) or None
