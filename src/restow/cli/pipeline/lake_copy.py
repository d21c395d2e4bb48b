"""`restow lake copy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.pipeline.options import (
    AsJson,
    LakeFolder,
    SampleRange,
    SparkOptions,
    watched_spark,
)
from restow.cli.shared.frame import Answer

if TYPE_CHECKING:
    from rich.console import Console

ABOUT = "Copy a lake to another place or kind."
HELP = """Copy samples and results into another lake: a folder, Iceberg tables or Delta tables.

Samples join those that are there, and count once: a copy may be repeated, say from cron with --since 2h.
Results of jobs replace those of the same clusters.

\b
Examples:
  $ restow lake copy --lake samples --to delta:s3a://bucket/lake
  $ restow lake copy --lake iceberg:lakes.kafka --to samples --as-of 2026-11-01T00:00
"""


def command(
    *,
    lake: LakeFolder,
    to: Annotated[str, typer.Option(metavar="PLACE", help="The lake to copy to; it need not exist yet.")],
    range: SampleRange,  # noqa: A002
    spark: SparkOptions,
    as_json: AsJson = False,
) -> Answer:
    from restow.pipeline.copying import copied
    from restow.pipeline.lake import Lake

    scope, as_of = range.scope(), range.moment()
    with watched_spark("lake copy", spark, as_json=as_json, lakes=[lake, to]) as session:
        tables = [*copied(Lake(session, lake, as_of=as_of), Lake(session, to), scope)]

    def draw(console: Console) -> None:
        console.print(f"{', '.join(tables)} are in {to}." if tables else f"{lake} has nothing to copy.")

    return Answer(document=lambda: {"tables": tables}, draw=draw, as_json=as_json)
