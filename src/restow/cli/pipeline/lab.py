"""`restow pipeline lab`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restow.cli.pipeline.options import (
    PipelineOptions,
    SampleRange,
    SparkOptions,
    TableOutput,
    documents,
    watched_spark,
)
from restow.cli.shared.flags import parse_names
from restow.cli.shared.frame import Answer
from restow.cli.shared.tables import draw_rows, numbers, word, words
from restow.errors import InvalidInput
from restow.text_files import write_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

ABOUT = "Try every assignor on every consumer group."
HELP = """Try every assignor on every consumer group in the lake.

With --generate the groups are made up instead: members join, leave and restart, a topic grows, lag builds up.

Skew and lag skew: the busiest member over the mean. Moved: partitions that change owners if the group
switches to the assignor now. Replayed: partitions that would have changed owners while its members came and
went. Idle: for how long partitions have no owner meanwhile, all together and at most. Far: partitions that a
member reads from another rack. Most lag: what the busiest member has to read until the lag is cleared.

\b
Examples:
  $ restow pipeline lab --lake samples
  $ restow pipeline lab --lake samples --assignors sticky,range --out lab --format csv
  $ restow pipeline lab --lake samples --html lab.html
  $ restow pipeline lab --generate 1000 --html lab.html
"""


def command(
    *,
    assignors: Annotated[
        str, typer.Option(metavar="A,B", help="Assignors to try, plug-ins too. Default: all.")
    ] = "range,roundrobin,sticky,cooperative-sticky,uniform,rack-uniform,lag-aware",
    generate: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="Make up so many groups instead of reading a lake.")
    ] = 0,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write an HTML page with pictures of all groups.")
    ] = None,
    lake: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            envvar="RESTOW_LAKE",
            help="The lake: a folder, or any path that Spark reads. Needed without --generate.",
        ),
    ] = None,
    spark: SparkOptions,
    range: SampleRange,  # noqa: A002 (as in other commands)
    output: TableOutput,
) -> Answer:
    from restow.assignors import get

    names = parse_names(assignors, "--assignors")
    for name in names:
        get(name)
    options = None if lake is None else PipelineOptions(lake=lake, spark=spark, range=range, output=output)
    groups = _of_lake(options, names) if not generate else _made(spark, names, generate, output)
    with groups as found:
        output.save(found)
        order = ["skew_now", "cluster", "group", "assignor"]
        rows = output.first_rows(found.orderBy(*order, ascending=[False, True, True, True]))
        if html is not None:
            from restow.cli.pipeline.lab_html import page_of
            from restow.pipeline.jobs.lab import by_assignor

            write_text(html, page_of(documents(by_assignor(found))))
    return output.answer("groups", rows, _draw)


@contextmanager
def _of_lake(options: PipelineOptions | None, names: Sequence[str]) -> Iterator[Any]:
    """Let the assignors work on the lake's groups; the table stays there."""
    if options is None:
        raise InvalidInput("name a lake with --lake, or let groups be made up with --generate N")
    with options.work("pipeline lab") as work:
        work.check("groups")
        yield work.keep("lab", work.lab(names))


@contextmanager
def _made(spark: SparkOptions, names: Sequence[str], groups: int, output: TableOutput) -> Iterator[Any]:
    """Let the assignors work on so many groups that are made up."""
    with watched_spark("pipeline lab", spark, as_json=output.as_json) as session:
        from restow.pipeline.jobs.lab import made_lab

        found = made_lab(session, groups, names).persist()
        try:
            yield found
        finally:
            found.unpersist()


def _draw(console: Console, rows: list[dict[str, Any]]) -> None:
    columns = (
        words("group"),
        words("assignor"),
        numbers("members"),
        numbers("partitions"),
        numbers("skew_now", "skew now"),
        numbers("skew", "skew then"),
        numbers("lag_skew_now", "lag skew now"),
        numbers("lag_skew", "lag skew then"),
        numbers("most_lag", "most lag"),
        numbers("cross_rack_now", "far now"),
        numbers("cross_rack", "far then"),
        numbers("moved"),
        numbers("without_owner_s", "idle s"),
        numbers("replayed"),
        numbers("replayed_without_owner_s", "idle s"),
    )
    draw_rows(console, columns, rows)
    for row in rows:
        if row["error"] is not None:
            console.print(f"{word(row['group'])}, {row['assignor']}: {word(row['error'])}", style="yellow")
