"""The current place and load of every replica."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from restow.pipeline.jobs.leadership import ONE_LOOK_S, PARTITION, current, newest
from restow.pipeline.schemas import AT, CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def placement(replicas: DataFrame, assignment: DataFrame, model: DataFrame) -> DataFrame:
    """Return a row per replica: its place, leads, size, messages_in, bytes_in, bytes_out.

    A replica on a broker that did not answer has no log dir, and the size that its partition has elsewhere.
    Unknown values are null.
    """
    held = current(assignment).select(
        *PARTITION, "leader", f.explode(f.array_distinct("replicas")).alias("broker")
    )
    here = newest(replicas.where(~f.col("is_future")), "broker").select(
        *PARTITION, "broker", "log_dir", f.col("size").alias("own_size")
    )
    known = model.select(
        *PARTITION, f.col("size").alias("usual_size"), "messages_in_mean", "bytes_in_mean", "bytes_out_mean"
    )
    leads = f.col("leader") == f.col("broker")
    found = (
        held.distinct()
        .join(here.dropDuplicates([*PARTITION, "broker"]), [*PARTITION, "broker"], "left")
        .join(known, [*PARTITION], "left")
    )
    return found.select(
        *PARTITION,
        "broker",
        "log_dir",
        leads.alias("leads"),
        f.coalesce("own_size", "usual_size").cast("double").alias("size"),
        _only(leads, "messages_in_mean").alias("messages_in"),
        f.col("bytes_in_mean").alias("bytes_in"),
        _only(leads, "bytes_out_mean").alias("bytes_out"),
    )


def _only(leads: Column, name: str) -> Column:
    return f.when(leads, f.col(name)).otherwise(0.0)


def brokers(disks: DataFrame) -> DataFrame:
    """Return cluster, broker, rack and log_dir of every broker in the last sample, empty ones too."""
    told = newest(disks, "broker")
    last = told.groupBy(CLUSTER).agg(f.max(AT).alias("last"))
    there = told.join(f.broadcast(last), CLUSTER).where(
        f.unix_micros(AT) >= f.unix_micros("last") - ONE_LOOK_S * 1_000_000
    )
    return there.select(CLUSTER, "broker", "rack", "log_dir").distinct()
