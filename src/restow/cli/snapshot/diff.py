"""`restow snapshot diff`: compare two snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.shared.connection import AsJson
from restow.cli.shared.drawing import clean, put
from restow.cli.shared.frame import Answer

if TYPE_CHECKING:
    from rich.console import Console

ABOUT = "Compare two snapshots."
HELP = """Show the changes from one snapshot to another: brokers, configs, replicas, leaders, ISRs, log dirs.
Sizes and lag always change, and do not count.

\b
Examples:
  $ restow snapshot diff before.json after.json
"""


def command(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A file of `restow snapshot`.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="Another one.")],
    as_json: AsJson = False,
) -> Answer:
    from restow.snapshot import read_snapshot
    from restow.snapshot.differences import differences

    found = differences(read_snapshot(before), read_snapshot(after))
    return Answer(
        document=lambda: {"differences": list(found)},
        draw=lambda console: _draw(console, found),
        as_json=as_json,
    )


def _draw(console: Console, found: tuple[str, ...]) -> None:
    for line in found or ("nothing changed",):
        put(console, clean(line))
