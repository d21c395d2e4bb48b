"""What counters grew by between samples, when that can be told.

Sizes, ends of logs and commits are all counters of a kind: they grow, and now and then they fall, because
something was deleted, cut off, recreated or set back. How much was added meanwhile nobody knows, so such a
stretch does not count; neither do its neighbours, because a clock that was set back mixes two stretches of
time, which then go up and down in turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from restow.pipeline.jobs.leadership import PARTITION, SLOT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SERIES = (SLOT, *PARTITION, "kind", "name")
"""One counter: a partition's size, its end, or the commits of one group."""


def increments(readings: DataFrame, gap_s: float) -> DataFrame:
    """Each reading once, with what it has `grown` since the one before and in how many `seconds`.

    Both are null where the stretch does not count; one longer than `gap_s` does not.

    A reading has, beside its series: `at_us`, `value`, `guard` (another guard is another thing of that name),
    `floor` (what is below is gone; `trimmed` says that it rose) and `epoch`; if one of these two falls, the
    thing was made anew.
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
