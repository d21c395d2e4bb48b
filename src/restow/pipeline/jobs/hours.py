"""What a rehearsal needs beside the load model: loads by hour of the week, and what brokers have carried.

rates ─► by topic and hour of the week ─► multiples of the topic's mean
rates, leaders ─► by broker and window ─► the most that any broker carried
rates ─► by hour ─► what an incremental run keeps
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from restow.model.load import BYTES_IN, BYTES_OUT, WEEK_HOURS
from restow.pipeline.jobs.leadership import PARTITION
from restow.pipeline.jobs.weeks import HOURS, READ, hours_of, topic_hours_of
from restow.pipeline.jobs.workers import in_workers
from restow.pipeline.schemas import AT, CLUSTER, DAY, Table, columns
from restow.pipeline.spark_types import struct_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import Column, DataFrame

    from restow.pipeline.jobs.rates import Windows

_RATES = (BYTES_IN, BYTES_OUT)
_SUMS = columns(
    "cluster string, topic string, hour bigint",
    *(f"{name}{kind} double" for name in _RATES for kind in ("", "_usual")),
)
"""What a worker tells of its partitions, to be added up."""


REACHED = Table(
    name="reached",
    key=(CLUSTER, AT),
    sampled=False,
    daily=True,
    columns=columns("cluster string, at timestamp", *(f"{name} double?" for name in _RATES)),
)
"""Of each day the most that any broker carried in a window; `at` is the day's first."""


def by_hour(rates: DataFrame) -> DataFrame:
    """Return the rows of `HOURS`: each partition's rates, summed up by hour."""
    found = rates.select(*READ).repartition(*PARTITION)
    return found.mapInArrow(in_workers(HOURS.columns, hours_of), HOURS.schema)


def hours(rates: DataFrame) -> DataFrame:
    """Return cluster, topic, and for each rate an array of 168 multiples of the mean, null where unknown.

    An hour's multiple compares the partitions that were sampled in it with their own means, so that a
    partition without samples in some hour makes it look neither calm nor busy.
    """
    return _multiples(rates.select(*READ), hours_of, topic_hours_of)


def hours_of_week(hours: DataFrame) -> DataFrame:
    """Return what `hours` returns, from the rows of `HOURS`."""
    return _multiples(hours, topic_hours_of)


def _multiples(rows: DataFrame, *steps: Callable[[Any], dict[str, Any]]) -> DataFrame:
    found = rows.repartition(*PARTITION).mapInArrow(in_workers(_SUMS, *steps), struct_of(_SUMS))
    sums = found.groupBy(CLUSTER, "topic", "hour")
    multiples = sums.agg(*(_multiple(name).alias(name) for name in _RATES))
    return multiples.groupBy(CLUSTER, "topic").agg(*(_week(name).alias(name) for name in _RATES))


def _multiple(name: str) -> Column:
    usual = f.sum(f"{name}_usual")
    return f.when(usual > 0, f.sum(name) / usual)


def _week(name: str) -> Column:
    known = f.when(f.col(name).isNotNull(), f.struct("hour", name))
    by_hour = f.map_from_entries(f.collect_list(known))
    numbers = f.sequence(f.lit(0), f.lit(WEEK_HOURS - 1))
    week = f.transform(numbers, lambda hour: f.try_element_at(by_hour, hour.cast("bigint")))
    return f.when(f.count(name) > 0, week)


def reached(rates: DataFrame, runs: DataFrame, windows: Windows) -> DataFrame:
    """Return per cluster the most that any broker carried as a leader in a window: bytes_in, bytes_out.

    Only partitions with one leader during the whole window count, and no followers: it was at least this.
    The runs of leaders are `joinable`.
    """
    return reached_of(_carried(rates, runs, windows))


def reached_by_day(rates: DataFrame, runs: DataFrame, windows: Windows) -> DataFrame:
    """Return the rows of `REACHED`; all runs of leaders that reach into these days must be given."""
    carried = _carried(rates, runs, windows).withColumn(DAY, f.to_date(AT))
    return carried.groupBy(CLUSTER, DAY).agg(f.min(AT).alias(AT), *_most()).drop(DAY)


def reached_of(carried: DataFrame) -> DataFrame:
    """Return the most of windows, or of days."""
    return carried.groupBy(CLUSTER).agg(*_most())


def _carried(rates: DataFrame, runs: DataFrame, windows: Windows) -> DataFrame:
    """Return what each broker carried in each window."""
    begins_us = f.unix_micros(AT)
    led = rates.join(runs, [*PARTITION]).where(
        (f.col("leader") >= 0)
        & (f.col("begins_us") <= begins_us)
        & (f.col("ends_us") >= begins_us + windows.seconds * 1_000_000)
    )
    return led.groupBy(CLUSTER, "leader", AT).agg(*(f.sum(name).alias(name) for name in _RATES))


def _most() -> Iterator[Column]:
    return (f.max(name).alias(name) for name in _RATES)
