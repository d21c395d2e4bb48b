"""What a rehearsal needs beside the load model: loads by hour of the week, and what brokers have carried.

rates ─► by topic and hour of the week ─► multiples of the topic's mean
rates, leaders ─► by broker and window ─► the most that any broker carried
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from restow.model.load import BYTES_IN, BYTES_OUT, WEEK_HOURS
from restow.pipeline.jobs.leadership import PARTITION, leadership
from restow.pipeline.jobs.rates import leaders
from restow.pipeline.jobs.weeks import topic_hours_of
from restow.pipeline.schemas import AT, CLUSTER, arrow_schema, columns
from restow.pipeline.spark_types import struct_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import Column, DataFrame

    from restow.pipeline.jobs.rates import Windows

_RATES = (BYTES_IN, BYTES_OUT)
_SUMS = columns(
    "cluster string, topic string, hour bigint",
    *(f"{name}{kind} double" for name in _RATES for kind in ("", "_usual")),
)
"""What a worker tells of its partitions, to be added up."""


def hours(rates: DataFrame) -> DataFrame:
    """Return cluster, topic, and for each rate an array of 168 multiples of the mean, null where unknown.

    An hour's multiple compares the partitions that were sampled in it with their own means, so that a
    partition without samples in some hour makes it look neither calm nor busy.
    """
    found = rates.select(*PARTITION, AT, "seconds", *_RATES).repartition(*PARTITION)
    sums = found.mapInArrow(_topic_hours, struct_of(_SUMS)).groupBy(CLUSTER, "topic", "hour")
    multiples = sums.agg(*(_multiple(name).alias(name) for name in _RATES))
    return multiples.groupBy(CLUSTER, "topic").agg(*(_week(name).alias(name) for name in _RATES))


def _topic_hours(batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa

    listed = [batch for batch in batches if batch.num_rows]
    if listed:
        made = topic_hours_of(pa.Table.from_batches(listed))
        yield pa.RecordBatch.from_pydict(made, schema=arrow_schema(_SUMS))


def _multiple(name: str) -> Column:
    usual = f.sum(f"{name}_usual")
    return f.when(usual > 0, f.sum(name) / usual)


def _week(name: str) -> Column:
    known = f.when(f.col(name).isNotNull(), f.struct("hour", name))
    by_hour = f.map_from_entries(f.collect_list(known))
    numbers = f.sequence(f.lit(0), f.lit(WEEK_HOURS - 1))
    week = f.transform(numbers, lambda hour: f.try_element_at(by_hour, hour.cast("bigint")))
    return f.when(f.count(name) > 0, week)


def reached(rates: DataFrame, assignment: DataFrame, windows: Windows) -> DataFrame:
    """Return per cluster the most that any broker carried as a leader in a window: bytes_in, bytes_out.

    Only partitions with one leader during the whole window count, and no followers: it was at least this.
    """
    begins_us = f.unix_micros(AT)
    led = rates.join(leaders(leadership(assignment), windows), [*PARTITION]).where(
        (f.col("leader") >= 0)
        & (f.col("begins_us") <= begins_us)
        & (f.col("ends_us") >= begins_us + windows.seconds * 1_000_000)
    )
    carried = led.groupBy(CLUSTER, "leader", AT).agg(*(f.sum(name).alias(name) for name in _RATES))
    return carried.groupBy(CLUSTER).agg(*(f.max(name).alias(name) for name in _RATES))
