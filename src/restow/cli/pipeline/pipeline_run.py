"""`restow pipeline run`."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restow.cli.pipeline.options import PipelineOptions, plain
from restow.cli.shared.frame import Answer
from restow.cli.shared.options import section
from restow.cli.shared.tables import Column, draw_rows, numbers, word, words
from restow.errors import InvalidInput
from restow.pipeline.running import STATISTICS, check_statistic
from restow.sizes import count, human_bytes, milliseconds, parse_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console

    from restow.pipeline.expectations import Checked
    from restow.pipeline.jobs.forecast import ForecastLimits

ABOUT = "Compute rates, load model, skew, forecast and alerts."
HELP = """Compute rates, the load model, skew, forecasts and alerts from samples.

The results go to the lake. --load also writes one load model per cluster, for `restow plan … --load`;
--report writes a page with pictures that needs no network. --incremental computes only the rates that samples
since the last such run have changed, with the same result.

\b
Examples:
  $ restow pipeline run --lake samples
  $ restow pipeline run --lake samples --since 7d --load loads --report report.html
  $ restow pipeline run --lake samples --master spark://host:7077 --limit bytes_in=100MB/s
  $ restow pipeline run --lake delta:s3a://bucket/lake --as-of 2026-11-01T00:00 --load loads
"""


@section()
class LimitOptions:
    """The limits of a forecast."""

    fill: Annotated[float, typer.Option(min=0.01, max=1, help="How full a log dir may become.")] = 0.9
    limit: Annotated[
        list[str], typer.Option(metavar="NAME=RATE", help="A broker's limit, like bytes_in=100MB/s.")
    ] = field(default_factory=list)

    def parsed(self) -> ForecastLimits:
        from restow.pipeline.jobs.forecast import ForecastLimits

        rates: dict[str, float] = {}
        for each in self.limit:
            name, _, value = each.partition("=")
            if name not in ("bytes_in", "bytes_out") or not value:
                raise InvalidInput(f"--limit: {each!r} is not like bytes_in=100MB/s or bytes_out=200MB/s")
            rates[name] = float(parse_rate(value, f"--limit {name}"))
        return ForecastLimits(fill=self.fill, rates=rates)


@section()
class TableOptions:
    """What the tables and the load models are made with."""

    window: Annotated[str, typer.Option(metavar="TIME", help="Length of a window of rates.")] = "5m"
    load: Annotated[
        str | None, typer.Option(metavar="DIR", help="Write load models to this folder, as CLUSTER.parquet.")
    ] = None
    statistic: Annotated[
        str, typer.Option(metavar="|".join(STATISTICS), help="Statistic that counts as the load.")
    ] = "mean"
    limits: LimitOptions

    def checked(self) -> dict[str, Any]:
        """Return them as `make_tables` takes them. Bad ones are refused before Spark starts."""
        check_statistic(self.statistic)
        milliseconds(self.window, "--window")
        return vars(self) | {"limits": self.limits.parsed()}


def command(
    *,
    tables: TableOptions,
    report: Annotated[str | None, typer.Option(metavar="FILE", help="Write an HTML report.")] = None,
    incremental: Annotated[
        bool, typer.Option("--incremental", help="Compute only what new samples change.")
    ] = False,
    options: PipelineOptions,
) -> Answer:
    from restow.pipeline.running import make_tables

    checked = tables.checked()
    with options.work("pipeline run") as work:
        made = make_tables(work, **checked, report=report, incremental=incremental)
        options.output.save(work.made("model"))
        skew = options.output.first_rows(_most_uneven(work.made("skew")))
        alerts = work.alerts_told(options.output.rows)

    def draw(console: Console) -> None:
        draw_skew(console, skew)
        if options.range.as_of is None:
            console.print(f"\n{', '.join(made.tables)} are in the lake {options.lake}.")
        for line in left_out(made.checked):
            console.print(word(line), style="yellow")
        for says in alerts:
            console.print(f"Alert: {word(says)}")
        for path in made.loads[:10]:
            console.print(f"The load model is in {path}.")
        if made.without_load:
            console.print(
                f"Of {count(made.without_load, 'partition')} the load is not known: it counts as 0 in the "
                "load model.",
                style="yellow",
            )
        if report is not None:
            console.print(f"The report is in {report}.")

    def document() -> object:
        return {
            "made": made.tables,
            "loads": made.loads,
            "without_load": made.without_load,
            "report": report,
            "skew": plain(skew),
            "alerts": list(alerts),
            "checks": [each.document() for each in made.checked],
        }

    return Answer(document=document, draw=draw, as_json=options.output.as_json)


def left_out(checked: Iterable[Checked]) -> Iterator[str]:
    """Yield a line about each reason for which rows were left out, for this command and the stream."""
    for each in checked:
        for reason, rows in each.dropped.items():
            yield f"{each.table}: left out {rows:,} of {count(each.rows, 'row')}: {reason}"


def _most_uneven(skew: Any) -> Any:
    """Return the brokers furthest from their share, over all clusters and measures."""
    from restow.pipeline.jobs.skew import furthest_first

    return furthest_first(
        skew.where("dimension = 'broker' and measure in ('size', 'bytes_in', 'bytes_out', 'leaders')")
    )


def draw_skew(console: Console, rows: list[dict[str, Any]]) -> None:
    """Draw the table of skew, for this command and `restow pipeline skew`."""
    columns = (
        words("cluster"),
        words("dimension", "of"),
        words("member", "which"),
        words("measure"),
        Column("amount", "has", word),
        numbers("share", "× share"),
        numbers("variation"),
        words("because", "mostly"),
    )
    draw_rows(console, columns, [row | _told(row) for row in rows])


def _told(row: dict[str, Any]) -> dict[str, str]:
    total, measure = row["total"], row["measure"]
    if total is None:
        return {"amount": "not known", "because": ""}
    words = human_bytes(total) if measure in ("size", "bytes_in", "bytes_out") else f"{total:,.0f}"
    per_s = "/s" if measure.startswith("bytes_") else ""
    causes = [f"{each['topic']}-{each['partition']}" for each in row["causes"][:2]]
    unknown = f"; {row['unknown']:,} not known" if row["unknown"] else ""
    return {"amount": words + per_s, "because": ", ".join(causes) + unknown}
