"""The load model: each partition's load, from its rates by hour of the week.

Each of the week's 168 hours counts once, however often it was sampled, so that a night with many samples does
not hide a day with few:

- mean: the mean over the hours of the week
- p95: 95% of the hours of the week have no busier window than this
- peak: the busiest window

All rates of a partition come to one worker, which computes with whole columns (`weeks.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from restow.pipeline.jobs.leadership import PARTITION, existing
from restow.pipeline.jobs.rates import Windows, rates_in_workers, readings
from restow.pipeline.jobs.weeks import weeks_of
from restow.pipeline.schemas import AT, Table, arrow_schema, columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import Column, DataFrame

TABLE = Table(
    name="model",
    key=PARTITION,
    sampled=False,
    columns=columns(
        "cluster string, topic string, partition int, size bigint?, growth double?",
        "messages_in_mean double?, bytes_in_mean double?, bytes_in_p95 double?, bytes_in_peak double?",
        "bytes_out_mean double?, bytes_out_p95 double?, bytes_out_peak double?, samples bigint, hours int",
        "first timestamp?, last timestamp?, confidence double",
    ),
)
"""Sizes in bytes, rates per second, growth in bytes per day. `hours` counts the sampled hours of the week.

`confidence` is the sampled part of the week, times the part of the time between the first and the last sample
that counts: 1 after a week without gaps.
"""

_READ = (*PARTITION, AT, "seconds", "samples", "size", "messages_in", "bytes_in", "bytes_out")
"""The columns of rates that the model needs."""


def model(rates: DataFrame, assignment: DataFrame) -> DataFrame:
    """Return one row per existing partition; without samples its values are null."""
    return _of_existing(
        rates.select(*_READ).repartition(*PARTITION).mapInArrow(_weeks, TABLE.schema), assignment
    )


def model_of_samples(
    replicas: DataFrame,
    assignment: DataFrame,
    offsets: DataFrame | None = None,
    groups: DataFrame | None = None,
    windows: Windows = Windows(),  # noqa: B008 (frozen)
) -> DataFrame:
    """Return the model of the rates of these samples, without a table of rates in between.

    The workers that compute rates go on with them, so that only one row per partition comes back.
    """
    rated = rates_in_workers(windows)

    def weeks(batches: Iterable[Any]) -> Iterator[Any]:
        return _weeks(rated(batches))

    found = readings(replicas, assignment, offsets, groups, windows)
    return _of_existing(found.repartition(*PARTITION).mapInArrow(weeks, TABLE.schema), assignment)


def _weeks(batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa

    listed = [batch for batch in batches if batch.num_rows]
    if listed:
        made = weeks_of(pa.Table.from_batches(listed))
        yield pa.RecordBatch.from_pydict(made, schema=arrow_schema(TABLE.columns))


def _of_existing(known: DataFrame, assignment: DataFrame) -> DataFrame:
    complete = existing(assignment).join(known, on=[*PARTITION], how="left")
    return complete.select(*(_column(name) for name in TABLE.names))


def _column(name: str) -> Column:
    """Return a column of a partition that may be without samples."""
    least = {"samples": f.lit(0).cast("bigint"), "hours": f.lit(0), "confidence": f.lit(0.0)}
    return (f.coalesce(name, least[name]) if name in least else f.col(name)).alias(name)
