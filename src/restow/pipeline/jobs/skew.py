"""Skew: how unevenly clusters are loaded, by broker, rack, log dir, topic and leader, and its causes.

    placement × dimensions × measures ─► totals ─► beside the mean of all

Empty brokers, racks and log dirs count too: they are the skew after brokers were added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from restow.pipeline.jobs.leadership import PARTITION
from restow.pipeline.jobs.placement import brokers, placement
from restow.pipeline.schemas import CLUSTER, Table, columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_CAUSES_KIND = "array<struct<topic:string,partition:int,value:double>>"
TABLE = Table(
    name="skew",
    key=(CLUSTER, "dimension", "measure", "member"),
    sampled=False,
    columns=columns(
        "cluster string, dimension string, measure string, member string, total double?, unknown bigint",
        f"mean double?, share double?, max_share double?, variation double?, causes {_CAUSES_KIND}",
    ),
)
"""`share` is a member's total over the mean of all members of that dimension, null if all have nothing;
`max_share` the largest of those, `variation` their coefficient of variation; `causes` are the partitions that
weigh most on it.

`unknown` counts partitions without a known load; `total` is that of the others, and null if there are none.
Members with an unknown total do not count for the mean."""

DIMENSIONS = ("broker", "rack", "log_dir", "topic", "leader")
MEASURES = ("replicas", "leaders", "size", "messages_in", "bytes_in", "bytes_out")
_CAUSES = 5


def skew(replicas: DataFrame, assignment: DataFrame, disks: DataFrame, model: DataFrame) -> DataFrame:
    """Return one row per cluster, dimension, measure and member."""
    there = brokers(disks)
    racks = there.select(CLUSTER, "broker", "rack").dropDuplicates([CLUSTER, "broker"])
    placed = placement(replicas, assignment, model).join(f.broadcast(racks), [CLUSTER, "broker"], "left")
    measured = (
        _measured(placed)
        .groupBy(CLUSTER, "dimension", "member", "measure", *PARTITION[1:])
        .agg(f.sum("value").alias("value"))
    )
    heaviest = Window.partitionBy(CLUSTER, "dimension", "measure", "member").orderBy(
        f.desc("value"), "topic", "partition"
    )
    totals = measured.groupBy(CLUSTER, "dimension", "measure", "member").agg(
        f.sum("value").alias("total"),
        f.count("value").alias("known"),
        f.count(f.when(f.col("value").isNull(), 1)).alias("unknown"),
    )
    causes = (
        measured.select("*", f.row_number().over(heaviest).alias("rank"))
        .where((f.col("rank") <= _CAUSES) & (f.col("value") > 0))
        .groupBy(CLUSTER, "dimension", "measure", "member")
        .agg(f.sort_array(f.collect_list(f.struct("rank", "topic", "partition", "value"))).alias("ranked"))
        .select(
            *(CLUSTER, "dimension", "measure", "member"),
            f.transform("ranked", lambda each: each.dropFields("rank")).alias("causes"),
        )
    )
    everyone = totals.unionByName(_idle(there)).groupBy(CLUSTER, "dimension", "measure", "member")
    known = (f.sum("known") > 0) | (f.sum("unknown") == 0)
    whole = everyone.agg(
        f.when(known, f.sum("total")).alias("total"), f.sum("unknown").alias("unknown")
    ).join(causes, [CLUSTER, "dimension", "measure", "member"], "left")
    return _beside_the_mean(whole)


def furthest_first(rows: DataFrame) -> DataFrame:
    """Return the rows in order, those furthest from their share first: empty brokers are skew, too."""
    order = (CLUSTER, "dimension", "measure", "member")
    return rows.orderBy(f.desc_nulls_last(f.abs(f.col("share") - 1)), *order)


def _measured(placed: DataFrame) -> DataFrame:
    """Return each replica once per dimension and measure, with what it adds."""
    broker = f.col("broker").cast("string")
    leads = f.col("leads")
    members = f.array(
        _pair("broker", broker),
        _pair("rack", f.coalesce("rack", f.lit("(none)"))),
        _pair("log_dir", f.when(f.col("log_dir").isNotNull(), f.concat_ws(":", broker, "log_dir"))),
        _pair("topic", f.col("topic")),
        _pair("leader", f.when(leads, broker)),
    )
    values = f.array(
        _value("replicas", f.lit(1.0)),
        _value("leaders", leads.cast("double")),
        *(_value(name, f.col(name)) for name in MEASURES[2:]),
    )
    spread = placed.select(*PARTITION, f.explode(members).alias("of"), values.alias("values")).where(
        f.col("of.member").isNotNull()
    )
    flat = spread.select(*PARTITION, "of.dimension", "of.member", f.explode("values").alias("what"))
    return flat.select(*PARTITION, "dimension", "member", "what.measure", "what.value")


def _pair(dimension: str, member: Column) -> Column:
    return f.struct(f.lit(dimension).alias("dimension"), member.alias("member"))


def _value(measure: str, value: Column) -> Column:
    return f.struct(f.lit(measure).alias("measure"), value.alias("value"))


def _idle(there: DataFrame) -> DataFrame:
    """Return every possible member with a total of zero."""
    broker = f.col("broker").cast("string")
    members = f.array(
        _pair("broker", broker),
        _pair("leader", broker),
        _pair("rack", f.coalesce("rack", f.lit("(none)"))),
        _pair("log_dir", f.when(f.col("log_dir").isNotNull(), f.concat_ws(":", broker, "log_dir"))),
    )
    named = there.select(CLUSTER, f.explode(members).alias("of")).where(f.col("of.member").isNotNull())
    measure = f.explode(f.array(*(f.lit(name) for name in MEASURES))).alias("measure")
    nothing = (
        f.lit(0.0).alias("total"),
        *(f.lit(0).cast("bigint").alias(each) for each in ("known", "unknown")),
    )
    return named.select(CLUSTER, "of.dimension", "of.member", measure, *nothing).distinct()


def _beside_the_mean(whole: DataFrame) -> DataFrame:
    """Return the table, with mean and share. One window holds a dimension's members, few in any cluster."""
    all_of_it = Window.partitionBy(CLUSTER, "dimension", "measure")
    mean, deviation = f.avg("total").over(all_of_it), f.stddev_pop("total").over(all_of_it)
    beside = whole.select("*", mean.alias("mean"), deviation.alias("deviation"))
    none = f.col("mean") == 0
    shared = beside.select(
        "*",
        f.try_divide("total", "mean").alias("share"),
        f.when(none, 0.0).otherwise(f.col("deviation") / f.col("mean")).alias("variation"),
    )
    made = {
        "max_share": f.max("share").over(all_of_it),
        "causes": f.coalesce("causes", f.array().cast(TABLE.schema["causes"].dataType)),
    }
    return shared.select(*(made.get(name, f.col(name)).alias(name) for name in TABLE.names))
