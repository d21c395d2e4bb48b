"""Who led each partition from when to when, as far as samples of the assignment tell.

A run is a stretch of time with one leader, one number of followers and one topic of that name. It begins with
the first sample that shows it and ends with the first that shows another; the first run of a partition has
always been, the last one goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from restow.pipeline.schemas import AT, CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


PARTITION = (CLUSTER, "topic", "partition")
SLOT = "slot"
"""A hash of the partition's name. First in every sort and shuffle: numbers are compared faster than names."""

_LONG_AGO_US, _NEVER_US = -(2**62), 2**62


def with_slot(rows: DataFrame) -> DataFrame:
    """The rows with their partition's slot."""
    return rows.withColumn(SLOT, f.xxhash64(*PARTITION))


def leadership(assignment: DataFrame) -> DataFrame:
    """cluster, topic, partition, leader, followers, begins_us, ends_us: every run of every partition."""
    seen = with_slot(
        assignment.select(
            *PARTITION,
            f.unix_micros(AT).alias("begins_us"),
            "leader",
            (f.size("replicas") - 1).alias("followers"),
            f.xxhash64("topic_id", "leader", f.size("replicas")).alias("run"),
        )
    )
    in_time = Window.partitionBy(SLOT, *PARTITION).orderBy("begins_us", "run")
    before = f.lag("run").over(in_time)
    changes = (
        seen.withColumn("before", before)
        .where(f.col("before").isNull() | (f.col("before") != f.col("run")))
        .withColumn("ends_us", f.coalesce(f.lead("begins_us").over(in_time), f.lit(_NEVER_US)))
        .withColumn(
            "begins_us", f.when(f.col("before").isNull(), f.lit(_LONG_AGO_US)).otherwise(f.col("begins_us"))
        )
    )
    return changes.select(*PARTITION, "leader", "followers", "begins_us", "ends_us")


def newest(rows: DataFrame, *per: str) -> DataFrame:
    """The rows of the newest answer of each cluster, or of each broker of it."""
    by = (CLUSTER, *per)
    last = rows.groupBy(*by).agg(f.max(AT).alias(AT))
    return rows.join(f.broadcast(last), on=[*by, AT], how="left_semi")


ONE_LOOK_S = 60
"""The answers of one look at a cluster are no further apart than this, slow brokers included."""


def current(assignment: DataFrame) -> DataFrame:
    """The rows of every topic's newest answer, without topics that are no longer there."""
    topics = assignment.groupBy(CLUSTER, "topic").agg(f.max(AT).alias(AT))
    clusters = topics.groupBy(CLUSTER).agg(f.max(AT).alias("last"))
    there = topics.join(f.broadcast(clusters), CLUSTER).where(
        f.unix_micros(AT) >= f.unix_micros("last") - ONE_LOOK_S * 1_000_000
    )
    return assignment.join(f.broadcast(there.drop("last")), [CLUSTER, "topic", AT], "left_semi")
