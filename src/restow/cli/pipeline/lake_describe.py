"""`restow lake describe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.pipeline.options import AsJson, LakeFolder, SparkOptions, documents, opened, plain
from restow.cli.shared.frame import Answer
from restow.cli.shared.tables import draw_rows, moments, numbers, sizes, words

if TYPE_CHECKING:
    from rich.console import Console

    from restow.pipeline.stores import TableSnapshot

ABOUT = "Describe a lake's tables."
HELP = """Show the rows, files and times of every table and cluster in a lake.

\b
Examples:
  $ restow lake describe --lake samples
  $ restow lake describe --lake s3a://bucket/samples --json
  $ restow lake describe --lake iceberg:lakes.kafka --history
"""


def command(
    *,
    lake: LakeFolder,
    history: Annotated[
        bool, typer.Option("--history", help="Show the snapshots of an Iceberg or Delta lake, for --as-of.")
    ] = False,
    spark: SparkOptions,
    as_json: AsJson = False,
) -> Answer:
    with opened("lake describe", lake, spark, as_json=as_json) as there:
        if history:
            return _snapshots([*there.history()], as_json=as_json)
        rows = documents(there.describe())

    def draw(console: Console) -> None:
        columns = (
            words("table"),
            words("cluster"),
            numbers("version"),
            numbers("rows"),
            numbers("files"),
            sizes("bytes", "size"),
            moments("first"),
            moments("last"),
        )
        draw_rows(console, columns, rows)

    return Answer(document=lambda: {"tables": plain(rows)}, draw=draw, as_json=as_json)


def _snapshots(found: list[tuple[str, TableSnapshot]], *, as_json: bool) -> Answer:
    rows = [
        {"as_of": f"{name}@{each.number}", "at": each.at, "operation": each.operation} for name, each in found
    ]

    def draw(console: Console) -> None:
        columns = (words("as_of", "--as-of"), moments("at", "made at"), words("operation", "by"))
        draw_rows(console, columns, rows)

    return Answer(document=lambda: {"snapshots": plain(rows)}, draw=draw, as_json=as_json)
