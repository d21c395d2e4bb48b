"""The tables as a Spark declarative pipeline: what its definitions call.

    samples of a lake ─► the jobs of `restow pipeline run` ─► <table>_looked_at ─┬─► <table>
             └───────────────────────────────────────────────────────────────────┴─► checks

Spark forbids every look at a lake or a schema in the functions that define a table. So samples are looked up
before, and rates and model, whose workers need a schema, are both put together from samples. What reads a
table of the pipeline does without `withColumn`, `drop` and `distinct`: Spark looks at a schema for them.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from restow.pipeline.declaring import Declaration
from restow.pipeline.expectations import WHY, by_reason, flagged
from restow.pipeline.jobs.forecast import ForecastLimits
from restow.pipeline.jobs.model import model_of_samples
from restow.pipeline.jobs.rates import Windows
from restow.pipeline.lake import Lake
from restow.pipeline.schemas import CLUSTER, SAMPLED, table
from restow.pipeline.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Declaration", "define"]

_CHECKS = "checks"


class _DeclaredWork(Work):
    """The jobs on a lake's samples and on the pipeline's tables."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake)
        self._few_leaders = True  # nothing may be asked while a pipeline is loaded
        self._read = {each.name: lake.read(each.name, distinct=False) for each in SAMPLED}

    def all_samples(
        self,
        name: str,
        *,
        distinct: bool = True,
        days: Iterable[date] | None = None,  # noqa: ARG002 (all days are read)
    ) -> DataFrame:
        rows = self._read[name]
        return rows.dropDuplicates([*table(name).identity]) if distinct else rows

    def newest(self, name: str, *, distinct: bool = False) -> DataFrame:
        return self.samples(name, distinct=distinct)

    def made(self, name: str) -> DataFrame:
        return self.lake.spark.table(name)


def define(spark: SparkSession, about: Declaration) -> None:
    """Define the tables of the pipeline that is being loaded."""
    from pyspark import pipelines  # not in Spark 4.0

    declared: Any = pipelines
    work = _DeclaredWork(Lake(spark, about.lake))
    windows = Windows(seconds=about.window_s)
    names = ("replicas", "assignment", "offsets", "groups")
    replicas, assignment, offsets, groups = (work.samples(name, distinct=False) for name in names)
    rates, model = work.rates(windows), model_of_samples(replicas, assignment, offsets, groups, windows)
    jobs: dict[str, Callable[[], DataFrame]] = {
        "rates": lambda: rates,
        **dict(work.jobs(ForecastLimits(fill=about.fill, rates=dict(about.limit)))),
        "model": lambda: model,
    }
    for name, make in jobs.items():
        looked_at = declared.materialized_view(name=_looked_at(name), partition_cols=[CLUSTER])
        looked_at(partial(_with_reasons, make, name))
        good = declared.materialized_view(name=name, partition_cols=[CLUSTER])
        good(partial(_good, spark, name))
    declared.materialized_view(name=_CHECKS)(partial(_checks, work, tuple(jobs)))


def _looked_at(name: str) -> str:
    return f"{name}_looked_at"


def _with_reasons(make: Callable[[], DataFrame], name: str) -> DataFrame:
    return flagged(make(), table(name)).select(*_in_order(name), WHY, CLUSTER)


def _good(spark: SparkSession, name: str) -> DataFrame:
    return spark.table(_looked_at(name)).where(f"{WHY} is null").select(*_in_order(name), CLUSTER)


def _in_order(name: str) -> list[str]:
    """Return the columns but for that of partitions, which a table of Spark has last."""
    return [each for each in table(name).names if each != CLUSTER]


def _checks(work: _DeclaredWork, made: tuple[str, ...]) -> DataFrame:
    """Count rows by the reason why they are left out."""
    rows = {each.name: flagged(work.all_samples(each.name, distinct=False), each) for each in SAMPLED}
    rows |= {name: work.made(_looked_at(name)) for name in made}
    counted = [by_reason(each, table(name)) for name, each in rows.items()]
    return reduce(lambda one, other: one.unionByName(other), counted)
