"""Forecast: when each log dir is full and when each broker passes a limit, with a band.

The job fits a straight line through hourly means, so that neither a burst nor frequent samples weigh too
much. The line starts at the present value; the band covers slopes within two standard errors. Each missing
time has a reason beside it.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from restow._frozen import frozen
from restow.pipeline.jobs.leadership import PARTITION, current
from restow.pipeline.schemas import AT, CLUSTER, Table, columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

TABLE = Table(
    name="forecast",
    key=(CLUSTER, "measure", "broker", "log_dir"),
    sampled=False,
    columns=columns(
        "cluster string, measure string, broker int, log_dir string?, limit double?, now double?",
        "growth double?, error double?, hours bigint, last timestamp, passes timestamp?, soonest timestamp?",
        "latest timestamp?, why string?, why_soonest string?, why_latest string?",
    ),
)
"""`growth` is per day, `error` its standard error. A limit that is exceeded now counts as passed at the last
sample. Where `passes`, `soonest` or `latest` is null, `why`, `why_soonest` or `why_latest` has the reason."""

_NO_CAPACITY = "its broker does not tell the size of the disk, as Kafka does from 3.3 on"
_CENTURY_DAYS = 36_525.0
_HOUR_S, _DAY_S, _BAND = 3_600, 86_400, 2.0
_SERIES = (CLUSTER, "measure", "broker", "log_dir")


@frozen
class ForecastLimits:
    """How full a log dir may become, and the most bytes per second of each rate for a broker."""

    fill: float = 0.9
    rates: Mapping[str, float] = field(default_factory=dict)


def forecast(
    disks: DataFrame,
    rates: DataFrame,
    assignment: DataFrame,
    limits: ForecastLimits = ForecastLimits(),  # noqa: B008 (frozen)
) -> DataFrame:
    """Return one row per log dir, and one per broker and limited rate: `bytes_in`, `bytes_out`."""
    readings = _disk_readings(disks, limits.fill)
    for measure, limit in limits.rates.items():
        readings = readings.unionByName(_broker_readings(rates, assignment, measure, limit))
    hour = f.floor(f.unix_seconds(AT) / _HOUR_S)
    by_hour = readings.groupBy(*_SERIES, hour.alias("hour")).agg(
        f.avg("value").alias("value"),
        f.max_by("limit", f.when(f.col("limit").isNotNull(), f.col(AT))).alias("limit"),
        f.max(AT).alias("last"),
        f.max_by("value", f.when(f.col("value").isNotNull(), f.col(AT))).alias("now"),
        f.max_by("problem", AT).alias("problem"),
    )
    lines = by_hour.groupBy(*_SERIES).agg(*_line())
    return lines.select(*(_column(name) for name in TABLE.names))


def _disk_readings(disks: DataFrame, fill: float) -> DataFrame:
    """Return all readings of log dirs, and one row for every broker that never reported any."""
    named = disks.where(f.col("log_dir").isNotNull())
    silent = disks.where(f.col("log_dir").isNull()).join(
        f.broadcast(named.select(CLUSTER, "broker").distinct()), [CLUSTER, "broker"], "left_anti"
    )
    known = f.col("usable").isNotNull() & (f.col("total") > 0)
    return named.unionByName(silent).select(
        CLUSTER,
        f.lit("disk").alias("measure"),
        "broker",
        "log_dir",
        AT,
        f.when(known, (f.col("total") - f.col("usable")).cast("double")).alias("value"),
        f.when(known, f.col("total") * fill).alias("limit"),
        f.col("error").alias("problem"),
    )


def _broker_readings(rates: DataFrame, assignment: DataFrame, measure: str, limit: float) -> DataFrame:
    """Return the hourly load of brokers, computed for the current assignment.

    An hour with unknown rates would look calm: a partition without a rate in an hour in which others have one
    gets the mean of its hours.
    """
    hour = (f.floor(f.unix_seconds(AT) / _HOUR_S) * _HOUR_S).alias("hour_s")
    known = rates.where(f.col(measure).isNotNull())
    by_hour = known.groupBy(*PARTITION, hour).agg(f.avg(measure).alias("value"))
    usual = by_hour.groupBy(*PARTITION).agg(f.avg("value").alias("usual"))
    hours = by_hour.groupBy(CLUSTER, "hour_s").agg(f.count("*")).select(CLUSTER, "hour_s")
    whole = (
        usual.join(f.broadcast(hours), CLUSTER)
        .join(by_hour, [*PARTITION, "hour_s"], "left")
        .select(*PARTITION, "hour_s", f.coalesce("value", "usual").alias("value"))
    )
    carriers = f.array("leader") if measure == "bytes_out" else f.array_distinct("replicas")
    now = (
        current(assignment)
        .select(*PARTITION, f.explode(carriers).alias("broker"))
        .where("broker >= 0")
        .distinct()
    )
    carried = (
        whole.join(now, [*PARTITION]).groupBy(CLUSTER, "broker", "hour_s").agg(f.sum("value").alias("value"))
    )
    return carried.select(
        CLUSTER,
        f.lit(measure).alias("measure"),
        "broker",
        f.lit(None).cast("string").alias("log_dir"),
        f.timestamp_seconds("hour_s").alias(AT),
        "value",
        f.lit(float(limit)).alias("limit"),
        f.lit(None).cast("string").alias("problem"),
    )


def _line() -> list[Column]:
    day = f.col("hour") * (_HOUR_S / _DAY_S)
    value = f.col("value")
    left = f.regr_syy(value, day) - f.regr_sxy(value, day) * f.regr_sxy(value, day) / f.regr_sxx(value, day)
    count = f.regr_count(value, day)
    return [
        f.max_by("limit", f.when(f.col("limit").isNotNull(), f.col("hour"))).alias("limit"),
        f.max_by("now", f.when(f.col("now").isNotNull(), f.col("hour"))).alias("now"),
        f.max_by("problem", "hour").alias("problem"),
        f.max("last").alias("last"),
        count.alias("hours"),
        f.regr_slope(value, day).alias("growth"),
        f.when(count > 2, f.sqrt(f.greatest(left, f.lit(0.0)) / (count - 2) / f.regr_sxx(value, day))).alias(
            "error"
        ),
    ]


def _column(name: str) -> Column:
    growth, band = f.col("growth"), _BAND * f.col("error")
    made = {
        "passes": _passed(growth),
        "soonest": _passed(growth + band),
        "latest": _passed(growth - band),
        "why": _why(growth, 2),
        "why_soonest": _why(growth + band, 3),
        "why_latest": _why(growth - band, 3),
    }
    return made.get(name, f.col(name)).alias(name)


def _passed(growth: Column) -> Column:
    """Return when a line from the present value passes the limit."""
    left = f.col("limit") - f.col("now")
    days = f.when(left <= 0, 0.0).when(growth > 0, left / growth)
    seconds = f.unix_seconds("last") + f.round(days * _DAY_S).cast("bigint")
    return f.when(days <= _CENTURY_DAYS, f.timestamp_seconds(seconds))


def _why(growth: Column, hours: int) -> Column:
    """Return why a line of this growth, fitted with at least `hours` hours, never passes the limit."""
    reason = (
        f.when(f.col("limit").isNull(), f.coalesce("problem", f.lit(_NO_CAPACITY)))
        .when(f.col("hours") < hours, f.format_string(f"seen in %d of {hours} hours needed", "hours"))
        .when(growth == 0, f.lit("it does not grow"))
        .when(growth < 0, f.lit("it shrinks"))
        .otherwise(f.lit("more than a century away"))
    )
    return f.when(_passed(growth).isNull(), reason)
