"""`restow lake import`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.pipeline.options import AsJson, LakeFolder, SparkOptions, opened
from restow.cli.shared.frame import Answer
from restow.text_files import read_text

if TYPE_CHECKING:
    from rich.console import Console

ABOUT = "Import samples of other tools: CSV or Parquet."
HELP = """Import exports of Prometheus, JMX or other tools into the lake. A mapping file names their columns.

A row may be imported again; it counts once.

\b
Examples:
  $ restow lake import --lake samples --mapping sizes.toml sizes-*.csv
"""


def command(
    *,
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Files or folders, all of one format.")],
    lake: LakeFolder,
    mapping: Annotated[
        str, typer.Option(metavar="FILE", help="TOML file: the table, the format, the source of each column.")
    ],
    spark: SparkOptions,
    as_json: AsJson = False,
) -> Answer:
    from restow.pipeline.importing import import_map, imported

    given = import_map(read_text(mapping), mapping)
    with opened("lake import", lake, spark, as_json=as_json, imports=True) as there:
        there.write(imported(there.spark, files, given), given.table.name)

    def draw(console: Console) -> None:
        console.print(f"{given.table.name} of {len(files)} files are in {lake}.")

    return Answer(document=lambda: {"table": given.table.name, "files": files}, draw=draw, as_json=as_json)
