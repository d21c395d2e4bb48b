"""Compare the tables of a lake with those that one run makes of the same samples."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.arrivals import arrive
from restow.model.load_parquet import read as read_load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from harness.arrivals import Part

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
            assert same(one.resources[name].leading.tolist(), resource.leading.tolist()), name
