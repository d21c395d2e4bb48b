"""`restow lake compact`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.pipeline.options import AsJson, Clusters, LakeFolder, SparkOptions, opened
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
    *,
    lake: LakeFolder,
    cluster: Clusters = [],  # noqa: B006
    keep_days: Annotated[int, typer.Option(min=0, help="Leave this many latest days as they are.")] = 1,
    spark: SparkOptions,
    as_json: AsJson = False,
) -> Answer:
    from restow.pipeline.schemas import SAMPLED

    fewer = {}
    with opened("lake compact", lake, spark, as_json=as_json) as there:
        for table in SAMPLED:
            fewer[table.name] = there.compact(table.name, clusters=cluster or None, days=keep_days)

    def draw(console: Console) -> None:
        for name, count in fewer.items():
            console.print(f"{name}: {count:,} files fewer")

    return Answer(document=lambda: {"fewer_files": fewer}, draw=draw, as_json=as_json)
