"""What the commands of the pipeline have in common: the lake, Spark, which samples, and where answers go."""

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
        help="local[N], spark://…, yarn, k8s://…; all cores of this machine if not given.",
        rich_help_panel=SPARK,
    ),
]
Conf: TypeAlias = Annotated[
    list[str],
    typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark.", rich_help_panel=SPARK),
]
SparkLog: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Keep what Spark says; it is thrown away otherwise.", rich_help_panel=SPARK
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
        metavar="TIME|7d", help="Samples from then on, or of the last so long.", rich_help_panel=SCOPE
    ),
]
Until: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TIME|1h", help="Samples before then.", rich_help_panel=SCOPE)
]
Out: TypeAlias = Annotated[
    str | None,
    typer.Option("--out", "-o", metavar="DIR", help="Write all rows there too.", rich_help_panel=OUTPUT),
]
Format: TypeAlias = Annotated[
    str, typer.Option(metavar="|".join(FORMATS), help="What --out writes.", rich_help_panel=OUTPUT)
]
Rows: TypeAlias = Annotated[
    int, typer.Option(min=1, max=10_000, help="Show so many rows.", rich_help_panel=OUTPUT)
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="One JSON document instead of tables.", rich_help_panel=OUTPUT)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """The shared options as they were given."""

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
        """Which samples, checked."""
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
    """Nothing but the options that all of these commands have."""


def on_lake(work: Callable[..., Answer]) -> Callable[..., Answer]:
    """A command of a function that takes the options and then its own arguments."""
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
    """The lake, with Spark under it, for as long as the block lasts; a terminal sees how far Spark is."""
    from restow.pipeline.lake import Lake

    with spark_for(name, options.master, options.conf, options.spark_log) as spark:
        lake = Lake(spark, options.lake)
        with _watched(spark, quiet=options.as_json or not sys.stderr.isatty()):
            yield lake


@contextmanager
def _watched(spark: Any, *, quiet: bool) -> Iterator[None]:
    """One line on stderr with stages and rows, gone when the work is done."""
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
    """A time in UTC, or so long ago."""
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
    """Rows for people and for JSON: as many as are shown, never all of a large table."""
    rows = frame.collect() if most is None else frame.limit(most).collect()
    return [row.asDict(recursive=True) for row in rows]


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with times as text."""
    return [
        {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}
        for row in rows
    ]


def save(frame: Any, options: PipelineOptions) -> None:
    """All rows where `--out` says, each task its own file."""
    from restow.cli.shared.frame import console

    if options.out is None:
        return
    writer = frame.write.mode("error")
    if options.format == "csv":
        writer = writer.option("header", "true")
    getattr(writer, options.format)(options.out)
    if not options.as_json:
        console().print(f"All rows are in {options.out}.", style="dim")
