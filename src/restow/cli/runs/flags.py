"""The options that the commands of a run share: journals, throttles, hours and limits."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from restow.cli.shared.connection import on_cluster
from restow.cli.shared.frame import FAILED, INTERRUPTED, Answer, complain, console, line
from restow.cli.shared.options import section
from restow.cli.snapshot.source import INPUT
from restow.errors import InvalidInput, RestowError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rich.console import Console

    from restow.client import KafkaAdmin
    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.progress.status import RunListener
    from restow.execute.run.options import RunOptions
    from restow.execute.run.start import RunContext

PACE, SAFETY = "Pace", "Safety"
RATES = "RATE|auto|none[,HOURS=…]"
BY_HOUR = "By the hour: 20MB/s,22-06=200MB/s."

JournalFolder: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--journal",
        metavar="FOLDER",
        envvar="RESTOW_JOURNAL",
        help="Folder of the journals. Default: in the user's state folder.",
        rich_help_panel=SAFETY,
    ),
]
LoadFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--load",
        metavar="FILE",
        help="The load model of `restow pipeline run`: what producers write and consumers read.",
        rich_help_panel=INPUT,
    ),
]
RunName: TypeAlias = Annotated[
    str | None,
    typer.Option("--run", metavar="NAME", help="The run. Default: the latest that needs this command."),
]
Throttle: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar=RATES, help=f"Rate per broker, like 50MB/s; auto adapts it. {BY_HOUR}", rich_help_panel=PACE
    ),
]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Do not ask; required without a terminal.")]


@section(PACE)
class PaceOptions:
    """When moves start, and how fast log dirs are copied."""

    dir_throttle: Annotated[
        str | None,
        typer.Option(
            metavar="RATE", help="Rate for copies between a broker's log dirs. Default: as --throttle."
        ),
    ] = None
    hours: Annotated[str | None, typer.Option(metavar="22:00-06:00", help="Start moves only then.")] = None
    special_last: Annotated[
        bool,
        typer.Option(help="Move __consumer_offsets and __transaction_state last, one partition at a time."),
    ] = True


@section(SAFETY)
class SafetyOptions:
    """When a run pauses, and when it ends."""

    max_under_replicated: Annotated[
        int,
        typer.Option(
            min=-1, help="Pause when more than this many partitions become under-replicated; -1 never pauses."
        ),
    ] = 0
    max_latency_ms: Annotated[
        float | None, typer.Option(min=1, help="Pause when brokers answer more slowly.")
    ] = None
    give_up_after: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=1, help="End the run when nothing could move for this long."),
    ] = 600


@section()
class RunSettings:
    """The options of a run that `execute` and `resume` take beside the throttle."""

    pace: PaceOptions
    safety: SafetyOptions
    elect: Annotated[bool, typer.Option(help="Elect the first replica leader once it is in sync.")] = True

    def options(self, throttle: str) -> RunOptions:
        """Return the options, checked."""
        from restow.execute.run.options import run_options

        return run_options(throttle=throttle, elect=self.elect, **vars(self.pace), **vars(self.safety))


def carry_out(
    bootstrap: str,
    journal: str | None,
    work: Callable[[RunContext, RunListener], Awaitable[RunOutcome | None]],
    *,
    as_json: bool,
    cancels: bool = False,
) -> None:
    """Connect, run, show the progress, and exit with the code of the outcome.

    A run that was cancelled is a success only for a command that `cancels`.
    """
    from restow.cli.runs.screen import Screen, conclude, leave_at_once
    from restow.execute.progress.outcome import Ending
    from restow.execute.run.start import run_context

    wanted = Ending.CANCELLED if cancels else Ending.DONE
    screen = Screen(as_json=as_json)

    async def main(admin: KafkaAdmin) -> RunOutcome | None:
        try:
            with screen.shown(lambda: admin.unanswered):
                outcome = await work(run_context(admin, journal), screen.watcher)
        except asyncio.CancelledError:
            if screen.cut_short:
                complain("told to end before the run had begun: nothing was changed")
                leave_at_once(INTERRUPTED)
            raise
        except RestowError as error:
            if screen.cut_short:
                complain(str(error))
                leave_at_once(FAILED)
            raise
        if screen.cut_short:  # closing the connection would wait for answers that do not come
            code = (
                FAILED
                if outcome is None
                else conclude(outcome, interactive=screen.interactive, wanted=wanted)
            )
            leave_at_once(code)
        return outcome

    outcome = on_cluster(bootstrap, main)
    if outcome is not None:
        code = conclude(outcome, interactive=screen.interactive, wanted=wanted)
        if code:
            raise typer.Exit(code)


def can_ask(*, as_json: bool) -> bool:
    """Return whether a terminal can show a question and take the answer."""
    return not as_json and sys.stdout.isatty() and sys.stdin.isatty()


def preview(sentence: str, document: object, question: str, advice: str, *, as_json: bool) -> Answer | None:
    """Return the answer that only says what would change, or ask on a terminal whether to change it."""
    if can_ask(as_json=as_json):
        confirm(question, lambda console: console.print(sentence))
        return None
    return line(f"{sentence}. {advice}", document, as_json=as_json)


def confirm(question: str, draw: Callable[[Console], None]) -> None:
    """Draw the change, ask, and exit unless the answer is yes. Call it only where `can_ask`."""
    page = console()
    draw(page)
    try:
        answer = input(f"{question} [y/N] ").strip().lower()
    except EOFError:
        answer = ""
    if answer not in ("y", "yes"):
        page.print("Nothing was changed.")
        raise typer.Exit(FAILED)


def demand_yes(what: str) -> None:
    """Raise an error that asks for `--yes`, where there is no terminal."""
    raise InvalidInput(
        f"{what} changes the cluster, and there is no terminal to ask on: add --yes to do it, or --check to "
        "look at everything without changing anything"
    )
