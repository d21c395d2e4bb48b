"""The load model as the planner reads it: one Parquet file per cluster, `FOLDER/<cluster>.parquet`.

Executors write the files: only file names pass through the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import functions as f

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.model.load import BYTES_IN, BYTES_OUT
from restow.model.load_parquet import FOLLOWING, HOURS, LEADING, REACHED
from restow.pipeline.files import lake_files, path_for
from restow.pipeline.names import file_name, value_of
from restow.pipeline.running import STATISTICS
from restow.pipeline.schemas import CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@frozen
class Loads:
    """What load models are made of: the jobs' results."""

    model: DataFrame
    hours: DataFrame | None = None
    reached: DataFrame | None = None


def load_rows(loads: Loads, *, made_ms: int, statistic: str = "mean") -> DataFrame:
    """Return one row per partition with the loads of leader and followers.

    The planner needs a number: an unknown load is 0, and `without_load` counts it. Followers receive what
    their leader does and send nothing; what they fetch is in the leader's bytes out. Loads by hour are in the
    first row of each topic.
    """
    if statistic not in STATISTICS:
        raise InvalidInput(f"there is no statistic {statistic!r}: there are {', '.join(STATISTICS)}")
    comes, goes = (f.coalesce(f"{name}_{statistic}", f.lit(0.0)) for name in (BYTES_IN, BYTES_OUT))
    rows = loads.model.select(
        CLUSTER,
        "topic",
        "partition",
        f.col(CLUSTER).alias("cluster_id"),
        f.lit(made_ms).cast("bigint").alias("made_ms"),
        comes.alias(BYTES_IN + LEADING),
        comes.alias(BYTES_IN + FOLLOWING),
        goes.alias(BYTES_OUT + LEADING),
        f.lit(0.0).alias(BYTES_OUT + FOLLOWING),
    )
    if loads.hours is not None:
        by_topic = loads.hours.join(_first_rows(loads.model, statistic), [CLUSTER, "topic"])
        hours = by_topic.select(CLUSTER, "topic", "partition", *map(_hours, (BYTES_IN, BYTES_OUT)))
        rows = rows.join(hours, [CLUSTER, "topic", "partition"], "left")
    if loads.reached is not None:
        most = (f.col(name).alias(name + REACHED) for name in (BYTES_IN, BYTES_OUT))
        rows = rows.join(f.broadcast(loads.reached.select(CLUSTER, *most)), CLUSTER, "left")
    return rows


def _first_rows(model: DataFrame, statistic: str) -> DataFrame:
    """Return each topic's first partition, and its mean load over the statistic that counts as its load."""
    scales = (
        (f.sum(f"{name}_mean") / f.nullif(f.sum(f"{name}_{statistic}"), f.lit(0.0))).alias(f"{name}_scale")
        for name in (BYTES_IN, BYTES_OUT)
    )
    return model.groupBy(CLUSTER, "topic").agg(f.min("partition").alias("partition"), *scales)


def _hours(name: str) -> Column:
    scaled = f.transform(name, lambda each: each * f.col(f"{name}_scale"))
    return f.when(f.col(f"{name}_scale").isNotNull(), scaled).alias(name + HOURS)


def without_load(model: DataFrame, statistic: str = "mean") -> int:
    """Return the number of partitions whose bytes in or out are unknown."""
    unknown = f.col(f"{BYTES_IN}_{statistic}").isNull() | f.col(f"{BYTES_OUT}_{statistic}").isNull()
    return model.where(unknown).count()


def write_load(loads: Loads, folder: str, *, made_ms: int, statistic: str = "mean") -> list[str]:
    """Write every cluster's load model to a folder, replacing older ones, and return the paths."""
    spark = loads.model.sparkSession
    files, root = lake_files(spark), path_for(spark, folder.rstrip("/"))
    staging = f"{root}/_staging-{uuid4().hex}"
    rows = load_rows(loads, made_ms=made_ms, statistic=statistic)
    written = []
    try:
        rows.repartition(CLUSTER).sortWithinPartitions(CLUSTER, "topic", "partition").write.partitionBy(
            CLUSTER
        ).parquet(staging)
        for path in files.within(staging):
            cluster = path.rpartition("/")[0].rpartition(f"{CLUSTER}=")[2]
            target = f"{root}/{file_name(value_of(cluster))}.parquet"
            files.remove(target)
            files.move(f"{staging}/{path}", target)
            written.append(target.removeprefix("file:"))
    finally:
        files.remove(staging)
    return sorted(written)
