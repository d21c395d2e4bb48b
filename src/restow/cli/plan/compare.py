"""`restow plan compare`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.plan.files import PlanFile
from restow.cli.shared.connection import AsJson
from restow.cli.shared.frame import Answer
from restow.cli.shared.tables import LABEL, NUMBER, Grid

if TYPE_CHECKING:
    from rich.console import Console

    from restow.plan.judge.compare import PlanComparison

ABOUT = "Show two plans side by side."
HELP = """Show what two plans have in common and where they differ.

\b
Examples:
  $ restow plan compare monday.json tuesday.json
"""


def command(
    first: PlanFile,
    second: Annotated[str, typer.Argument(metavar="PLAN", help="Another one.")],
    as_json: AsJson = False,
) -> Answer:
    from restow.plan import read_plan
    from restow.plan.judge.compare import compare

    found = compare(read_plan(first), read_plan(second))
    return Answer(document=lambda: asdict(found), draw=lambda console: _draw(console, found), as_json=as_json)


def _draw(console: Console, found: PlanComparison) -> None:
    table = Grid(("", LABEL), ("first", NUMBER), ("second", NUMBER))
    for row in found.rows():
        table.add_row(*row)
    console.print(table)
    console.print(f"{found.same:,} partitions go the same way in both, {len(found.different):,} another way")
    if not found.same_start:
        console.print(
            "they do not start from the same replicas: the cluster changed in between", style="yellow"
        )
