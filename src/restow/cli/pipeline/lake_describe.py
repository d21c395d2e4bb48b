"""`restow lake describe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cli.pipeline.options import AsJson, LakeFolder, SparkOptions, documents, opened, plain
from restow.cli.shared.frame import Answer
from restow.cli.shared.tables import Column, draw_rows, moment, number, word
from restow.sizes import human_bytes

if TYPE_CHECKING:
    from rich.console import Console

ABOUT = "Describe a lake's tables."
HELP = """Show the rows, files and times of every table and cluster in a lake.

\b
Examples:
  $ restow lake describe --lake samples
  $ restow lake describe --lake s3a://bucket/samples --json
"""


def command(
    *,
    lake: LakeFolder,
    spark: SparkOptions,
    as_json: AsJson = False,
) -> Answer:
    with opened("lake describe", lake, spark, as_json=as_json) as there:
        rows = documents(there.describe())

    def draw(console: Console) -> None:
        columns = (
            Column("table", "table", word, left=True),
            Column("cluster", "cluster", word, left=True),
            Column("version", "version", number),
            Column("rows", "rows", number),
            Column("files", "files", number),
            Column("bytes", "size", human_bytes),
            Column("first", "first", moment),
            Column("last", "last", moment),
        )
        draw_rows(console, columns, rows)

    return Answer(document=lambda: {"tables": plain(rows)}, draw=draw, as_json=as_json)
