"""The fleet: a plan for every cluster in the lake, made by Spark's executors.

    assignment, replicas, model ─► one row per partition ─┐ by cluster
    disks ─► one row per log dir ─────────────────────────┴─► planner ─► a row per cluster, urgent ones first

One task plans one cluster, in one Python process, so a fleet takes as long as its largest cluster or as all
of them divided by the cores, whichever is longer. There are many more tasks than cores, because clusters
differ in size: one task with two large clusters would delay the whole job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from restow.pipeline.jobs.leadership import current, newest
from restow.pipeline.planning import GOALS, RESOURCES, FleetRequest, planned
from restow.pipeline.schemas import Table, arrow_schema, columns
from restow.pipeline.spark_types import tasks_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

TABLE = Table(
    name="fleet",
    key=("cluster",),
    sampled=False,
    columns=columns(
        "cluster string, at timestamp?, urgency double, because string, brokers int?, partitions int?",
        "replicas bigint?, size bigint?, offline int?, under_replicated int?, fullest double?",
        "fullest_where string?, without_load int?, moves int?, waves int?, copied bigint?, bound bigint?",
        "ratio double?, unmet int?",
        *(f"{goal}_{when} double?" for goal in GOALS for when in ("before", "after")),
        "plan string?, error string?",
    ),
)
"""`copied` and `bound` in bytes; before and after: the busiest broker's load in multiples of its share."""


def fleet(
    assignment: DataFrame,
    replicas: DataFrame,
    disks: DataFrame,
    model: DataFrame | None = None,
    asked: FleetRequest | None = None,
) -> DataFrame:
    """Return one row per cluster with its plan, the most urgent first.

    The tables are those of the lake; only the newest rows count.
    """
    asked = asked or FleetRequest()
    tasks = tasks_of(assignment.sparkSession)
    partitions = partition_rows(assignment, replicas, model, asked.measure).repartition(tasks, "cluster")
    brokers = broker_rows(disks).repartition(tasks, "cluster")
    grouped = partitions.groupBy("cluster").cogroup(brokers.groupBy("cluster"))
    plans = grouped.applyInArrow(_planner(asked), TABLE.schema)
    # Sorting would plan all clusters twice: first to sample the range of urgencies.
    return plans.repartition(1).sortWithinPartitions(f.desc("urgency"), "cluster")


def _planner(asked: FleetRequest) -> Callable[[Any, Any, Any], Any]:
    def plan(key: Any, partitions: Any, brokers: Any) -> Any:
        import pyarrow as pa

        row = planned(key[0].as_py(), partitions, brokers, asked)
        return pa.Table.from_pylist([row], schema=arrow_schema(TABLE.columns))

    return plan


def partition_rows(
    assignment: DataFrame, replicas: DataFrame, model: DataFrame | None, measure: str
) -> DataFrame:
    """Return one row per partition in its newest state: replicas, sizes, log dirs and load."""
    key = ["cluster", "topic", "partition"]
    copies = (
        newest(replicas, "broker")
        .groupBy(*key)
        .agg(f.collect_list(f.struct("broker", "log_dir", "size", "is_future")).alias("copies"))
    )
    rows = current(assignment).select(*key, "at", "leader", "replicas", "isr").join(copies, key, "left")
    if model is None:
        kind = ",".join(f"{each}_{role}:double" for each in RESOURCES for role in ("leading", "following"))
        return rows.withColumn("loads", f.lit(None).cast(f"struct<{kind}>"))
    return rows.join(loads_of(model, measure), key, "left")


def loads_of(model: DataFrame, measure: str) -> DataFrame:
    """Return the model's loads by the planner's names: followers write what leaders do, and send nothing.

    Unknown values are null.
    """
    coming, going = f.col(f"bytes_in_{measure}"), f.col(f"bytes_out_{measure}")
    loads = f.struct(
        coming.alias("bytes_in_leading"),
        coming.alias("bytes_in_following"),
        going.alias("bytes_out_leading"),
        f.lit(0.0).alias("bytes_out_following"),
    )
    return model.select(
        "cluster", "topic", "partition", f.when(coming.isNotNull() | going.isNotNull(), loads).alias("loads")
    )


def broker_rows(disks: DataFrame) -> DataFrame:
    """Return one row per log dir in its newest state, and one for a broker that never described its own."""
    return newest(disks, "broker").select("cluster", "broker", "rack", "log_dir", "total", "usable", "error")
