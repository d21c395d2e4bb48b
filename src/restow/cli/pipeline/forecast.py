"""`restow pipeline forecast`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from restow.cli.pipeline.options import PipelineOptions, on_lake
from restow.cli.shared.frame import Answer

if TYPE_CHECKING:
    from rich.console import Console

ABOUT = "Show when log dirs and brokers reach their limits."
HELP = """Show when each log dir is full and when each broker passes a limit, with the soonest and the latest
time that the samples allow. Where a time is missing, the last column says why (in JSON `why`, `why_soonest`
and `why_latest`). Needs the rates that `restow pipeline run` computes.

\b
Examples:
  $ restow pipeline forecast --lake samples
  $ restow pipeline forecast --lake samples --fill 0.8 --limit bytes_in=100MB/s
"""


@on_lake
def command(
    options: PipelineOptions,
    fill: Annotated[float, typer.Option(min=0.01, max=1, help="How full a log dir may become.")] = 0.9,
    limit: Annotated[
        list[str], typer.Option(metavar="NAME=RATE", help="A broker's limit, like bytes_in=100MB/s.")
    ] = [],  # noqa: B006
) -> Answer:
    from restow.cli.pipeline.options import documents, opened, plain, save
    from restow.cli.pipeline.run import limits_from
    from restow.pipeline.work import Work

    limits = limits_from(fill, limit)
    with opened("pipeline forecast", options) as lake:
        work = Work(lake, options.scope())
        work.check()
        work.need("rates")
        found: Any = work.keep("forecast", work.forecast(limits))
        save(found, options)
        soon = found.orderBy(
            found["passes"].asc_nulls_last(), (found["now"] / found["limit"]).desc(), "cluster", "broker"
        )
        rows = documents(soon, options.rows)
    return Answer(
        document=lambda: {"forecast": plain(rows)},
        draw=lambda console: _draw(console, rows),
        as_json=options.as_json,
    )


def _draw(console: Console, rows: list[dict[str, Any]]) -> None:
    from restow.cli.shared.tables import Column, draw_rows, moment, number, size, word
    from restow.pipeline.jobs.forecast import note

    columns = (
        Column("cluster", "cluster", word, left=True),
        Column("measure", "what", word, left=True),
        Column("broker", "broker", number),
        Column("log_dir", "log dir", word, left=True),
        Column("now", "now", size),
        Column("limit", "limit", size),
        Column("growth", "growth a day", size),
        Column("passes", "passes", moment),
        Column("soonest", "soonest", moment),
        Column("latest", "latest", moment),
        Column("note", "why not", word, left=True),
    )
    draw_rows(console, columns, [row | {"note": note(row)} for row in rows])
