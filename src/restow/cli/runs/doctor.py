"""`restow doctor`: find leftovers and faults of reassignments, and repair Restow's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.runs.flags import JournalFolder
from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.drawing import clean
from restow.cli.shared.frame import FAILED, Answer

if TYPE_CHECKING:
    from rich.console import Console

    from restow.client import KafkaAdmin
    from restow.execute.repair.doctor import Finding

ABOUT = "Find leftovers and faults, and repair Restow's own."
HELP = """Find unused throttles, reassignments without a run, replicas out of sync, leaders out of place.

The command prints what it would repair; --fix repairs it, with a journal, and changes no setting that Restow
did not make. The exit code is 1 while anything is wrong.

\b
Examples:
  $ restow doctor -b localhost:9092
  $ restow doctor --fix -b localhost:9092
"""


def command(
    bootstrap: Bootstrap,
    fix: Annotated[bool, typer.Option("--fix", help="Repair what can be repaired.")] = False,
    journal: JournalFolder = None,
    as_json: AsJson = False,
) -> Answer:
    found, done = on_cluster(bootstrap, lambda admin: _examine(admin, journal, fix=fix))
    return Answer(
        document=lambda: [each.document() for each in found],
        draw=lambda console: _draw(console, found, done, fixed=fix),
        as_json=as_json,
        code=FAILED if found else 0,
    )


async def _examine(
    admin: KafkaAdmin, journal: str | None, *, fix: bool
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return the findings, and what was repaired."""
    from restow.execute.progress.status import RunEvent, RunListener
    from restow.execute.repair import doctor as doing
    from restow.execute.run.start import run_context

    world = run_context(admin, journal)
    if not fix:
        return await doing.diagnose(world), ()
    events: list[RunEvent] = []
    left = await doing.fix(world, RunListener(event=events.append, status=lambda _: None))
    return left, doing.repaired(events)


def _draw(console: Console, found: tuple[Finding, ...], done: tuple[str, ...], *, fixed: bool) -> None:
    for each in done:
        console.print(clean(each))
    if not found:
        console.print("all is in order")
        return
    for finding in found:
        console.print(f"{finding.kind.value}: {clean(finding.what)}", style="bold")
        console.print(f"  {clean(finding.evidence)}")
        how = "--fix would" if finding.can_be_fixed and not fixed else "remedy"
        console.print(f"  {how}: {clean(finding.remedy)}", style="dim")
