"""The load model: each partition's load, from its rates by hour of the week.

Each of the week's 168 hours counts once, however often it was sampled, so that a night with many samples does
not hide a day with few:

- mean: the mean over the hours of the week
- p95: 95% of the hours of the week have no busier window than this
- peak: the busiest window
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from restow.model.load import WEEK_HOURS
from restow.pipeline.jobs.leadership import PARTITION, current
from restow.pipeline.schemas import AT, Table, columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TABLE = Table(
    name="model",
    key=PARTITION,
    sampled=False,
    columns=columns(
        "cluster string, topic string, partition int, size bigint?, growth double?",
        "messages_in_mean double?, bytes_in_mean double?, bytes_in_p95 double?, bytes_in_peak double?",
        "bytes_out_mean double?, bytes_out_p95 double?, bytes_out_peak double?, samples bigint, hours int",
        "first timestamp?, last timestamp?, confidence double",
    ),
)
"""Sizes in bytes, rates per second, growth in bytes per day. `hours` counts the sampled hours of the week.

`confidence` is the sampled part of the week, times the part of the time between the first and the last sample
that counts: 1 after a week without gaps.
"""

_MEANS, _PEAKS = ("messages_in", "bytes_in", "bytes_out"), ("bytes_in", "bytes_out")
_DAY_S, _HOUR_S = 86_400, 3_600
_ORIGIN_S = 1_767_225_600
"""The beginning of 2026. Times count from here, because squares of larger numbers would lose precision."""
_MONDAY_H = 72
"""The hour of the week in which 1970 began: Thursday, midnight."""


def model(rates: DataFrame, assignment: DataFrame) -> DataFrame:
    """Return one row per existing partition; without samples its values are null."""
    by_hour = rates.groupBy(*PARTITION, hour_of_week().alias("hour")).agg(*_of_an_hour())
    known = by_hour.groupBy(*PARTITION).agg(*_of_a_week())
    there = current(assignment.select(*PARTITION, AT)).select(*PARTITION).distinct()
    complete = there.join(known, on=[*PARTITION], how="left")
    return complete.select(*(_column(name) for name in TABLE.names))


def hour_of_week() -> Column:
    """Return the hour of the week, counted from Monday midnight."""
    hours = f.floor(f.unix_seconds(AT) / _HOUR_S)
    return f.pmod(hours + _MONDAY_H, f.lit(WEEK_HOURS))


def _of_an_hour() -> list[Column]:
    """Return sums that can be merged, because a regression cannot."""
    days = (f.unix_seconds(AT) - _ORIGIN_S) / _DAY_S
    size = f.col("size").cast("double")
    day = f.when(size.isNotNull(), days)
    return [
        *(mean_rate(name).alias(f"{name}_mean") for name in _MEANS),
        *(f.max(name).alias(f"{name}_peak") for name in _PEAKS),
        f.sum("samples").alias("samples"),
        f.sum("seconds").alias("seconds"),
        f.min(AT).alias("first"),
        f.max(AT).alias("last"),
        f.max_by("size", f.when(size.isNotNull(), f.col(AT))).alias("size"),
        f.count("size").alias("sizes"),
        f.sum(day).alias("x"),
        f.sum(size).alias("y"),
        f.sum(day * day).alias("xx"),
        f.sum(day * size).alias("xy"),
    ]


def mean_rate(name: str) -> Column:
    """Return the mean, weighted by the time for which the rate is known."""
    known = f.sum(f.when(f.col(name).isNotNull(), f.col("seconds")))
    return f.when(known > 0, f.sum(f.col(name) * f.col("seconds")) / known)


def _of_a_week() -> list[Column]:
    spread = f.sum("xx") - f.sum("x") * f.sum("x") / f.sum("sizes")
    together = f.sum("xy") - f.sum("x") * f.sum("y") / f.sum("sizes")
    return [
        *(f.avg(f"{name}_mean").alias(f"{name}_mean") for name in _MEANS),
        *(f.percentile(f"{name}_peak", 0.95).alias(f"{name}_p95") for name in _PEAKS),
        *(f.max(f"{name}_peak").alias(f"{name}_peak") for name in _PEAKS),
        f.max_by("size", f.when(f.col("size").isNotNull(), f.col("last"))).alias("size"),
        f.when(spread > 1e-9, together / spread).alias("growth"),
        f.sum("samples").alias("samples"),
        f.sum("seconds").alias("seconds"),
        f.count(f.when(f.col("seconds") > 0, 1)).cast("int").alias("hours"),
        f.min("first").alias("first"),
        f.max("last").alias("last"),
    ]


def _column(name: str) -> Column:
    span_s = f.unix_seconds("last") - f.unix_seconds("first")
    counted = f.when(span_s > 0, f.least(f.lit(1.0), f.col("seconds") / span_s)).otherwise(1.0)
    made = {
        "samples": f.coalesce("samples", f.lit(0)).cast("bigint"),
        "hours": f.coalesce("hours", f.lit(0)),
        "confidence": f.coalesce(f.col("hours") / WEEK_HOURS * counted, f.lit(0.0)),
    }
    return made.get(name, f.col(name)).alias(name)
