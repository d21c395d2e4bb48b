"""`restow pipeline forecast`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from restow.cli.pipeline.options import PipelineOptions
from restow.cli.pipeline.pipeline_run import LimitOptions
from restow.cli.shared.frame import Answer
from restow.cli.shared.tables import draw_rows, moments, numbers, sizes, words

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


def command(*, limits: LimitOptions, options: PipelineOptions) -> Answer:
    parsed = limits.parsed()
    with options.work("pipeline forecast") as work:
        work.check()
        work.need("rates")
        found: Any = work.keep("forecast", work.forecast(parsed))
        options.output.save(found)
        fullest = (found["now"] / found["limit"]).desc()
        soon = found.orderBy(
            found["passes"].asc_nulls_last(), fullest, "cluster", "broker", "log_dir", "measure"
        )
        rows = options.output.first_rows(soon)
    return options.output.answer("forecast", rows, _draw)


def _draw(console: Console, rows: list[dict[str, Any]]) -> None:
    from restow.pipeline.findings import note

    columns = (
        words("cluster"),
        words("measure", "what"),
        numbers("broker"),
        words("log_dir", "log dir"),
        sizes("now"),
        sizes("limit"),
        sizes("growth", "growth a day"),
        moments("passes"),
        moments("soonest"),
        moments("latest"),
        words("note", "why not"),
    )
    draw_rows(console, columns, [row | {"note": note(row)} for row in rows])
