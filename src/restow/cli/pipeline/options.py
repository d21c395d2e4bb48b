"""The options that pipeline commands share: the lake, Spark, the range of samples, and the output."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from restow.cli.shared.frame import Answer
    from restow.pipeline.lake import Lake
    from restow.pipeline.work import Scope


SPARK = "Spark"

Master: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="RESTOW_SPARK_MASTER",
        help="Spark's master: local[N], spark://…, yarn, k8s://…. Default: all cores of this machine.",
        rich_help_panel=SPARK,
    ),
]
Conf: TypeAlias = Annotated[
    list[str],
    typer.Option("--conf", metavar="NAME=VALUE", help="Set a Spark property.", rich_help_panel=SPARK),
]
SparkLog: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write Spark's log to this file. Default: discard it.", rich_help_panel=SPARK
    ),
]


@contextmanager
def spark_for(
    name: str, master: str | None, conf: Sequence[str], log: Path | None, *, kafka: bool = False
) -> Iterator[Any]:
    """Start a Spark session with the flags' settings."""
    from restow.pipeline.session import conf_from, session

    with session(name, master=master, conf=conf_from(conf), kafka=kafka, log=log) as spark:
        yield spark


SCOPE, OUTPUT = "Which samples", "Output"
FORMATS = ("parquet", "csv", "json")
_EVERY_S = 0.3

LakeFolder: TypeAlias = Annotated[
    str,
    typer.Option(
        "--lake",
        metavar="DIR",
        envvar="RESTOW_LAKE",
        help="The lake: a folder, or any path that Spark reads.",
    ),
]
Clusters: TypeAlias = Annotated[
    list[str],
    typer.Option("--cluster", metavar="ID", help="Only this cluster; repeatable.", rich_help_panel=SCOPE),
]
Since: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="TIME|7d", help="Only samples since 2026-11-01T00:00, or of 7d.", rich_help_panel=SCOPE
    ),
]
Until: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TIME|1h", help="Only samples before this time.", rich_help_panel=SCOPE)
]
Out: TypeAlias = Annotated[
    str | None,
    typer.Option("--out", "-o", metavar="DIR", help="Also write all rows here.", rich_help_panel=OUTPUT),
]
Format: TypeAlias = Annotated[
    str, typer.Option(metavar="|".join(FORMATS), help="Format of --out.", rich_help_panel=OUTPUT)
]
Rows: TypeAlias = Annotated[
    int, typer.Option(min=1, max=10_000, help="Show this many rows.", rich_help_panel=OUTPUT)
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON instead of tables.", rich_help_panel=OUTPUT)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """The values of the shared options."""

    lake: str
    master: str | None
    conf: list[str]
    spark_log: Path | None = None
    cluster: list[str] = field(default_factory=list)
    since: str | None = None
    until: str | None = None
    out: str | None = None
    format: str = FORMATS[0]
    rows: int = 0
    as_json: bool = False

    def scope(self) -> Scope:
        """Return the range of samples, checked."""
        from restow.pipeline.work import Scope

        since, until = _moment(self.since, "--since"), _moment(self.until, "--until")
        if since is not None and until is not None and since >= until:
            raise InvalidInput(f"--since {self.since} is not before --until {self.until}")
        return Scope(clusters=tuple(self.cluster) or None, since=since, until=until)


def _shared(
    lake: LakeFolder,
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    spark_log: SparkLog = None,
    cluster: Clusters = [],  # noqa: B006
    since: Since = None,
    until: Until = None,
    out: Out = None,
    format: Format = "parquet",  # noqa: A002
    rows: Rows = 20,
    as_json: AsJson = False,
) -> None:
    """Declare the options that all pipeline commands share."""


def on_lake(work: Callable[..., Answer]) -> Callable[..., Answer]:
    """Turn a function of the shared options and its own arguments into a command."""
    _, *own = signature(work, eval_str=True).parameters.values()
    shared = signature(_shared, eval_str=True).parameters

    def command(**values: Any) -> Answer:
        options = PipelineOptions(**{name: values.pop(name) for name in shared})
        if options.format not in FORMATS:
            raise InvalidInput(f"--format {options.format!r} cannot be: choose one of {', '.join(FORMATS)}")
        return work(options, **values)

    parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in (*own, *shared.values())]
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


@contextmanager
def opened(name: str, options: PipelineOptions) -> Iterator[Lake]:
    """Open the lake with a Spark session for this block; show Spark's progress on a terminal."""
    from restow.pipeline.lake import Lake

    with spark_for(name, options.master, options.conf, options.spark_log) as spark:
        lake = Lake(spark, options.lake)
        with _watched(spark, quiet=options.as_json or not sys.stderr.isatty()):
            yield lake


@contextmanager
def _watched(spark: Any, *, quiet: bool) -> Iterator[None]:
    """Show stages and rows in one line on stderr, and erase it at the end."""
    if quiet:
        yield
        return
    from restow.pipeline.session import SparkProgress

    done = threading.Event()
    progress = SparkProgress(spark)

    def watch() -> None:
        while not done.wait(_EVERY_S):
            sys.stderr.write(f"\r\x1b[2K{_line(progress.standing())}")
            sys.stderr.flush()
        sys.stderr.write("\r\x1b[2K")

    watcher = threading.Thread(target=watch, name="restow-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _line(standing: Any) -> str:
    now = ", ".join(f"stage {each.number} {each.tasks_done}/{each.tasks}" for each in standing.stages[:3])
    return f"{standing.stages_done} stages done, {standing.rows:,} rows read" + (f"; {now}" if now else "")


def _moment(text: str | None, flag: str) -> datetime | None:
    """Parse a time in UTC, or a period before now."""
    if text is None:
        return None
    from datetime import UTC, datetime

    from restow.runtime.clock import SystemClock
    from restow.sizes import milliseconds

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        ago_ms = milliseconds(text, flag)
        return datetime.fromtimestamp((SystemClock().now_ms() - ago_ms) / 1000, UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def documents(frame: Any, most: int | None = None) -> list[dict[str, Any]]:
    """Return at most `most` rows for the table or for JSON, never all of a large table."""
    rows = frame.collect() if most is None else frame.limit(most).collect()
    return [row.asDict(recursive=True) for row in rows]


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with times as text."""
    return [
        {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}
        for row in rows
    ]


def save(frame: Any, options: PipelineOptions) -> None:
    """Write all rows to `--out`, one file per Spark task."""
    from restow.cli.shared.frame import console

    if options.out is None:
        return
    writer = frame.write.mode("error")
    if options.format == "csv":
        writer = writer.option("header", "true")
    getattr(writer, options.format)(options.out)
    if not options.as_json:
        console().print(f"All rows are in {options.out}.", style="dim")
