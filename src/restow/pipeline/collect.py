"""Collect samples of a cluster with Spark into a lake or a topic, each exactly once.

    cluster ─► restow.samples ─► kept by batch ─┬► lake, table by table     (idempotent by identity)
                                                └► topic, as JSON

After a kill a batch runs again with the same rows, and the lake counts them once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import functions as f

from restow.pipeline.checkpoints import Kept
from restow.pipeline.sampling.batches import GAPS, TABLE
from restow.pipeline.sampling.sample import GAPS_TOLD, Missing, Sample
from restow.pipeline.sampling.where import EVERY
from restow.pipeline.schemas import AT, SAMPLED, table
from restow.pipeline.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from restow.pipeline.lake import Lake

Put: TypeAlias = "Callable[[DataFrame, Mapping[str, int]], None]"
"""Writes the rows of a sample; it also gets the number of rows of each table."""

_ONCE_ONLY = "1 day"


def collecting(
    spark: SparkSession,
    options: Mapping[str, str],
    put: Put,
    said: Callable[[Sample], None],
    *,
    every_ms: int | None,
    checkpoint: str,
    most: int | None = None,
) -> Stream:
    """Return the stream, not yet started; `options` are those of the sources.

    It ends after `most` samples. Without `every_ms` it takes one sample at once.
    """
    kept = Kept(spark, checkpoint)
    reader = spark.readStream.format("restow.samples").options(**options)
    frame = reader.option(EVERY, f"{every_ms or 1}ms").load()

    def collect(sample: DataFrame, number: int) -> None:
        rows = kept.take(sample, number)
        summary = _summary(rows, number)
        put(rows, summary.rows)
        kept.forget_before(number)
        said(summary)

    return Stream(
        frame,
        collect,
        name="collecting",
        checkpoint=checkpoint,
        trigger={"processingTime": f"{every_ms} milliseconds" if every_ms else _ONCE_ONLY},
        may_skip=lambda number: not kept.has(number),
        most=most if every_ms else 1,
    )


def into_lake(lake: Lake) -> Put:
    """Return a function that writes each table's rows to the lake."""

    def put(rows: DataFrame, counts: Mapping[str, int]) -> None:
        for name, count in counts.items():
            if count:
                own = rows.where(f.col(TABLE) == name).select(*table(name).names)
                lake.write(own, name)

    return put


def _summary(rows: DataFrame, number: int) -> Sample:
    """Summarise a sample in a size that does not grow with the cluster: table counts and the first gaps."""
    told = rows.groupBy(TABLE).agg(
        f.count("*").alias("rows"),
        f.countDistinct(f.when(f.col("broker") >= 0, f.col("broker"))).alias("brokers"),
        f.unix_millis(f.max(AT)).alias("last_ms"),
    )
    counts = {row[TABLE]: row for row in told.collect()}
    gaps: tuple[Missing, ...] = ()
    if GAPS in counts:
        first = rows.where(f.col(TABLE) == GAPS).select("broker", "error").orderBy("broker").limit(GAPS_TOLD)
        gaps = tuple(Missing(broker=row.broker, reason=row.error) for row in first.collect())
    return Sample(
        number=number,
        at_ms=max((row["last_ms"] for row in counts.values()), default=None),
        brokers=max((row["brokers"] for row in counts.values()), default=0),
        rows={each.name: counts[each.name]["rows"] if each.name in counts else 0 for each in SAMPLED},
        gaps=gaps,
        gap_count=counts[GAPS]["rows"] if GAPS in counts else 0,
    )
