"""Rehearsals: plans in thousands of variants, made by Spark's executors.

    plans, snapshots, loads ─► packed ────┐
    numbers of plan and variant ──────────┴─► rehearsal ─► a row each ─► over all seeds ─► a row per variant

A task rehearses some hundred variants. What they share, each worker computes once for a plan.
"""

from __future__ import annotations

import pickle
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as f

from restow.pipeline.schemas import Table, arrow_schema, columns
from restow.pipeline.spark_types import tasks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from restow.rehearse.variants import PlanToRehearse, Variant

_VARIANT = ("cluster", "plan", "throttle", "start_ms", "what_if")

TABLE = Table(
    name="rehearsals",
    key=(*_VARIANT, "seed"),
    sampled=False,
    columns=columns(
        "cluster string, plan string, throttle string, start_ms bigint, what_if string, seed int",
        "seconds double, impact double?, leaders_moved int, fullest double?, limited_by string?",
        "problems array<string>",
    ),
)
"""`plan` is the digest. Seconds are infinite where a run never ends. `fullest` is the peak of a log dir as a
share of what the plan allows. `impact` is null without a load model."""


def rehearsals(
    spark: SparkSession, plans: Sequence[PlanToRehearse], variants: Sequence[Variant]
) -> DataFrame:
    """Return one row for each plan and variant."""
    many = len(plans) * len(variants)
    tasks = min(many, tasks_of(spark))
    packed = zlib.compress(pickle.dumps((list(plans), list(variants))), level=1)
    numbers = spark.range(0, many, 1, max(1, tasks))
    return numbers.mapInArrow(_rehearser(packed), TABLE.schema)


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> tuple[list[PlanToRehearse], list[Variant]]:
    """Return plans and variants. A worker does this once for all of its tasks."""
    found: tuple[list[PlanToRehearse], list[Variant]] = pickle.loads(zlib.decompress(packed))  # noqa: S301
    return found


def _rehearser(packed: bytes) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def rehearse(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        from restow.rehearse.variants import VariantRehearsals

        schema = arrow_schema(TABLE.columns)
        plans, variants = _unpacked(packed)
        ready: dict[int, VariantRehearsals] = {}
        for batch in batches:
            for number in batch.column(0).to_pylist():
                plan, variant = divmod(number, len(variants))
                if plan not in ready:
                    ready = {plan: VariantRehearsals(plans[plan])}
                yield pa.RecordBatch.from_pylist([ready[plan].row(variants[variant])], schema=schema)

    return rehearse


def by_variant(rows: DataFrame) -> DataFrame:
    """Return one row per variant: the time over all seeds, the impact, and whether no other beats it.

    A variant is on the frontier if it has no problems and no other such variant of the same plan and the same
    fault is both faster and cheaper. Without a load model that is the fastest one.
    """
    ends = {"p10": 0.1, "p50": 0.5, "p90": 0.9}
    seconds = [
        f.expr(f"percentile_disc({share}) within group (order by seconds)").alias(name)
        for name, share in ends.items()
    ]
    found = rows.groupBy(*_VARIANT).agg(
        f.count("*").cast("int").alias("rehearsals"),
        *seconds,
        f.expr("percentile_disc(0.5) within group (order by impact)").alias("impact"),
        f.max("leaders_moved").alias("leaders_moved"),
        f.max("fullest").alias("fullest"),
        f.max_by("limited_by", -f.col("seed")).alias("limited_by"),
        f.count_if(f.size("problems") > 0).cast("int").alias("with_problems"),
        f.expr("min_by(problems, seed) filter (where size(problems) > 0)").alias("problems"),
    )
    good = f.col("with_problems") == 0
    cost = f.coalesce("impact", f.lit(0.0))
    faster = Window.partitionBy("cluster", "plan", "what_if", good).orderBy(
        "p50", cost, "start_ms", "throttle"
    )
    least = f.min(cost).over(faster.rowsBetween(Window.unboundedPreceding, -1))
    frontier = good & (least.isNull() | (cost < least))
    return found.withColumn("frontier", frontier).withColumn("start", f.timestamp_millis("start_ms"))
