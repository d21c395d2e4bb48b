"""Compare the tables of a lake with those that one run makes of the same samples."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.arrivals import arrive
from restow.model.load_parquet import read as read_load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from harness.arrivals import Part
    from restow.pipeline.jobs.rates import Windows
    from restow.pipeline.keeping import Keeper
    from restow.pipeline.lake import Lake

WINDOW = "15m"
TABLES = ("rates", "model", "skew", "forecast", "alerts")


def assert_equal_rows(ours: DataFrame, theirs: DataFrame, key: tuple[str, ...]) -> int:
    """Compare every column of every row; sums may differ by rounding. Return the number of rows."""
    found, expected = _by_key(ours, key), _by_key(theirs, key)
    assert found.keys() == expected.keys()
    for place, row in found.items():
        for name, value in row.items():
            assert same(value, expected[place][name]), (place, name, value, expected[place][name])
    return len(found)


def assert_keeps_what_all_samples_make(
    keeper: Keeper, lake: Lake, rates: DataFrame, windows: Windows
) -> None:
    """Compare what is kept of the rates and samples with what is made of all of them."""
    from restow.pipeline.answers import ANSWERING, newest_answers
    from restow.pipeline.jobs.hours import by_hour, reached
    from restow.pipeline.jobs.leadership import leadership
    from restow.pipeline.jobs.weeks import HOURS
    from restow.pipeline.work import Work

    record = keeper.kept.record()
    assert record is not None
    sums = keeper.sums(record)
    samples = {name: Work(lake).samples(name, distinct=False) for name in ANSWERING}
    assert assert_equal_rows(sums.hours, by_hour(rates), HOURS.key)
    runs = leadership(samples["assignment"])
    assert_equal_rows(sums.reached, reached(rates, runs, windows), ("cluster",))
    assert sums.answers == newest_answers(samples)


def _by_key(rows: DataFrame, key: tuple[str, ...]) -> dict[tuple[Any, ...], dict[str, Any]]:
    listed = rows.collect()
    found = {tuple(row[name] for name in key): row.asDict(recursive=True) for row in listed}
    assert len(found) == len(listed), "a key is there twice"
    return found


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def assert_as_in_one_run(
    spark: SparkSession, lake: Path, loads: Path, parts: Sequence[Part], folder: Path
) -> None:
    """Compare all tables and load models with those of `restow pipeline run` on all of these samples."""
    from restow.pipeline.jobs.forecast import ForecastLimits
    from restow.pipeline.lake import Lake
    from restow.pipeline.running import make_tables
    from restow.pipeline.schemas import table
    from restow.pipeline.work import Work

    arrive(folder / "lake", parts, seed=0)
    work = Work(Lake(spark, str(folder / "lake")))
    made = make_tables(
        work,
        window=WINDOW,
        limits=ForecastLimits(),
        load=str(folder / "loads"),
        statistic="mean",
        report=None,
    )
    ours = Lake(spark, str(lake))
    for name in TABLES:
        assert assert_equal_rows(ours.read(name), work.made(name), table(name).key), name
    assert {path.name for path in loads.glob("[!._]*")} == {Path(path).name for path in made.loads}
    for path in map(Path, made.loads):
        one, other = read_load(loads / path.name), read_load(path)
        assert one.partitions == other.partitions
        for name, resource in other.resources.items():
            found = one.resources[name]
            assert same(found.leading.tolist(), resource.leading.tolist()), name
            assert same(found.reached, resource.reached), name
            assert found.hours.keys() == resource.hours.keys(), name
            for topic, hours in resource.hours.items():
                assert np.allclose(found.hours[topic], hours, equal_nan=True), (name, topic)
