"""`restow pipeline fleet`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from restow.cli.pipeline.options import PipelineOptions
from restow.cli.shared.frame import Answer
from restow.cli.shared.tables import draw_rows, numbers, sizes, word, words
from restow.pipeline.running import STATISTICS, check_statistic
from restow.text_files import write_text

if TYPE_CHECKING:
    from rich.console import Console

ABOUT = "Plan every cluster, the most urgent first."
HELP = """Plan every cluster in the lake, in parallel, and list the most urgent first.

Offline partitions, full log dirs, missing replicas and uneven load make a cluster urgent. The load of
partitions comes from the load model of `restow pipeline run`; without one, plans balance sizes and counts.

\b
Examples:
  $ restow pipeline fleet --lake samples
  $ restow pipeline fleet --lake samples --plans plans --band 0.05
  $ restow pipeline fleet --lake samples --out fleet --format csv
"""


def command(
    *,
    plans: Annotated[str | None, typer.Option(metavar="DIR", help="Write each plan to this folder.")] = None,
    band: Annotated[float | None, typer.Option(metavar="SHARE", help="How uneven brokers may be.")] = None,
    fix_racks: Annotated[bool, typer.Option(help="Spread replicas over racks too.")] = False,
    statistic: Annotated[
        str, typer.Option(metavar="|".join(STATISTICS), help="Plan with this statistic of the load.")
    ] = "mean",
    seconds: Annotated[float, typer.Option(min=0.1, help="Search time for each plan.")] = 30.0,
    options: PipelineOptions,
) -> Answer:
    from restow.pipeline.planning import GOALS, FleetRequest
    from restow.plan.request.request import PlanRequest

    check_statistic(statistic)
    bands = {} if band is None else dict.fromkeys(GOALS, band)
    asked = FleetRequest(
        request=PlanRequest(balance=True, fix_racks=fix_racks, bands=bands),
        seconds=seconds,
        measure=statistic,
    )
    with options.work("pipeline fleet") as work:
        work.check()
        found = work.keep("fleet", work.fleet(asked)).orderBy("urgency", "cluster", ascending=[False, True])
        written = _write_plans(found, plans)
        options.output.save(found)
        rows = options.output.first_rows(found.drop("plan"))

    def draw(console: Console, rows: list[dict[str, Any]]) -> None:
        _draw(console, rows)
        if plans is not None:
            console.print(f"{written:,} plans are in {plans}.")

    return options.output.answer("clusters", rows, draw)


def _write_plans(found: Any, folder: str | None) -> int:
    """Write one cluster's plan at a time: all of them may not fit in memory."""
    from pathlib import Path

    from restow.pipeline.names import file_name

    if folder is None:
        return 0
    Path(folder).mkdir(parents=True, exist_ok=True)
    written = 0
    for row in found.where("plan is not null and moves > 0").select("cluster", "plan").toLocalIterator():
        write_text(str(Path(folder) / f"{file_name(row['cluster'])}.json"), row["plan"])
        written += 1
    return written


def _draw(console: Console, rows: list[dict[str, Any]]) -> None:
    columns = (
        words("cluster"),
        numbers("urgency"),
        words("because"),
        numbers("brokers"),
        numbers("replicas"),
        numbers("disk_before", "disk now"),
        numbers("disk_after", "disk then"),
        numbers("moves"),
        sizes("copied", "to copy"),
        numbers("ratio", "÷ least"),
    )
    draw_rows(console, columns, rows)
    for row in rows:
        if row["error"] is not None:
            console.print(f"{word(row['cluster'])}: {word(row['error'])}", style="yellow")
