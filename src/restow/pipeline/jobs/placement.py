"""The current place and load of every replica."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from restow.pipeline.jobs.leadership import PARTITION, current, newest, of_last_look
from restow.pipeline.schemas import CLUSTER

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
    return of_last_look(newest(disks, "broker")).select(CLUSTER, "broker", "rack", "log_dir").distinct()
