"""Rates per partition and window: messages and bytes in, bytes out.

    replicas ─► where they lead ─┐
    offsets  ────────────────────┼─► one shuffle by partition ─► increments ─► windows
    groups   ────────────────────┘

Messages come from log end offsets. Bytes come from the leader's size where nothing was deleted, otherwise
from messages times their average size. An interval belongs to the window it ends in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from restow.pipeline.jobs.counters import SERIES, increments
from restow.pipeline.jobs.leadership import PARTITION, SLOT, leadership, with_slot
from restow.pipeline.schemas import AT, CLUSTER, Table, columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TABLE = Table(
    name="rates",
    key=(CLUSTER, "topic", "partition", AT),
    sampled=False,
    columns=columns(
        (CLUSTER, "string"),
        ("topic", "string"),
        ("partition", "int"),
        (AT, "timestamp"),
        ("seconds", "double"),
        ("samples", "bigint"),
        ("size", "bigint", True),
        ("messages_in", "double", True),
        ("bytes_in", "double", True),
        ("bytes_consumed", "double", True),
        ("bytes_replicated", "double", True),
        ("bytes_out", "double", True),
    ),
)
"""`at` is the start of the window; all rates are per second, and null where unknown.

`bytes_out` is what consumers and followers fetch; it is null if either is unknown. Before the first and after
the last commit of any group, consumers fetch nothing.
"""

_SIZE, _END, _COMMIT = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """The length of windows, and the longest interval that counts."""

    seconds: int = 300
    gap_s: float = 2 * 3600.0
    few_leaders: bool = True
    """Whether the runs of all leaders fit into every executor's memory: some millions do."""


def rates(
    replicas: DataFrame,
    assignment: DataFrame,
    offsets: DataFrame | None = None,
    groups: DataFrame | None = None,
    windows: Windows = Windows(),  # noqa: B008 (frozen)
) -> DataFrame:
    """Return one row per partition and window with a sample. Repeated samples count once."""
    runs = leadership(assignment)
    readings = _sizes(replicas, f.broadcast(runs) if windows.few_leaders else runs.hint("shuffle_hash"))
    if offsets is not None:
        readings = readings.unionByName(_ends(offsets))
    if groups is not None:
        readings = readings.unionByName(_commits(groups))
    grown = increments(with_slot(readings).repartition(*PARTITION), windows.gap_s)
    return _in_windows(grown, windows.seconds).select(*(_rate(name) for name in TABLE.names))


def _sizes(replicas: DataFrame, runs: DataFrame) -> DataFrame:
    """Return the sizes of leaders; a follower that catches up has a smaller one."""
    here = replicas.where(~f.col("is_future")).select(
        *PARTITION, f.unix_micros(AT).alias("at_us"), "broker", "size", "topic_id"
    )
    leads = (
        [f.col(f"here.{name}") == f.col(f"runs.{name}") for name in PARTITION]
        + [f.col("broker") == f.col("leader")]
        + [(f.col("at_us") >= f.col("begins_us")) & (f.col("at_us") < f.col("ends_us"))]
    )
    led = here.alias("here").join(runs.alias("runs"), on=leads)
    return led.select(
        *(f"here.{name}" for name in PARTITION),
        f.lit(_SIZE).alias("kind"),
        f.lit("").alias("name"),
        "at_us",
        f.col("size").alias("value"),
        f.xxhash64("begins_us", "topic_id").alias("guard"),
        f.lit(None).cast("bigint").alias("floor"),
        f.lit(None).cast("int").alias("epoch"),
        "followers",
    )


def _ends(offsets: DataFrame) -> DataFrame:
    return offsets.select(
        *PARTITION,
        f.lit(_END).alias("kind"),
        f.lit("").alias("name"),
        f.unix_micros(AT).alias("at_us"),
        f.col("latest").alias("value"),
        f.lit(0).cast("bigint").alias("guard"),
        f.col("earliest").alias("floor"),
        f.col("leader_epoch").alias("epoch"),
        f.lit(None).cast("int").alias("followers"),
    )


