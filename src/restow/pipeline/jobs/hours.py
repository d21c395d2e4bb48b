"""What a rehearsal needs beside the load model: loads by hour of the week, and what brokers have carried.

rates ─► by topic and hour of the week ─► multiples of the topic's mean
rates, leaders ─► by broker and window ─► the most that any broker carried
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from restow.model.load import BYTES_IN, BYTES_OUT, WEEK_HOURS
from restow.pipeline.jobs.leadership import PARTITION, leadership
from restow.pipeline.jobs.rates import leaders
from restow.pipeline.jobs.weeks import HOUR_S, MONDAY_H
from restow.pipeline.schemas import AT, CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from restow.pipeline.jobs.rates import Windows

_RATES = (BYTES_IN, BYTES_OUT)


def hours(rates: DataFrame) -> DataFrame:
    """Return cluster, topic, and for each rate an array of 168 multiples of the mean, null where unknown.

    An hour's multiple compares the partitions that were sampled in it with their own means, so that a
    partition without samples in some hour makes it look neither calm nor busy.
    """
    means = (_mean_rate(name).alias(name) for name in _RATES)
    by_hour = rates.groupBy(*PARTITION, _hour_of_week().alias("hour")).agg(*means)
    usual = by_hour.groupBy(*PARTITION).agg(*(f.avg(name).alias(f"usual_{name}") for name in _RATES))
    by_topic = by_hour.join(usual, [*PARTITION]).groupBy(CLUSTER, "topic", "hour")
    multiples = by_topic.agg(*(_multiple(name).alias(name) for name in _RATES))
    return multiples.groupBy(CLUSTER, "topic").agg(*(_week(name).alias(name) for name in _RATES))


def _hour_of_week() -> Column:
    """Return the hour of the week, counted from Monday midnight."""
    return f.pmod(f.floor(f.unix_seconds(AT) / HOUR_S) + MONDAY_H, f.lit(WEEK_HOURS))


def _mean_rate(name: str) -> Column:
    """Return the mean, weighted by the time for which the rate is known."""
    known = f.sum(f.when(f.col(name).isNotNull(), f.col("seconds")))
    return f.when(known > 0, f.sum(f.col(name) * f.col("seconds")) / known)


def _multiple(name: str) -> Column:
    usual = f.sum(f.when(f.col(name).isNotNull(), f.col(f"usual_{name}")))
    return f.when(usual > 0, f.sum(name) / usual)


def _week(name: str) -> Column:
    known = f.when(f.col(name).isNotNull(), f.struct("hour", name))
    by_hour = f.map_from_entries(f.collect_list(known))
    numbers = f.sequence(f.lit(0), f.lit(WEEK_HOURS - 1))
    week = f.transform(numbers, lambda hour: f.try_element_at(by_hour, hour.cast("bigint")))
    return f.when(f.count(name) > 0, week)


def reached(rates: DataFrame, assignment: DataFrame, windows: Windows) -> DataFrame:
    """Return per cluster the most that any broker carried as a leader in a window: bytes_in, bytes_out.

    Only partitions with one leader during the whole window count, and no followers: it was at least this.
    """
    begins_us = f.unix_micros(AT)
    led = rates.join(leaders(leadership(assignment), windows), [*PARTITION]).where(
        (f.col("leader") >= 0)
        & (f.col("begins_us") <= begins_us)
        & (f.col("ends_us") >= begins_us + windows.seconds * 1_000_000)
    )
    carried = led.groupBy(CLUSTER, "leader", AT).agg(*(f.sum(name).alias(name) for name in _RATES))
    return carried.groupBy(CLUSTER).agg(*(f.max(name).alias(name) for name in _RATES))
