"""Alerts: what somebody should look at now or soon, from what the other jobs have found.

    partitions offline, under-replicated    from assignment: they have no leader, or lack a replica in sync
    broker silent                           from disks: its newest answer is an error, without any log dir
    limit passed, limit near                from forecast: it is passed, or the line passes it within a week
    out of band                             from skew: a broker has more than its share and a goal's band
    load unknown                            from model: the planner counts unknown loads as 0

"Within a week" counts from the last sample, not from now: the same samples make the same alerts.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from restow.model.load import BYTES_IN, BYTES_OUT
from restow.pipeline.jobs.leadership import current, newest
from restow.pipeline.schemas import CLUSTER, Table, columns
from restow.plan.goals import DEFAULT_BAND

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TABLE = Table(
    name="alerts",
    key=(CLUSTER, "kind", "subject", "measure"),
    sampled=False,
    columns=columns(
        "cluster string, kind string, subject string, measure string, severity string, value double?",
        "limit double?, passes timestamp?, says string",
    ),
)
"""`severity` is `critical` (now) or `warning`. `value` and `limit` are in units of the measure."""

CRITICAL, WARNING = "critical", "warning"
_SOON_DAYS = 7
_BANDED = ("size", "bytes_in", "bytes_out", "leaders")


def alerts(
    assignment: DataFrame, disks: DataFrame, model: DataFrame, skew: DataFrame, forecast: DataFrame
) -> DataFrame:
    """Return one row for each thing to look at."""
    parts = (
        *_replicas_missing(assignment),
        _silent(disks),
        _limits(forecast),
        _out_of_band(skew),
        _unknown(model),
    )
    return reduce(lambda one, other: one.unionByName(other), parts)


def most_severe_first(rows: DataFrame) -> DataFrame:
    """Return the rows in order: critical ones first, of these what passes its limit first."""
    return rows.orderBy("severity", f.asc_nulls_last("passes"), CLUSTER, "kind", "subject", "measure")


def _replicas_missing(assignment: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return a row per topic with partitions that are offline, and with ones that lack a replica."""
    now = current(assignment).dropDuplicates([CLUSTER, "topic", "partition"]).groupBy(CLUSTER, "topic")
    offline = f.col("leader") < 0
    lacking = ~offline & (f.size("isr") < f.size("replicas"))
    found = now.agg(
        f.count_if(offline).cast("double").alias("offline"),
        f.count_if(lacking).cast("double").alias("lacking"),
    )
    return (
        _rows(
            found.where("offline > 0"),
            kind=f.lit("partitions offline"),
            subject=f.col("topic"),
            measure=f.lit("partitions"),
            severity=f.lit(CRITICAL),
            value=f.col("offline"),
            says=f.format_string("%.0f partitions of %s have no leader", "offline", "topic"),
        ),
        _rows(
            found.where("lacking > 0"),
            kind=f.lit("partitions under-replicated"),
            subject=f.col("topic"),
            measure=f.lit("partitions"),
            severity=f.lit(WARNING),
            value=f.col("lacking"),
            says=f.format_string("%.0f partitions of %s lack a replica in sync", "lacking", "topic"),
        ),
    )


def _silent(disks: DataFrame) -> DataFrame:
    told = newest(disks, "broker").groupBy(CLUSTER, "broker")
    silent = told.agg(f.max("log_dir").alias("log_dir"), f.max("error").alias("error")).where(
        "log_dir is null and error is not null"
    )
    return _rows(
        silent,
        kind=f.lit("broker silent"),
        subject=_broker(),
        measure=f.lit("log dirs"),
        severity=f.lit(CRITICAL),
        says=f.format_string("broker %d did not describe its log dirs: %s", "broker", "error"),
    )


def _limits(forecast: DataFrame) -> DataFrame:
    soon = f.unix_seconds("passes") <= f.unix_seconds("last") + _SOON_DAYS * 86_400
    passed = f.col("now") >= f.col("limit")
    what = f.when(
        f.col("log_dir").isNotNull(), f.format_string("%s of broker %d", "log_dir", "broker")
    ).otherwise(f.format_string("%s of broker %d", "measure", "broker"))
    return _rows(
        forecast.where(f.col("passes").isNotNull() & soon),
        kind=f.when(passed, f.lit("limit passed")).otherwise(f.lit("limit near")),
        subject=f.concat_ws(":", _broker(), "log_dir"),
        measure=f.col("measure"),
        severity=f.when(passed, f.lit(CRITICAL)).otherwise(f.lit(WARNING)),
        value=f.col("now"),
        limit=f.col("limit"),
        passes=f.col("passes"),
        says=f.when(passed, f.format_string("%s is above its limit", what)).otherwise(
            f.format_string("%s passes its limit on %s", what, f.date_format("passes", "yyyy-MM-dd HH:mm"))
        ),
    )


def _out_of_band(skew: DataFrame) -> DataFrame:
    most = 1.0 + DEFAULT_BAND
    loaded = skew.where((f.col("dimension") == "broker") & f.col("measure").isin(*_BANDED))
    return _rows(
        loaded.where(f.col("share") > most),
        kind=f.lit("out of band"),
        subject=f.col("member"),
        measure=f.col("measure"),
        severity=f.lit(WARNING),
        value=f.col("share"),
        limit=f.lit(most),
        says=f.format_string("broker %s has %.2f × its share of %s", "member", "share", "measure"),
    )


def _unknown(model: DataFrame) -> DataFrame:
    unknown = f.col(f"{BYTES_IN}_mean").isNull() | f.col(f"{BYTES_OUT}_mean").isNull()
    by_topic = model.groupBy(CLUSTER, "topic").agg(
        f.count_if(unknown).cast("double").alias("unknown"), f.count("*").alias("partitions")
    )
    return _rows(
        by_topic.where("unknown > 0"),
        kind=f.lit("load unknown"),
        subject=f.col("topic"),
        measure=f.lit("partitions"),
        severity=f.lit(WARNING),
        value=f.col("unknown"),
        says=f.format_string(
            "the load of %.0f of %d partitions of %s is not known", "unknown", "partitions", "topic"
        ),
    )


def _broker() -> Column:
    return f.col("broker").cast("string")


def _rows(found: DataFrame, **given: Column) -> DataFrame:
    """Return the columns of the table; those that are not given are null."""
    kinds = {field.name: field.dataType for field in TABLE.schema.fields}
    values = {CLUSTER: f.col(CLUSTER), **given}
    return found.select(
        *(values.get(name, f.lit(None)).cast(kinds[name]).alias(name) for name in TABLE.names)
    )
