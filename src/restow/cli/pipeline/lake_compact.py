"""`restow lake compact`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.pipeline.options import AsJson, Clusters, LakeFolder, SparkOptions, opened
from restow.cli.shared.frame import Answer
from restow.errors import InvalidInput
from restow.sizes import milliseconds

if TYPE_CHECKING:
    from rich.console import Console

ABOUT = "Merge many small files into few large ones."
HELP = """Merge the small files of past days into large ones, each sample once and in order.

Readers and collectors may keep running. Days that still receive samples stay as they are. Iceberg and Delta
lakes keep the earlier files for --as-of; --forget removes what is older, and what killed writers have left.

\b
Examples:
  $ restow lake compact --lake samples
  $ restow lake compact --lake samples --keep-days 7
  $ restow lake compact --lake delta:s3a://bucket/lake --forget 30d
"""

_LEAST_PAST_S = 7 * 24 * 3600


def command(
    *,
    lake: LakeFolder,
    cluster: Clusters = [],  # noqa: B006
    keep_days: Annotated[int, typer.Option(min=0, help="Leave this many latest days as they are.")] = 1,
    forget: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Remove snapshots older than this, like 30d; at least 7d."),
    ] = None,
    spark: SparkOptions,
    as_json: AsJson = False,
) -> Answer:
    from restow.pipeline.schemas import NAMES, SAMPLED

    older_than_s = None if forget is None else milliseconds(forget, "--forget") // 1000
    if older_than_s is not None and older_than_s < _LEAST_PAST_S:
        raise InvalidInput(f"--forget {forget}: a reader or writer may still need it; give 7d or more")
    fewer = {}
    with opened("lake compact", lake, spark, as_json=as_json) as there:
        for table in SAMPLED:
            fewer[table.name] = there.compact(table.name, clusters=cluster or None, days=keep_days)
        for name in () if older_than_s is None else NAMES:
            there.forget(name, older_than_s or 0)

    def draw(console: Console) -> None:
        for name, count in fewer.items():
            console.print(f"{name}: {count:,} files fewer")

    return Answer(document=lambda: {"fewer_files": fewer}, draw=draw, as_json=as_json)