def _commits(groups: DataFrame) -> DataFrame:
    held = groups.where(f.col("committed").isNotNull() & f.col("topic").isNotNull())
    return held.select(
        *PARTITION,
        f.lit(_COMMIT).alias("kind"),
        f.col("group").alias("name"),
        f.unix_micros(AT).alias("at_us"),
        f.col("committed").alias("value"),
        f.lit(0).cast("bigint").alias("guard"),
        f.lit(None).cast("bigint").alias("floor"),
        f.lit(None).cast("int").alias("epoch"),
        f.lit(None).cast("int").alias("followers"),
    )


def _in_windows(grown: DataFrame, seconds: int) -> DataFrame:
    """Sum counters by window, then put a partition's counters side by side."""
    length_us = seconds * 1_000_000
    start = (f.col("at_us") - f.pmod(f.col("at_us"), f.lit(length_us))).alias("start_us")
    each = grown.groupBy(*SERIES, start).agg(
        f.sum("grown").alias("grown"),
        f.sum("seconds").alias("seconds"),
        f.count("*").alias("samples"),
        f.max_by("value", "at_us").alias("last"),
        f.avg("value").alias("level"),
        f.avg(f.col("value") - f.col("floor")).alias("depth"),
        f.max("trimmed").alias("trimmed"),
        f.max("followers").alias("followers"),
    )
    size, end, commit = (f.col("kind") == kind for kind in (_SIZE, _END, _COMMIT))
    speed = f.col("grown") / f.col("seconds")
    wide = each.groupBy(SLOT, *PARTITION, "start_us").agg(
        f.max(f.when(~commit, f.col("seconds"))).alias("seconds"),
        f.sum(f.when(~commit, f.col("samples"))).alias("samples"),
        f.max(f.when(size, f.col("last"))).alias("size"),
        f.max(f.when(size, f.col("level"))).alias("level"),
        f.max(f.when(size, speed)).alias("swelling"),
        f.max("followers").alias("followers"),
        f.max(f.when(end, speed)).alias("messages_in"),
        f.max(f.when(end, f.col("depth"))).alias("depth"),
        f.max(f.when(end, f.col("trimmed"))).alias("trimmed"),
        f.sum(f.when(commit, speed)).alias("messages_out"),
        f.count(f.when(commit, 1)).alias("groups"),
        f.count(f.when(commit & speed.isNull(), 1)).alias("groups_unknown"),
    )
    all_of_it = Window.partitionBy(SLOT, *PARTITION)
    committed_us = f.when(f.col("groups") > 0, f.col("start_us"))
    within = (f.col("start_us") >= f.min(committed_us).over(all_of_it)) & (
        f.col("start_us") <= f.max(committed_us).over(all_of_it)
    )
    return wide.withColumn("consumed", f.coalesce(within, f.lit(False))).withColumn(
        "messages_out", f.when(f.col("groups_unknown") == 0, f.col("messages_out"))
    )


def _rate(name: str) -> Column:
    """Return a rate from the sums of a window."""
    message = f.when(f.col("depth") > 0, f.col("level") / f.col("depth"))
    by_messages = f.when(f.col("messages_in") == 0, 0.0).otherwise(f.col("messages_in") * message)
    by_size = f.when(f.coalesce("trimmed", f.lit(False)), f.lit(None)).otherwise(f.col("swelling"))
    bytes_in = f.coalesce(by_size, by_messages, f.col("swelling"))
    consumed = f.when(f.col("messages_out") == 0, 0.0).otherwise(f.col("messages_out") * message)
    replicated = bytes_in * f.col("followers")
    out = replicated + f.when(f.col("consumed"), consumed).otherwise(0.0)
    made = {
        AT: f.timestamp_micros("start_us"),
        "seconds": f.coalesce("seconds", f.lit(0.0)),
        "samples": f.coalesce("samples", f.lit(0)).cast("bigint"),
        "bytes_in": bytes_in,
        "bytes_consumed": consumed,
        "bytes_replicated": replicated,
        "bytes_out": out,
    }
    return made.get(name, f.col(name)).alias(name)
