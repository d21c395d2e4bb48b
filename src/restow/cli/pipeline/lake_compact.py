"""`restow lake compact`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.pipeline.options import AsJson, Clusters, Conf, LakeFolder, Master, SparkLog  # noqa: TC001  (typer reads them)  # noqa: TC001  (typer reads them)
from restow.cli.shared.frame import Answer

if TYPE_CHECKING:
    from rich.console import Console

ABOUT = "Merge many small files into few large ones."
HELP = """Merge the small files of past days into large ones, each sample once and in order.

Readers and collectors may keep running. Days that still receive samples stay as they are.

\b
Examples:
  $ restow lake compact --lake samples
  $ restow lake compact --lake samples --keep-days 7
"""


def command(
    lake: LakeFolder,
    cluster: Clusters = [],  # noqa: B006
    keep_days: Annotated[int, typer.Option(min=0, help="Leave this many latest days as they are.")] = 1,
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    spark_log: SparkLog = None,
    as_json: AsJson = False,
) -> Answer:
    from restow.cli.pipeline.options import PipelineOptions, opened
    from restow.pipeline.schemas import SAMPLED

    fewer = {}
    with opened(
        "lake compact",
        PipelineOptions(lake=lake, master=master, conf=conf, spark_log=spark_log, as_json=as_json),
    ) as there:
        for table in SAMPLED:
            fewer[table.name] = there.compact(table.name, clusters=cluster or None, days=keep_days)

    def draw(console: Console) -> None:
        for name, count in fewer.items():
            console.print(f"{name}: {count:,} files fewer")

    return Answer(document=lambda: {"fewer_files": fewer}, draw=draw, as_json=as_json)
