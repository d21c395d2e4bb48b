"""Runs on the cluster that an admin is connected to: begin, resume, undo, cancel and watch them."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, TypeAlias

from restow.execute.progress.outcome import RunOutcome
from restow.execute.progress.status import RunEvent, RunListener, RunStatus
from restow.execute.progress.watch import watch
from restow.execute.run import start
from restow.execute.run.examine import examine
from restow.execute.run.options import RunFlags, expecting, run_options

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import Unpack

    from restow.client import KafkaAdmin
    from restow.model import Plan, Verdict
    from restow.model.load import LoadModel

Folder: TypeAlias = "str | PathLike[str] | None"
"""The folder of the journals; None for the user's state folder."""
OnEvent: TypeAlias = "Callable[[RunEvent], object] | None"
OnStatus: TypeAlias = "Callable[[RunStatus], object] | None"


async def execute(
    admin: KafkaAdmin,
    plan: Plan,
    *,
    throttle: str,
    partial: bool = False,
    load: LoadModel | None = None,
    deadline: str | None = None,
    anyway: bool = False,
    journal: Folder = None,
    on_event: OnEvent = None,
    on_status: OnStatus = None,
    **flags: Unpack[RunFlags],
) -> RunOutcome:
    """Execute a plan, move by move, within its limits, with a journal from which all can be undone.

    `throttle` is a rate per broker like "50MB/s", "auto" or "none", perhaps with others by the hour:
    "20MB/s,22-06=200MB/s". An incomplete plan is refused unless `partial`. The run is rehearsed first, with
    what clients do by `load`, and refused if it would fill a log dir, never end or miss its `deadline`
    ("06:00", "4h"); all but the first can be allowed with `anyway`. `on_event` gets every event, `on_status`
    the progress a few times per second. The other arguments are those of `RunFlags`.

        async with connected(settings) as admin:
            outcome = await restow.execute(admin, plan, throttle="50MB/s")
    """
    if not partial:
        start.check_complete(plan, "this", "partial=True")
    wanted = run_options(throttle=throttle, **flags)
    options = expecting(wanted, load=load, deadline=deadline, anyway=anyway)
    return await start.execute(start.run_context(admin, journal), plan, options, _heard(on_event, on_status))


async def check(
    admin: KafkaAdmin,
    plan: Plan,
    *,
    throttle: str = "none",
    load: LoadModel | None = None,
    deadline: str | None = None,
    anyway: bool = False,
    journal: Folder = None,
    **flags: Unpack[RunFlags],
) -> Verdict:
    """Check everything that has to hold before such a run begins, without changing anything."""
    wanted = run_options(throttle=throttle, **flags)
    options = expecting(wanted, load=load, deadline=deadline, anyway=anyway)
    return await examine(start.run_context(admin, journal), plan, options)


async def resume(
    admin: KafkaAdmin,
    run: RunOutcome | str | None = None,
    *,
    throttle: str = "auto",
    digest: str | None = None,
    journal: Folder = None,
    on_event: OnEvent = None,
    on_status: OnStatus = None,
    **flags: Unpack[RunFlags],
) -> RunOutcome:
    """Resume a run that was killed, cancelled or left; by default the latest that needs it."""
    options = run_options(throttle=throttle, **flags)
    context = start.run_context(admin, journal)
    return await start.resume(context, options, _heard(on_event, on_status), _name(run), digest)


async def undo(
    admin: KafkaAdmin,
    run: RunOutcome | str | None = None,
    *,
    throttle: str = "auto",
    as_far_as_possible: bool = False,
    journal: Folder = None,
    on_event: OnEvent = None,
    on_status: OnStatus = None,
) -> RunOutcome:
    """Undo what a run has changed; by default the latest run that moved something.

    It is refused if a partition cannot be moved back, unless `as_far_as_possible`.
    """
    return await start.undo(
        start.run_context(admin, journal),
        run_options(throttle=throttle),
        _heard(on_event, on_status),
        _name(run),
        as_far_as_possible=as_far_as_possible,
    )


async def cancel(
    admin: KafkaAdmin,
    run: RunOutcome | str | None = None,
    *,
    journal: Folder = None,
    on_event: OnEvent = None,
    on_status: OnStatus = None,
) -> RunOutcome | None:
    """Cancel the moves that a run has under way, and restore its throttles. Completed moves stay.

    A run of another process is told to do so itself; then return None.
    """
    return await start.cancel(start.run_context(admin, journal), _heard(on_event, on_status), _name(run))


async def status(admin: KafkaAdmin, *, journal: Folder = None) -> RunStatus:
    """Return the moves under way, whichever tool began them. A run on this machine reports all it knows."""
    async with aclosing(watch(start.run_context(admin, journal), 0)) as seen:
        return await anext(seen)


def _name(run: RunOutcome | str | None) -> str | None:
    return run.run if isinstance(run, RunOutcome) else run


def _heard(on_event: OnEvent, on_status: OnStatus) -> RunListener:
    def nothing(_: object) -> None:
        return None

    return RunListener(event=on_event or nothing, status=on_status or nothing)
