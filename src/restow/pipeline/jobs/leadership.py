"""The leader of each partition over time, from samples of the assignment.

A run is a period with one leader, one number of followers and one topic id. It begins with the first sample
that shows it and ends with the first that shows another. The first run has no beginning, the last no end.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from restow.pipeline.schemas import AT, CLUSTER, DAY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame


PARTITION = (CLUSTER, "topic", "partition")

FEW_RUNS = 2_000_000
"""Some 100 bytes each."""
_LONG_AGO_US, _NEVER_US = -(2**62), 2**62


def leadership(assignment: DataFrame) -> DataFrame:
    """Return all runs: cluster, topic, partition, leader, followers, begins_us, ends_us."""
    return runs_of(_seen(assignment))


def has_few_runs(seen: DataFrame) -> bool:
    """Return whether the runs in samples of the assignment, or in turns, fit into every executor's memory.

    That is asked of Spark, with one query if the samples themselves are few and with two otherwise.
    """
    seen = seen if "run" in seen.columns else _seen(seen)
    return seen.count() <= FEW_RUNS or runs_of(seen).count() <= FEW_RUNS


def joinable(runs: DataFrame, *, few: bool) -> DataFrame:
    """Return runs with a hint how to join them: few go to all executors, many are shuffled."""
    return f.broadcast(runs) if few else runs.hint("shuffle_hash")


def existing(assignment: DataFrame) -> DataFrame:
    """Return the partitions of every topic's newest answer, without deleted topics."""
    lives = _lives(_seen(assignment))
    topics = of_last_look(lives.groupBy(CLUSTER, "topic").agg(f.max(AT).alias(AT)))
    return lives.join(f.broadcast(topics), [CLUSTER, "topic", AT], "left_semi").select(*PARTITION)


def _seen(assignment: DataFrame) -> DataFrame:
    return assignment.where(_all_known(PARTITION)).select(
        *PARTITION,
        AT,
        "leader",
        (f.size("replicas") - 1).alias("followers"),
        f.xxhash64("topic_id", "leader", f.size("replicas")).alias("run"),
    )


def turns(assignment: DataFrame) -> DataFrame:
    """Return of each day the samples with which a partition's run begins, and its first sample.

    All runs can be had from these rows: `runs_of` returns for them what it returns for all samples.
    """
    seen = _seen(assignment).withColumn(DAY, f.to_date(AT))
    by = (*PARTITION, DAY)
    lives = seen.groupBy(*by).agg(
        f.min(AT).alias(AT),
        *(f.max(name).alias(name) for name in ("leader", "followers")),
        f.min("run").alias("run"),
        f.max("run").alias("other"),
    )
    steady = lives.where("run = other").drop("other")
    changing = seen.join(lives.where("run != other").select(*by), [*by], "left_semi")
    before = f.lag("run").over(Window.partitionBy(*by).orderBy(AT, "run"))
    begin = changing.withColumn("before", before).where("before is null or before != run").drop("before")
    return steady.unionByName(begin).drop(DAY)


def runs_of(seen: DataFrame) -> DataFrame:
    """Return all runs of samples, or of turns.

    Most partitions have one run. An aggregate finds these without sorting; only samples of the others are
    sorted by time.
    """
    lives = _lives(seen)
    steady = lives.where("least = most").select(
        *PARTITION,
        "leader",
        "followers",
        f.lit(_LONG_AGO_US).alias("begins_us"),
        f.lit(_NEVER_US).alias("ends_us"),
    )
    changing = lives.where("least != most").select(*PARTITION)
    seen = seen.withColumn("begins_us", f.unix_micros(AT)).drop(AT)
    return steady.unionByName(_runs(seen.join(f.broadcast(changing), [*PARTITION], "left_semi")))


def _lives(seen: DataFrame) -> DataFrame:
    """Return one row per partition, with its last time.

    All of its columns are asked for: the plans of all readers have the same shuffle then, and Spark makes it
    once.
    """
    lives = seen.groupBy(*PARTITION).agg(
        f.max("leader").alias("leader"),
        f.max("followers").alias("followers"),
        f.min("run").alias("least"),
        f.max("run").alias("most"),
        f.max(AT).alias(AT),
    )
    return lives.where(_all_known(("leader", "followers", "least", "most", AT)))


def _all_known(names: Iterable[str]) -> Column:
    return reduce(and_, (f.col(name).isNotNull() for name in names))


def _runs(seen: DataFrame) -> DataFrame:
    """Return the runs of partitions whose leader, followers or topic id change."""
    in_time = Window.partitionBy(*PARTITION).orderBy("begins_us", "run")
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
    """Return the rows of the newest answer of each cluster, or of each of its brokers."""
    by = (CLUSTER, *per)
    last = rows.groupBy(*by).agg(f.max(AT).alias(AT))
    return rows.join(f.broadcast(last), on=[*by, AT], how="left_semi")


ONE_LOOK_S = 60
"""The answers of one sample are at most this far apart, slow brokers included."""


def current(assignment: DataFrame) -> DataFrame:
    """Return the rows of every topic's newest answer, without deleted topics."""
    topics = of_last_look(assignment.groupBy(CLUSTER, "topic").agg(f.max(AT).alias(AT)))
    return assignment.join(f.broadcast(topics), [CLUSTER, "topic", AT], "left_semi")


def of_last_look(rows: DataFrame) -> DataFrame:
    """Return the rows of each cluster's last sample."""
    last = rows.groupBy(CLUSTER).agg(f.max(AT).alias("last"))
    recent = f.unix_micros(AT) >= f.unix_micros("last") - ONE_LOOK_S * 1_000_000
    return rows.join(f.broadcast(last), CLUSTER).where(recent).drop("last")
