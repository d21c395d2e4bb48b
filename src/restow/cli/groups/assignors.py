"""`restow groups assignors`: list the assignors."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.cli.shared.connection import AsJson
from restow.cli.shared.drawing import clean
from restow.cli.shared.frame import Answer
from restow.cli.shared.tables import LABEL, NAME, WORDS, Grid
from restow.errors import AssignorFailed

if TYPE_CHECKING:
    from rich.console import Console

ABOUT = "List the assignors."
HELP = """List Restow's own assignors and those of installed plug-ins.

A package adds an assignor with an entry point in the group `restow.assignors`; every flag that takes an
assignor then takes its name.

\b
Examples:
  $ restow groups assignors
  $ restow groups assignors --json
"""


@frozen
class AssignorLine:
    """One assignor, as one row of the table."""

    name: str
    about: str
    cooperative: bool | None
    """None if the plug-in cannot be loaded; `about` has the reason."""
    plugged_in: bool


def list_assignors() -> tuple[AssignorLine, ...]:
    """Return all assignors by name, each with the first line of its docstring."""
    from restow.assignors import get, names

    found = []
    for name in names():
        try:
            kind = type(get(name))
        except AssignorFailed as error:  # one broken plug-in must not hide the others
            found.append(AssignorLine(name=name, about=str(error), cooperative=None, plugged_in=True))
            continue
        about = (kind.__doc__ or "").strip().split("\n")[0].rstrip(".")
        found.append(
            AssignorLine(
                name=name,
                about=about,
                cooperative=kind.cooperative,
                plugged_in=not kind.__module__.startswith("restow."),
            )
        )
    return tuple(found)


def draw_assignors(console: Console, lines: tuple[AssignorLine, ...]) -> None:
    from rich.text import Text

    table = Grid(("name", NAME), ("rebalance", LABEL), ("from", LABEL), ("about", WORDS))
    for line in lines:
        table.add_row(
            Text(clean(line.name), style="bold"),
            {True: "cooperative", False: "eager", None: "broken"}[line.cooperative],
            "plug-in" if line.plugged_in else "restow",
            line.about,
        )
    console.print(table)


def command(
    as_json: AsJson = False,
) -> Answer:
    lines = list_assignors()
    return Answer(
        document=lambda: {"assignors": [asdict(line) for line in lines]},
        draw=lambda console: draw_assignors(console, lines),
        as_json=as_json,
    )
