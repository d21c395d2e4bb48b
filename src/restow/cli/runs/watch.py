"""`restow watch`: show running reassignments."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing, nullcontext, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.runs.flags import JournalFolder
from restow.cli.shared.connection import Bootstrap, on_cluster
from restow.cli.shared.frame import console, show_document

if TYPE_CHECKING:
    from restow.client import KafkaAdmin
    from restow.execute.progress.status import RunStatus

ABOUT = "Show running reassignments."
HELP = """Show the running reassignments of any tool until there are none, or ctrl-C.

For a run that was started on this machine it shows the run's own picture, with the waiting moves.

\b
Examples:
  $ restow watch -b localhost:9092
  $ restow watch --keep-on --json -b localhost:9092
"""


def command(
    bootstrap: Bootstrap,
    every: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="Seconds between refreshes.")] = 2,
    keep_on: Annotated[bool, typer.Option("--keep-on", help="Continue when no reassignment runs.")] = False,
    journal: JournalFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON per refresh.")] = False,
) -> None:
    on_cluster(bootstrap, lambda admin: _watch(admin, journal, every, keep_on=keep_on, as_json=as_json))


async def _watch(
    admin: KafkaAdmin, journal: str | None, every_s: float, *, keep_on: bool, as_json: bool
) -> None:
    from rich.live import Live

    from restow.cli.runs.screen import leave_at_once
    from restow.cli.runs.view import picture
    from restow.cli.shared.signals import told_to_stop, unless_told
    from restow.execute.progress.watch import watch
    from restow.execute.run.start import run_context

    lines = as_json or not sys.stdout.isatty()
    with told_to_stop() as told:
        async with aclosing(watch(run_context(admin, journal), every_s)) as statuses:
            # A second signal cancels this task while the last look is still abandoned.
            with (
                suppress(asyncio.CancelledError),
                nullcontext() if lines else Live(console=console(), auto_refresh=False) as live,
            ):
                while (status := await unless_told(told, anext(statuses))) is not None:
                    if live is None:
                        show_document(status.document())
                    else:
                        live.update(picture(status), refresh=True)
                    if told.is_set() or not (keep_on or _goes_on(status)):
                        return
            leave_at_once(0)  # after a signal: closing might wait for an answer that does not come


def _goes_on(status: RunStatus) -> bool:
    """Return whether to continue: a reassignment runs, or a run that has not ended has moves left."""
    waits = status.steps_left > 0 and status.ended is None
    return status.under_way > 0 or waits or status.others is not None
