"""`restow pipeline declare`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.pipeline.options import AsJson, LakeFolder
from restow.cli.pipeline.pipeline_run import LimitOptions
from restow.cli.shared.frame import Answer
from restow.sizes import milliseconds

if TYPE_CHECKING:
    from rich.console import Console

ABOUT = "Write the tables as a Spark declarative pipeline."
HELP = """Write a Spark declarative pipeline that makes the same tables as `restow pipeline run`, and a
table of checks that says how many rows were left out and why.

DIR gets a spec and definitions, which `spark-pipelines run` executes wherever Restow is installed. The tables
belong to Spark's catalog instead of the lake. Needs Spark 4.1 or later.

\b
Examples:
  $ restow pipeline declare tables --lake samples
  $ restow pipeline declare tables --lake samples --database kafka --limit bytes_in=100MB/s
  $ spark-pipelines run --spec tables/spark-pipeline.yml
"""


def command(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder to write to.")],
    *,
    lake: LakeFolder,
    window: Annotated[str, typer.Option(metavar="TIME", help="Length of a window of rates.")] = "5m",
    limits: LimitOptions,
    database: Annotated[
        str | None, typer.Option(metavar="NAME", help="The database of the tables. Default: Spark's own.")
    ] = None,
    conf: Annotated[
        list[str], typer.Option(metavar="NAME=VALUE", help="Set a Spark property of the pipeline.")
    ] = [],  # noqa: B006 (typer copies it)
    as_json: AsJson = False,
) -> Answer:
    from restow.pipeline.declaring import Declaration, declare
    from restow.pipeline.session import conf_from

    limit = limits.parsed()
    window_s = max(1, milliseconds(window, "--window") // 1000)
    about = Declaration(lake=lake, window_s=window_s, fill=limit.fill, limit=dict(limit.rates))
    made = declare(folder, about, database=database, conf=conf_from(conf))

    def draw(console: Console) -> None:
        console.print(f"The pipeline is in {folder}. Run it with:", shlex.join(made.command))

    document = {"written": [*made.paths], "run": [*made.command]}
    return Answer(document=lambda: document, draw=draw, as_json=as_json)
