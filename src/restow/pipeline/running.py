"""From the samples in a lake to tables, load models and a report: what `restow pipeline run` does."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.sizes import milliseconds
from restow.text_files import write_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from os import PathLike

    from pyspark.sql import SparkSession

    from restow.pipeline.expectations import Checked
    from restow.pipeline.jobs.forecast import ForecastLimits
    from restow.pipeline.work import Work

STATISTICS = ("mean", "p95", "peak")


@frozen
class PipelineRun:
    """The results of a run of the pipeline."""

    tables: tuple[str, ...]
    """Tables that were made; they are in the lake now, unless it was read as of a time."""
    loads: tuple[str, ...]
    """Files of load models, one for each cluster; `restow.plan(…, load=…)` reads them."""
    without_load: int
    """Partitions whose load is not known, which counts as 0."""
    report: str | None
    checked: tuple[Checked, ...] = ()
    """What was found in each table, and which rows were left out."""


def pipeline(
    lake: str | PathLike[str],
    *,
    spark: SparkSession | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    cluster: Iterable[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    as_of: datetime | str | None = None,
    window: str = "5m",
    load: str | PathLike[str] | None = None,
    statistic: str = "mean",
    fill: float = 0.9,
    limit: Mapping[str, float] | None = None,
    report: str | PathLike[str] | None = None,
    incremental: bool = False,
) -> PipelineRun:
    """Make rates, the load model, skew, the forecast and alerts from the samples in a lake.

        done = restow.pipeline("samples", load="loads", report="report.html")
        plan = restow.plan(snapshot, balance=True, load=done.loads[0])

    The arguments mean what the flags of `restow pipeline run` mean. `spark` is a session of yours; without
    one, a session is started with `master` and `conf`, and stopped at the end. `limit` is what a broker can
    carry in bytes per second: `{"bytes_in": 100e6}`. Needs `restow[spark]` and Java.
    """
    from restow.pipeline.jobs.forecast import ForecastLimits
    from restow.pipeline.lake import Lake
    from restow.pipeline.session import session
    from restow.pipeline.work import Scope, Work

    scope = Scope(clusters=tuple(cluster) or None, since=since, until=until)
    with ExitStack() as stack:
        if spark is None:
            spark = stack.enter_context(
                session("pipeline", master=master, conf=conf, lakes=[str(lake)], quick=True)
            )
        return make_tables(
            Work(Lake(spark, str(lake), as_of=as_of), scope),
            window=window,
            limits=ForecastLimits(fill=fill, rates=dict(limit or {})),
            load=None if load is None else str(load),
            statistic=statistic,
            report=None if report is None else str(report),
            incremental=incremental,
        )


def make_tables(
    work: Work,
    *,
    window: str,
    limits: ForecastLimits,
    load: str | None,
    statistic: str,
    report: str | None,
    incremental: bool = False,
) -> PipelineRun:
    """Run the jobs one after the other, then write the load models and the report.

    `incremental` computes only the rates that have changed since the last incremental run.
    """
    from restow.pipeline.jobs.rates import Windows
    from restow.pipeline.keeping import Keeper
    from restow.pipeline.load_files import without_load, write_load
    from restow.runtime.clock import SystemClock

    check_statistic(statistic)
    windows = Windows(seconds=max(1, milliseconds(window, "--window") // 1000))
    if incremental and (work.scope.clusters or work.scope.since or work.scope.until):
        raise InvalidInput("an incremental run takes all samples: leave out --cluster, --since and --until")
    with ExitStack() as held:
        if incremental:
            keeper = Keeper(work.lake, windows)
            held.enter_context(keeper.held())
            work.check()
            done = keeper.round()
            work.checked += done.checked
            work.kept = keeper.sums(done.record)
            tables = ("rates", *work.derive(limits))
        else:
            if work.lake.is_in_folders:
                held.enter_context(Keeper(work.lake, windows).held())
            tables = tuple(work.run(windows, limits))
    loads: list[str] = []
    if load is not None:
        made_ms = SystemClock().now_ms()
        loads = write_load(work.loads(windows), load, made_ms=made_ms, statistic=statistic)
    unknown = without_load(work.made("model"), statistic) if loads else 0
    if report is not None:
        _write_report(work, report)
    return PipelineRun(
        tables=tables,
        loads=tuple(loads),
        without_load=unknown,
        report=report,
        checked=tuple(work.checked),
    )


def check_statistic(name: str) -> None:
    """Refuse a statistic that the load model does not have."""
    if name not in STATISTICS:
        raise InvalidInput(f"--statistic {name!r} cannot be: choose one of {', '.join(STATISTICS)}")


def _write_report(work: Work, path: str) -> None:
    from restow.html.page import page
    from restow.pipeline.report import gather, report_of

    found = gather(work)
    write_text(path, page(report_of(found, title="What the clusters carry", lead=f"From {work.lake.path}")))
