"""Runs on a cluster that an admin is connected to: begin one, go on with it, take it back, look at it."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, TypeAlias

from restow.execute.progress.outcome import RunOutcome
from restow.execute.progress.standing import RunEvent, RunListener, RunStatus
from restow.execute.progress.watch import watch
from restow.execute.run import start
from restow.execute.run.options import RunFlags, run_options

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import Unpack

    from restow.client import KafkaAdmin
    from restow.model import Plan, Verdict

Folder: TypeAlias = "str | PathLike[str] | None"
"""Where journals are kept; None for the user's state folder."""
OnEvent: TypeAlias = "Callable[[RunEvent], object] | None"
OnStatus: TypeAlias = "Callable[[RunStatus], object] | None"


async def execute(
    admin: KafkaAdmin,
    plan: Plan,
    *,
    throttle: str,
    partial: bool = False,
    journal: Folder = None,
    on_event: OnEvent = None,
    on_status: OnStatus = None,
    **flags: Unpack[RunFlags],
) -> RunOutcome:
    """Carry out a plan, move by move, within its limits, with a journal from which all can be undone.

    `throttle` is a rate per broker like "50MB/s", "auto" or "none", perhaps others by the hour:
    "20MB/s,22-06=200MB/s". An incomplete plan is refused unless `partial`. `on_event` hears of every event,
    `on_status` a few times a second how far the run is. The other arguments are those of `RunFlags`.

        async with connected(settings) as admin:
            outcome = await restow.execute(admin, plan, throttle="50MB/s")
    """
    if not partial:
        start.check_complete(plan, "this", "partial=True")
    options = run_options(throttle=throttle, **flags)
    return await start.execute(start.run_context(admin, journal), plan, options, _heard(on_event, on_status))


async def check(admin: KafkaAdmin, plan: Plan, *, journal: Folder = None) -> Verdict:
    """Look at everything that has to hold before a run of this plan begins. Nothing is changed."""
    return await start.examine(start.run_context(admin, journal), plan)


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
    """Go on with a run that was killed, cancelled or left: the latest that needs it, if none is named."""
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
    """Bring back what a run has changed: the latest that moved something, if none is named.

    It is refused if a partition cannot be brought back, unless `as_far_as_possible`.
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
    """Take back what a run has under way, and its throttles. What has arrived stays.

    A run that another process carries out is told to do it, and None is returned.
    """
    return await start.cancel(start.run_context(admin, journal), _heard(on_event, on_status), _name(run))


async def status(admin: KafkaAdmin, *, journal: Folder = None) -> RunStatus:
    """Say what is being moved now, whoever began it. A run from this machine tells all that it knows."""
    async with aclosing(watch(start.run_context(admin, journal), 0)) as seen:
        return await anext(seen)


def _name(run: RunOutcome | str | None) -> str | None:
    return run.run if isinstance(run, RunOutcome) else run


def _heard(on_event: OnEvent, on_status: OnStatus) -> RunListener:
    def nothing(_: object) -> None:
        return None

    return RunListener(event=on_event or nothing, standing=on_status or nothing)
