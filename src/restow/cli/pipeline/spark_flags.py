"""What commands that run on Spark have in common: where it runs, its settings, where its words go."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PANEL = "Spark"

Master: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="RESTOW_SPARK_MASTER",
        help="local[N], spark://…, yarn, k8s://…; all cores of this machine if not given.",
        rich_help_panel=PANEL,
    ),
]
Conf: TypeAlias = Annotated[
    list[str],
    typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark.", rich_help_panel=PANEL),
]
SparkLog: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Keep what Spark says; it is thrown away otherwise.", rich_help_panel=PANEL
    ),
]


@contextmanager
def spark_for(
    name: str, master: str | None, conf: Sequence[str], log: Path | None, *, kafka: bool = False
) -> Iterator[Any]:
    """A session as the flags have it."""
    from restow.pipeline.session import conf_from, session

    with session(name, master=master, conf=conf_from(conf), kafka=kafka, log=log) as spark:
        yield spark
