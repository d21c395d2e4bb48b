"""The growth of counters between samples, where it is known.

Sizes, log end offsets and commits are counters: they grow, and sometimes fall, because a log was deleted,
truncated, recreated or reset. The growth during such an interval is unknown, so it does not count. Its
neighbours do not count either: a clock that was set back mixes two periods, whose values then alternate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from restow.pipeline.jobs.leadership import PARTITION, SLOT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SERIES = (SLOT, *PARTITION, "kind", "name")
"""One counter: a partition's size, its log end offset, or the commits of one group."""


def increments(readings: DataFrame, gap_s: float) -> DataFrame:
    """Return each reading once, with how much it has `grown` since the one before and in how many `seconds`.

    Both are null where the interval does not count, for example if it is longer than `gap_s`.

    A reading has, beside its series: `at_us`, `value`, `guard` (a new guard is a new object of that name),
    `floor` (records below it are deleted; `trimmed` says that it rose) and `epoch`. If `floor` or `epoch`
    falls, the object was recreated.
    """
    in_time = Window.partitionBy(*SERIES).orderBy("at_us", "value")
    again = f.lag(f.col("at_us")).over(in_time).eqNullSafe(f.col("at_us")) & f.lag("value").over(
        in_time
    ).eqNullSafe(f.col("value"))
    once = readings.withColumn("again", again).where(~f.col("again")).drop("again")
    known = once.select(
        "*",
        f.lag("at_us").over(in_time).alias("at_before"),
        f.lag("value").over(in_time).alias("before"),
        f.lag("value", 2).over(in_time).alias("long_before"),
        f.lead("value").over(in_time).alias("after"),
        f.lag("guard").over(in_time).alias("guard_before"),
        f.lag("floor").over(in_time).alias("floor_before"),
        f.lag("epoch").over(in_time).alias("epoch_before"),
    )
    counts = _counts(gap_s)
    return known.select(
        *readings.columns,
        f.when(counts, f.col("value") - f.col("before")).alias("grown"),
        f.when(counts, (f.col("at_us") - f.col("at_before")) / 1e6).alias("seconds"),
        (counts & (f.col("floor") > f.col("floor_before"))).alias("trimmed"),
    )


def _counts(gap_s: float) -> Column:
    elapsed_us = f.col("at_us") - f.col("at_before")
    return (
        (elapsed_us > 0)
        & (elapsed_us <= int(gap_s * 1e6))
        & f.col("guard").eqNullSafe(f.col("guard_before"))
        & (f.col("value") >= f.col("before"))
        & f.coalesce(f.col("before") >= f.col("long_before"), f.lit(True))
        & f.coalesce(f.col("after") >= f.col("value"), f.lit(True))
        & f.coalesce(f.col("floor") >= f.col("floor_before"), f.lit(True))
        & f.coalesce(f.col("epoch") >= f.col("epoch_before"), f.lit(True))
    )
