"""The options that pipeline commands share: the lake, Spark, the range of samples, and the output."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from restow.cli.shared.frame import Answer, console
from restow.cli.shared.options import section
from restow.errors import InvalidInput
from restow.sizes import milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from rich.console import Console

    from restow.pipeline.lake import Lake
    from restow.pipeline.work import Scope, Work

_SCOPE, _OUTPUT = "Which samples", "Output"
_FORMATS = ("parquet", "csv", "json")
_EVERY_S = 0.3

LakeFolder: TypeAlias = Annotated[
    str,
    typer.Option(
        "--lake",
        metavar="PLACE",
        envvar="RESTOW_LAKE",
        help="The lake: a folder or any path that Spark reads, iceberg:CATALOG.DATABASE or delta:PATH.",
    ),
]
Clusters: TypeAlias = Annotated[
    list[str],
    typer.Option("--cluster", metavar="ID", help="Only this cluster; repeatable.", rich_help_panel=_SCOPE),
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON instead of tables.", rich_help_panel=_OUTPUT)
]


@section("Spark")
class SparkOptions:
    """Where Spark runs, and how."""

    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="RESTOW_SPARK_MASTER",
            help="Spark's master: local[N], spark://…, yarn, k8s://…, or sc://… for a Connect server. "
            "Default: all cores of this machine.",
        ),
    ] = None
    conf: Annotated[list[str], typer.Option(metavar="NAME=VALUE", help="Set a Spark property.")] = field(
        default_factory=list
    )
    spark_log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write Spark's log to this file. Default: discard it.")
    ] = None


@contextmanager
def spark_for(
    name: str,
    options: SparkOptions,
    *,
    kafka: bool = False,
    lakes: Sequence[str] = (),
    quick: bool = False,
) -> Iterator[Any]:
    """Start a Spark session with the flags' settings, as `session` does."""
    from restow.pipeline.session import conf_from, session

    conf, log = conf_from(options.conf), options.spark_log
    with session(
        name, master=options.master, conf=conf, kafka=kafka, log=log, lakes=lakes, quick=quick
    ) as spark:
        yield spark


@contextmanager
def watched_spark(
    name: str, options: SparkOptions, *, as_json: bool, lakes: Sequence[str] = (), quick: bool = False
) -> Iterator[Any]:
    """Start a Spark session for this block; show its progress on a terminal."""
    quiet = as_json or not sys.stderr.isatty()
    with spark_for(name, options, lakes=lakes, quick=quick) as spark, _watched(spark, quiet=quiet):
        yield spark


@contextmanager
def opened(
    name: str,
    place: str,
    options: SparkOptions,
    *,
    as_json: bool,
    imports: bool = False,
    as_of: datetime | str | None = None,
) -> Iterator[Lake]:
    """Open the lake with a Spark session for this block; show Spark's progress on a terminal.

    A command that imports other files reads more than the lake.
    """
    from restow.pipeline.lake import Lake

    with watched_spark(name, options, as_json=as_json, lakes=[place], quick=not imports) as spark:
        yield Lake(spark, place, as_of=as_of)


@section(_SCOPE)
class SampleRange:
    """The clusters and the period whose samples count."""

    cluster: Clusters = field(default_factory=list)
    since: Annotated[
        str | None, typer.Option(metavar="TIME|7d", help="Only samples since 2026-11-01T00:00, or of 7d.")
    ] = None
    until: Annotated[str | None, typer.Option(metavar="TIME|1h", help="Only samples before this time.")] = (
        None
    )
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|1h|TABLE@N",
            help="The Iceberg or Delta lake as it was at this time or snapshot. Nothing is written to it.",
        ),
    ] = None

    def scope(self) -> Scope:
        from restow.pipeline.work import Scope

        since, until = _moment(self.since, "--since"), _moment(self.until, "--until")
        if since is not None and until is not None and since >= until:
            raise InvalidInput(f"--since {self.since} is not before --until {self.until}")
        return Scope(clusters=tuple(self.cluster) or None, since=since, until=until)

    def moment(self) -> datetime | str | None:
        """Return the time of `--as-of`, or the name of its snapshot."""
        named = self.as_of is not None and "@" in self.as_of
        return self.as_of if named else _moment(self.as_of, "--as-of")


@section(_OUTPUT)
class TableOutput:
    """What a command shows of a table, and where it writes the whole of it."""

    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="DIR", help="Also write all rows here.")
    ] = None
    format: Annotated[str, typer.Option(metavar="|".join(_FORMATS), help="Format of --out.")] = _FORMATS[0]
    rows: Annotated[int, typer.Option(min=1, max=10_000, help="Show this many rows.")] = 20
    as_json: AsJson = False

    def __post_init__(self) -> None:
        if self.format not in _FORMATS:
            raise InvalidInput(f"--format {self.format!r} cannot be: choose one of {', '.join(_FORMATS)}")

    def save(self, frame: Any) -> None:
        """Write all rows to `--out`, one file per Spark task."""
        if self.out is None:
            return
        writer = frame.write.mode("error")
        if self.format == "csv":
            writer = writer.option("header", "true")
        getattr(writer, self.format)(self.out)
        if not self.as_json:
            console().print(f"All rows are in {self.out}.", style="dim")

    def first_rows(self, frame: Any) -> list[dict[str, Any]]:
        """Return the rows to show, never all of a large table."""
        return documents(frame.limit(self.rows))

    def answer(
        self, name: str, rows: list[dict[str, Any]], draw: Callable[[Console, list[dict[str, Any]]], None]
    ) -> Answer:
        return Answer(
            document=lambda: {name: plain(rows)},
            draw=lambda console: draw(console, rows),
            as_json=self.as_json,
        )


@section()
class PipelineOptions:
    """The options of a pipeline command."""

    lake: LakeFolder
    spark: SparkOptions
    range: SampleRange
    output: TableOutput

    @contextmanager
    def work(self, name: str) -> Iterator[Work]:
        """Open the lake for this block, to compute tables from the samples in the range."""
        from restow.pipeline.work import Work

        scope, as_of = self.range.scope(), self.range.moment()
        as_json = self.output.as_json
        with opened(name, self.lake, self.spark, as_json=as_json, as_of=as_of) as lake:
            yield Work(lake, scope)


@contextmanager
def _watched(spark: Any, *, quiet: bool) -> Iterator[None]:
    """Show stages and rows in one line on stderr, and erase it at the end."""
    if quiet:
        yield
        return
    from restow.pipeline.progress import SparkProgress

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
    return f"{standing.stages_done} stages done" + (f"; {now}" if now else "")


def _moment(text: str | None, flag: str) -> datetime | None:
    """Parse a time in UTC, or a period before now."""
    if text is None:
        return None
    from datetime import UTC, datetime

    from restow.runtime.clock import SystemClock

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        ago_ms = milliseconds(text, flag)
        return datetime.fromtimestamp((SystemClock().now_ms() - ago_ms) / 1000, UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def documents(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a small table."""
    return [row.asDict(recursive=True) for row in frame.collect()]


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with times as text."""
    return [
        {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}
        for row in rows
    ]
