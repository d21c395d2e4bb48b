"""`restow lake describe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cli.pipeline.options import AsJson, Conf, LakeFolder, Master, SparkLog  # noqa: TC001  (typer reads them)  # noqa: TC001  (typer reads them)
from restow.cli.shared.frame import Answer

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
    lake: LakeFolder,
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    spark_log: SparkLog = None,
    as_json: AsJson = False,
) -> Answer:
    from restow.cli.pipeline.options import PipelineOptions, documents, opened, plain

    with opened(
        "lake describe",
        PipelineOptions(lake=lake, master=master, conf=conf, spark_log=spark_log, as_json=as_json),
    ) as there:
        rows = documents(there.describe())

    def draw(console: Console) -> None:
        from restow.cli.shared.tables import Column, draw_rows, moment, number, size, word

        columns = (
            Column("table", "table", word, left=True),
            Column("cluster", "cluster", word, left=True),
            Column("version", "version", number),
            Column("rows", "rows", number),
            Column("files", "files", number),
            Column("bytes", "size", size),
            Column("first", "first", moment),
            Column("last", "last", moment),
        )
        draw_rows(console, columns, rows)

    return Answer(document=lambda: {"tables": plain(rows)}, draw=draw, as_json=as_json)
