"""`restow pipeline lab`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from restow.cli.pipeline.options import PipelineOptions
from restow.cli.shared.flags import parse_names
from restow.cli.shared.frame import Answer
from restow.cli.shared.tables import Column, draw_rows, number, word

if TYPE_CHECKING:
    from rich.console import Console

ABOUT = "Try every assignor on every consumer group."
HELP = """Try every assignor on every consumer group in the lake.

Skew and lag skew: the busiest member over the mean. Moved: partitions that change owners if the group
switches to the assignor now. Replayed: partitions that would have changed owners while its members came and
went. Far: partitions that a member reads from another rack.

\b
Examples:
  $ restow pipeline lab --lake samples
  $ restow pipeline lab --lake samples --assignors sticky,range --out lab --format csv
"""


def command(
    *,
    assignors: Annotated[
        str, typer.Option(metavar="A,B", help="Assignors to try, plug-ins too. Default: all.")
    ] = "range,roundrobin,sticky,cooperative-sticky",
    options: PipelineOptions,
) -> Answer:
    from restow.assignors import get

    names = parse_names(assignors, "--assignors")
    for name in names:
        get(name)
    with options.work("pipeline lab") as work:
        work.check("groups")
        found = work.keep("lab", work.lab(names))
        options.output.save(found)
        order = ["skew_now", "cluster", "group", "assignor"]
        rows = options.output.first_rows(found.orderBy(*order, ascending=[False, True, True, True]))
    return options.output.answer("groups", rows, _draw)


def _draw(console: Console, rows: list[dict[str, Any]]) -> None:
    columns = (
        Column("group", "group", word, left=True),
        Column("assignor", "assignor", word, left=True),
        Column("members", "members", number),
        Column("partitions", "partitions", number),
        Column("skew_now", "skew now", number),
        Column("skew", "skew then", number),
        Column("lag_skew_now", "lag skew now", number),
        Column("lag_skew", "lag skew then", number),
        Column("cross_rack_now", "far now", number),
        Column("cross_rack", "far then", number),
        Column("moved", "moved", number),
        Column("replayed", "replayed", number),
    )
    draw_rows(console, columns, rows)
    for row in rows:
        if row["error"] is not None:
            console.print(f"{word(row['group'])}, {row['assignor']}: {word(row['error'])}", style="yellow")
