"""`restow execute`: carry out a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.plan.files import Approval, PlanFile
from restow.cli.runs.flags import (
    BY_HOUR,
    PACE,
    RATES,
    SAFETY,
    JournalFolder,
    LoadFile,
    RunSettings,
    Yes,
    can_ask,
    carry_out,
    confirm,
    demand_yes,
)
from restow.cli.shared.connection import Bootstrap, on_cluster
from restow.cli.shared.drawing import clean, put, ranges
from restow.cli.shared.frame import Answer
from restow.errors import InvalidInput
from restow.sizes import count, human_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from restow.execute.run.options import RunOptions
    from restow.model import Plan

ABOUT = "Carry out a plan."
HELP = """Carry out a plan, move by move, within its limits. A journal lets `restow undo` move all of it back.

On a terminal it shows the changes and asks; then it shows the progress, and ctrl-C asks: pause, cancel this
wave, leave running. Elsewhere it needs --yes, and prints one line of JSON per event.

With --digest it refuses any plan but the approved one. `restow plan` and `restow show` print the digest,
which covers the whole plan.

Before the first change it rehearses the run, and refuses it if a log dir would hold more than the plan
allows, if it would never end, or if it may miss --deadline. The journal keeps the prediction.

With --check it checks all conditions for the first change, and changes nothing: exit code 0 if the run could
begin, 1 if not.

\b
Examples:
  $ restow execute plan.json --check -b localhost:9092
  $ restow execute plan.json --throttle 50MB/s -b localhost:9092
  $ restow execute plan.json --throttle auto --hours 22:00-06:00 -b localhost:9092
  $ restow execute plan.json --throttle 20MB/s,22-06=200MB/s -b localhost:9092
  $ restow execute plan.json --throttle 50MB/s --deadline 06:00 -b localhost:9092
  $ restow execute plan.json --digest sha256:3f9a6c0b71de --throttle 50MB/s -b localhost:9092
  $ restow execute plan.json --throttle none --yes --json -b localhost:9092
"""


def command(
    *,
    plan: PlanFile,
    bootstrap: Bootstrap,
    throttle: Annotated[
        str | None,
        typer.Option(
            metavar=RATES,
            help=f"Rate per broker, like 50MB/s; auto adapts it. {BY_HOUR} Required, except with --check.",
            rich_help_panel=PACE,
        ),
    ] = None,
    settings: RunSettings,
    load: LoadFile = None,
    deadline: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Refuse to begin if it may not be done by then: 06:00, or 4h from now.",
            rich_help_panel=PACE,
        ),
    ] = None,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway",
            help="Begin although it would never end or miss its deadline, but not if it overfills a log dir.",
            rich_help_panel=SAFETY,
        ),
    ] = False,
    journal: JournalFolder = None,
    approval: Approval,
    check: Annotated[
        bool, typer.Option("--check", help="Check whether the run could begin, and change nothing.")
    ] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Carry out even a plan that leaves partitions behind.")
    ] = False,
    yes: Yes = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON per event.")] = False,
) -> Answer | None:
    from restow.execute.run.options import expecting
    from restow.execute.run.start import check_complete, execute
    from restow.plan import read_load

    wanted = approval.read(plan)
    if not partial:
        check_complete(wanted, plan, "--partial")
    if throttle is None and not check:
        raise InvalidInput("--throttle is needed: a rate per broker like 50MB/s, `auto`, or `none`")
    options = expecting(
        settings.options(throttle or "none"),
        load=None if load is None else read_load(load),
        deadline=deadline,
        anyway=anyway,
    )
    if check:
        return _check(bootstrap, journal, wanted, options, as_json=as_json)
    throttle = throttle or "none"
    if not yes:
        if not can_ask(as_json=as_json):
            demand_yes("execute")
        confirm("Carry it out?", lambda console: _draw(console, wanted, throttle))
    carry_out(
        bootstrap, journal, lambda world, watcher: execute(world, wanted, options, watcher), as_json=as_json
    )
    return None


def _check(bootstrap: str, journal: str | None, plan: Plan, options: RunOptions, *, as_json: bool) -> Answer:
    """Return the checks. A check that could not be made does not keep a run from beginning."""
    from restow.cli.runs.verdict_view import verdict_answer
    from restow.execute.run.examine import examine
    from restow.execute.run.start import run_context
    from restow.verify import blocking

    verdict = on_cluster(bootstrap, lambda admin: examine(run_context(admin, journal), plan, options))
    return verdict_answer(verdict, as_json=as_json, holds=not blocking(verdict))


def _draw(console: Console, plan: Plan, throttle: str) -> None:
    """Draw the changes in a few lines, for the user to read before the question."""
    from restow.plan.files.text import digest_of

    into = {broker for move in plan.moves for broker in (*move.adding, *move.dir_changes)}
    out_of = {broker for move in plan.moves for broker in move.removing}
    if plan.title:
        put(console, clean(plan.title), style="bold")
    put(console, f"cluster   {clean(plan.cluster_id)}")
    put(console, f"digest    {digest_of(plan)}")
    put(
        console, f"moves     {count(len(plan.moves), 'partition')}, {human_bytes(plan.bytes_to_copy)} to copy"
    )
    put(console, f"brokers   to {ranges(into, 8) or 'none'}; away from {ranges(out_of, 8) or 'none'}")
    put(console, f"throttle  {clean(throttle)} per broker")
