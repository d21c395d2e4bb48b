"""The assignor lab: try every assignor on every consumer group in the lake.

    groups ─► as seen last, and earlier changes of members ─┐
    assignment, disks, offsets ─► topics, racks, ends ──────┴─► a row per group ─► replay ─► group × assignor

The job shuffles groups once, by cluster and group, and joins their topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as f

from restow.pipeline.jobs.leadership import current
from restow.pipeline.schemas import Table, arrow_schema, columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

OURS = ("range", "roundrobin", "sticky", "cooperative-sticky")
MOST_ROUNDS = 50
"""Replay at most this many of a group's latest membership changes."""
_AT_ONCE = 64
"""Number of groups that are turned into objects together; Spark's batches may hold thousands."""

TABLE = Table(
    name="lab",
    key=("cluster", "group", "assignor"),
    sampled=False,
    columns=columns(
        ("cluster", "string"),
        ("group", "string"),
        ("at", "timestamp"),
        ("assignor", "string"),
        ("uses", "string", True),
        ("members", "int"),
        ("topics", "int"),
        ("partitions", "int"),
        ("lag", "bigint"),
        ("skew", "double", True),
        ("skew_now", "double", True),
        ("balance_score", "bigint", True),
        ("balance_score_now", "bigint", True),
        ("moved", "bigint", True),
        ("cross_rack", "bigint", True),
        ("cross_rack_now", "bigint", True),
        ("lag_skew", "double", True),
        ("lag_skew_now", "double", True),
        ("rounds", "int"),
        ("replayed", "bigint", True),
        ("error", "string", True),
    ),
)
"""Skews are the busiest member over the mean, of partitions and of lag; `_now` is the present skew."""


def lab(
    groups: DataFrame,
    assignment: DataFrame,
    disks: DataFrame,
    offsets: DataFrame,
    assignors: Sequence[str] = OURS,
) -> DataFrame:
    """Return one row per group and assignor, from the tables of the lake.

    `moved` counts partitions that change owners if the group switches to the assignor now; `replayed` counts
    those that would have changed owners in all membership changes since the first sample.
    """
    wanted = tuple(assignors)

    def play(batches: Iterable[Any]) -> Iterator[Any]:
        return _played(batches, wanted)

    rows = group_rows(groups, topic_rows(assignment, disks, offsets))
    return rows.mapInArrow(play, TABLE.schema)


def _played(batches: Iterable[Any], assignors: Sequence[str]) -> Iterator[Any]:
    """Turn batches of groups into batches of results."""
    import pyarrow as pa

    from restow.pipeline.replay import replayed

    schema = arrow_schema(TABLE.columns)
    for batch in batches:
        for first in range(0, batch.num_rows, _AT_ONCE):
            rows = batch.slice(first, _AT_ONCE).to_pylist()
            found = [answer for row in rows for answer in replayed(row, assignors)]
            yield pa.RecordBatch.from_pylist(found, schema=schema)


def group_rows(groups: DataFrame, topics: DataFrame) -> DataFrame:
    """Return one row per group: its members, their newest assignment, and the topics that they may read."""
    samples = groups.repartition("cluster", "group")
    key = Window.partitionBy("cluster", "group")
    roster = f.struct("member", "rack", f.array_sort("subscription").alias("subscription"))
    held = f.struct("topic", "partition", "member", "committed")
    last = (
        samples.withColumn("last", f.max("at").over(key))
        .where(f.col("at") == f.col("last"))
        .groupBy("cluster", "group", "at")
        .agg(
            f.max("assignor").alias("assignor"),
            f.sort_array(f.collect_set(f.when(f.col("member").isNotNull(), roster))).alias("members"),
            f.collect_list(f.when(f.col("topic").isNotNull(), held)).alias("held"),
        )
    )
    changes = (
        samples.where(f.col("member").isNotNull())
        .groupBy("cluster", "group", "at")
        .agg(f.sort_array(f.collect_set(roster)).alias("members"))
        .withColumn("before", f.lag("members").over(key.orderBy("at")))
        .where(f.col("before").isNull() | (f.col("before") != f.col("members")))
        .groupBy("cluster", "group")
        .agg(f.sort_array(f.collect_list(f.struct("at", "members"))).alias("changes"))
        .select(
            "cluster",
            "group",
            f.slice("changes", -f.least(f.size("changes"), f.lit(MOST_ROUNDS)), MOST_ROUNDS).alias("rounds"),
        )
    )
    read = f.array_distinct(
        f.concat(
            f.col("held.topic"), f.flatten(f.filter("members.subscription", lambda each: each.isNotNull()))
        )
    )
    named = last.select("cluster", "group", f.explode(read).alias("topic"))
    known = (
        named.join(topics, ["cluster", "topic"])
        .groupBy("cluster", "group")
        .agg(f.sort_array(f.collect_list(f.struct("topic", "partition", "latest", "racks"))).alias("topics"))
    )
    empty = f.array().cast(known.schema["topics"].dataType)
    none = f.array().cast(changes.schema["rounds"].dataType)
    return (
        last.join(known, ["cluster", "group"], "left")
        .join(changes, ["cluster", "group"], "left")
        .withColumn("topics", f.coalesce("topics", empty))
        .withColumn("rounds", f.coalesce("rounds", none))
    )


def topic_rows(assignment: DataFrame, disks: DataFrame, offsets: DataFrame) -> DataFrame:
    """Return one row per topic: partitions, log end offsets and racks of replicas, in parallel lists."""
    key = ["cluster", "topic", "partition"]
    racks = disks.groupBy("cluster", "broker").agg(f.max_by("rack", "at").alias("rack"))
    placed = (
        current(assignment)
        .select(*key, f.explode_outer("replicas").alias("broker"))
        .join(f.broadcast(racks), ["cluster", "broker"], "left")
        .groupBy(*key)
        .agg(f.collect_set("rack").alias("racks"))
    )
    ends = offsets.groupBy(*key).agg(f.max_by("latest", "at").alias("latest"))
    return (
        placed.join(ends, key, "left")
        .groupBy("cluster", "topic")
        .agg(f.sort_array(f.collect_list(f.struct("partition", "latest", "racks"))).alias("all"))
        .select(
            "cluster",
            "topic",
            f.col("all.partition").alias("partition"),
            f.col("all.latest").alias("latest"),
            f.col("all.racks").alias("racks"),
        )
    )
