"""The load model: each partition's load, from its rates by hour of the week.

Each of the week's 168 hours counts once, however often it was sampled, so that a night with many samples does
not hide a day with few:

- mean: the mean over the hours of the week
- p95: 95% of the hours of the week have no busier window than this
- peak: the busiest window

All rates of a partition come to one worker, which computes with whole columns (`weeks.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from restow.pipeline.jobs.leadership import PARTITION, existing
from restow.pipeline.jobs.rates import Windows, rates_in, readings
from restow.pipeline.jobs.weeks import READ, hours_of, weeks_of
from restow.pipeline.jobs.workers import in_workers
from restow.pipeline.schemas import Table, columns

if TYPE_CHECKING:
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


def model(rates: DataFrame, assignment: DataFrame) -> DataFrame:
    """Return one row per existing partition; without samples its values are null."""
    weeks = in_workers(TABLE.columns, hours_of, weeks_of)
    found = rates.select(*READ).repartition(*PARTITION)
    return _of_existing(found.mapInArrow(weeks, TABLE.schema), assignment)


def model_of_hours(hours: DataFrame, assignment: DataFrame) -> DataFrame:
    """Return the model of the rates that these hours sum up."""
    weeks = in_workers(TABLE.columns, weeks_of)
    return _of_existing(hours.repartition(*PARTITION).mapInArrow(weeks, TABLE.schema), assignment)


def model_of_samples(
    replicas: DataFrame,
    assignment: DataFrame,
    offsets: DataFrame | None = None,
    groups: DataFrame | None = None,
    windows: Windows = Windows(),  # noqa: B008 (frozen)
    *,
    few_leaders: bool = True,
) -> DataFrame:
    """Return the model of the rates of these samples, without a table of rates in between.

    The workers that compute rates go on with them, so that only one row per partition comes back.
    `few_leaders` is what `has_few_runs` says of the assignment.
    """
    weeks = in_workers(TABLE.columns, rates_in(windows), hours_of, weeks_of)
    found = readings(replicas, assignment, offsets, groups, few_leaders=few_leaders)
    return _of_existing(found.repartition(*PARTITION).mapInArrow(weeks, TABLE.schema), assignment)


def _of_existing(known: DataFrame, assignment: DataFrame) -> DataFrame:
    complete = existing(assignment).join(known, on=[*PARTITION], how="left")
    return complete.select(*(_column(name) for name in TABLE.names))


def _column(name: str) -> Column:
    """Return a column of a partition that may be without samples."""
    least = {"samples": f.lit(0).cast("bigint"), "hours": f.lit(0), "confidence": f.lit(0.0)}
    return (f.coalesce(name, least[name]) if name in least else f.col(name)).alias(name)
