"""The assignor lab: try every assignor on every consumer group in the lake.

    groups ─► as seen last, and earlier changes of members ─┐
    assignment, disks, offsets ─► topics, racks, ends ──────┴─► a row per group ─► replay ─► group × assignor

The job shuffles groups once, by cluster and group, and joins their topics.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as f

from restow.pipeline.jobs.leadership import current
from restow.pipeline.schemas import Table, arrow_schema, columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

OF_CLIENTS = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""Kafka's assignors of the classic protocol."""
OURS = (*OF_CLIENTS, "uniform", "rack-uniform", "lag-aware")
_SUMMED = (
    "moved",
    "without_owner_s",
    "replayed",
    "replayed_without_owner_s",
    "most_lag",
    "most_lag_now",
    "cross_rack",
)
MOST_ROUNDS = 50
"""Replay at most this many of a group's latest membership changes."""
MADE_MEMBERS, MADE_PARTITIONS = 10, 100
_AT_ONCE = 64
"""Number of groups that are turned into objects together; Spark's batches may hold thousands."""

TABLE = Table(
    name="lab",
    key=("cluster", "group", "assignor"),
    sampled=False,
    columns=columns(
        "cluster string, group string, at timestamp, assignor string, uses string?, members int, topics int",
        "partitions int, lag bigint, skew double?, skew_now double?, balance_score bigint?",
        "balance_score_now bigint?, moved bigint?, cross_rack bigint?, cross_rack_now bigint?",
        "lag_skew double?, lag_skew_now double?, rounds int, replayed bigint?, error string?",
        "most_lag bigint?, most_lag_now bigint?, without_owner_s double?, replayed_without_owner_s double?",
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
    those that would have changed owners in all membership changes since the first sample. `without_owner_s`
    sums the seconds for which nobody reads a partition meanwhile. The lag is cleared when the busiest member
    has read its own, `most_lag`.
    """
    wanted = tuple(assignors)

    def play(batches: Iterable[Any]) -> Iterator[Any]:
        return _played(batches, wanted)

    rows = group_rows(groups, topic_rows(assignment, disks, offsets))
    return rows.mapInArrow(play, TABLE.schema)


def made_lab(session: SparkSession, groups: int, assignors: Sequence[str] = OURS) -> DataFrame:
    """Return the same for groups that were made up, each from its number (`made_groups`)."""
    wanted = tuple(assignors)

    def play(batches: Iterable[Any]) -> Iterator[Any]:
        from restow.pipeline.made_groups import made_group

        numbers = (number for batch in batches for number in batch.column(0).to_pylist())
        while some := list(islice(numbers, _AT_ONCE)):
            yield _answers((made_group(each, MADE_MEMBERS, MADE_PARTITIONS) for each in some), wanted)

    return session.range(groups).mapInArrow(play, TABLE.schema)


def by_assignor(found: DataFrame) -> DataFrame:
    """Return one row per assignor: the means and sums of all groups that it could assign."""
    return (
        found.where("error is null")
        .groupBy("assignor")
        .agg(
            f.count("group").alias("groups"),
            *(f.avg(name).alias(name) for name in ("skew", "skew_now", "lag_skew", "lag_skew_now")),
            *(f.sum(name).alias(name) for name in _SUMMED),
        )
        .orderBy("assignor")
    )


def _played(batches: Iterable[Any], assignors: Sequence[str]) -> Iterator[Any]:
    """Turn batches of groups into batches of results."""
    for batch in batches:
        for first in range(0, batch.num_rows, _AT_ONCE):
            yield _answers(batch.slice(first, _AT_ONCE).to_pylist(), assignors)


def _answers(rows: Iterable[Mapping[str, Any]], assignors: Sequence[str]) -> Any:
    import pyarrow as pa

    from restow.pipeline.replay import replayed

    found = [answer for row in rows for answer in replayed(row, assignors)]
    return pa.RecordBatch.from_pylist(found, schema=arrow_schema(TABLE.columns))


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
