"""The load model as the planner reads it: one Parquet file per cluster, `FOLDER/<cluster>.parquet`.

Executors write the files: only file names pass through the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import functions as f

from restow.errors import InvalidInput
from restow.model.load import BYTES_IN, BYTES_OUT
from restow.model.load_parquet import FOLLOWING, LEADING
from restow.pipeline.files import LakeFiles
from restow.pipeline.names import file_name, value_of
from restow.pipeline.schemas import CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STATISTICS = ("mean", "p95", "peak")


def load_rows(model: DataFrame, *, made_ms: int, statistic: str = "mean") -> DataFrame:
    """Return one row per partition with the loads of leader and followers.

    The planner needs a number: an unknown load is 0, and `without_load` counts it. Followers receive what
    their leader does and send nothing; what they fetch is in the leader's bytes out.
    """
    if statistic not in STATISTICS:
        raise InvalidInput(f"there is no statistic {statistic!r}: there are {', '.join(STATISTICS)}")
    comes, goes = (f.coalesce(f"{name}_{statistic}", f.lit(0.0)) for name in (BYTES_IN, BYTES_OUT))
    return model.select(
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


def without_load(model: DataFrame, statistic: str = "mean") -> int:
    """Return the number of partitions whose bytes in or out are unknown."""
    unknown = f.col(f"{BYTES_IN}_{statistic}").isNull() | f.col(f"{BYTES_OUT}_{statistic}").isNull()
    return model.where(unknown).count()


def write_load(model: DataFrame, folder: str, *, made_ms: int, statistic: str = "mean") -> list[str]:
    """Write every cluster's load model to a folder, replacing older ones, and return the paths."""
    files = LakeFiles(model.sparkSession)
    root = files.plain(folder)
    staging = f"{root}/_staging-{uuid4().hex}"
    rows = load_rows(model, made_ms=made_ms, statistic=statistic)
    written = []
    try:
        rows.repartition(CLUSTER).sortWithinPartitions(CLUSTER, "topic", "partition").write.partitionBy(
            CLUSTER
        ).parquet(staging)
        for path in files.within(staging):
            cluster = path.rpartition("/")[0].rpartition(f"{CLUSTER}=")[2]
            target = f"{root}/{file_name(value_of(cluster))}.parquet"
            files.remove(target)
            files.move(path, target)
            written.append(target.removeprefix("file:"))
    finally:
        files.remove(staging)
    return sorted(written)
