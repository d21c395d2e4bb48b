"""Since when the rates of each cluster have to be computed anew.

A rate depends on the readings of its window, on those of two gaps before it and of one gap after it, and on
three things that reach further:

- the leader of the time, which the last sample of the assignment before it tells (`TURNS` has them all);
- the first run of leaders of a partition, which has no beginning;
- whether its window lies between the first and the last commit of its partition (`COMMITS`).

So a new sample changes nothing before the gap that precedes it, unless it changes one of the last two.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from restow.pipeline.jobs.leadership import PARTITION
from restow.pipeline.jobs.rates import committed
from restow.pipeline.schemas import AT, CLUSTER, DAY, Table, columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from restow.pipeline.jobs.rates import Windows

TURNS = Table(
    name="turns",
    key=(*PARTITION, AT, "run"),
    sampled=False,
    daily=True,
    columns=columns(
        "cluster string, topic string, partition int, at timestamp, leader int, followers int, run bigint",
    ),
)
"""Of each day the samples of the assignment with which a run begins, and the first: see `turns`."""

COMMITS = Table(
    name="commits",
    key=(*PARTITION, AT),
    sampled=False,
    daily=True,
    columns=columns(
        "cluster string, topic string, partition int, at timestamp, last timestamp",
    ),
)
"""Of each day the first and the last commit of any group, by partition."""

Since = dict[str, int]
"""By cluster: microseconds since 1970."""


def commits(groups: DataFrame) -> DataFrame:
    """Return the rows of `COMMITS`."""
    by = (*PARTITION, DAY)
    days = committed(groups).withColumn(DAY, f.to_date(AT)).groupBy(*by)
    return days.agg(f.min(AT).alias("first"), f.max(AT).alias("last")).select(
        *PARTITION, f.col("first").alias(AT), "last"
    )


def earliest(samples: Sequence[DataFrame]) -> Since:
    """Return the time of the earliest sample of each cluster."""
    if not samples:
        return {}
    times = reduce(lambda one, other: one.unionByName(other), (each.select(CLUSTER, AT) for each in samples))
    return _by_cluster(times.select(CLUSTER, f.unix_micros(AT).alias("us")))


def led_otherwise(before: DataFrame, now: DataFrame, replicas: Callable[[], DataFrame]) -> Since:
    """Return the earliest sample of replicas whose partition begins with another run, or with its first.

    `before` and `now` are turns; the first of them holds for all times before it. `replicas` are looked up
    only if there is such a partition.
    """
    first = f.min_by("run", f.struct(AT, "run"))
    was = before.groupBy(*PARTITION).agg(first.alias("was"))
    runs = now.groupBy(*PARTITION).agg(first.alias("run"))
    other = runs.join(was, [*PARTITION], "full").where(~f.col("was").eqNullSafe(f.col("run"))).persist()
    try:
        if other.isEmpty():
            return {}
        theirs = (
            replicas()
            .where(~f.col("is_future"))
            .join(f.broadcast(other.select(*PARTITION)), [*PARTITION], "left_semi")
        )
        return earliest([theirs])
    finally:
        other.unpersist()


def consumed_otherwise(before: DataFrame, now: DataFrame, windows: Windows) -> Since:
    """Return the first window that lies between other commits of its partition than before."""
    was, now = _ranges(before, "was_"), _ranges(now, "")
    both = was.join(now, [*PARTITION], "left")
    changed = f.least(
        *(
            f.when(~f.col(f"was_{end}").eqNullSafe(f.col(end)), f.least(f.col(f"was_{end}"), f.col(end)))
            for end in ("first", "last")
        )
    )
    micros = windows.seconds * 1_000_000
    begins = f.floor(f.unix_micros(changed) / micros) * micros
    return _by_cluster(both.where(changed.isNotNull()).select(CLUSTER, begins.alias("us")))


def first_commits(commits: DataFrame) -> DataFrame:
    """Return the first commit of each partition."""
    return _ranges(commits, "").select(*PARTITION, f.col("first").alias(AT))


def _ranges(commits: DataFrame, prefix: str) -> DataFrame:
    return commits.groupBy(*PARTITION).agg(
        f.min(AT).alias(f"{prefix}first"), f.max("last").alias(f"{prefix}last")
    )


def _by_cluster(rows: DataFrame) -> Since:
    return {row[CLUSTER]: row["us"] for row in rows.groupBy(CLUSTER).agg(f.min("us").alias("us")).collect()}


def least(*found: Mapping[str, int]) -> Since:
    """Return the earliest of the times of each cluster."""
    names = {name for each in found for name in each}
    return {name: min(each[name] for each in found if name in each) for name in sorted(names)}
