"""`restow pipeline lab`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from restow.cli.pipeline.options import PipelineOptions, on_lake
from restow.cli.shared.frame import Answer

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


@on_lake
def command(
    options: PipelineOptions,
    assignors: Annotated[
        str, typer.Option(metavar="A,B", help="Assignors to try, plug-ins too. Default: all.")
    ] = "range,roundrobin,sticky,cooperative-sticky",
) -> Answer:
    from restow.assignors import get
    from restow.cli.pipeline.options import documents, opened, plain, save
    from restow.cli.shared.flags import parse_names
    from restow.pipeline.work import Work

    names = parse_names(assignors, "--assignors")
    for name in names:
        get(name)
    with opened("pipeline lab", options) as lake:
        work = Work(lake, options.scope())
        work.check("groups")
        found = work.keep("lab", work.lab(names))
        save(found, options)
        worst = found.orderBy("skew_now", "cluster", "group", "assignor", ascending=[False, True, True, True])
        rows = documents(worst, options.rows)

    return Answer(
        document=lambda: {"groups": plain(rows)},
        draw=lambda console: _draw(console, rows),
        as_json=options.as_json,
    )


def _draw(console: Console, rows: list[dict[str, Any]]) -> None:
    from restow.cli.shared.tables import Column, draw_rows, number, word

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
