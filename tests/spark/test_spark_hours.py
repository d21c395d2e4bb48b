"""Loads by hour of the week and what brokers carried, computed by hand."""

from __future__ import annotations

from datetime import timedelta
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from restow.model.load_parquet import read
from tests.spark.conftest import START

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def rates_of(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    """Return rates; `at` is in hours after the start, which is midnight on a Monday."""
    from restow.pipeline.jobs.rates import TABLE

    usual = {"cluster": "c", "topic": "t", "partition": 0, "seconds": 300.0, "samples": 1}
    whole = []
    for row in rows:
        given = {**usual, **row, "at": START + timedelta(hours=row["at"])}
        whole.append(tuple(given.get(name) for name in TABLE.names))
    return spark.createDataFrame(whole, TABLE.schema)


def test_load_file_has_multiples_by_hour_and_the_most_a_broker_carried(
    spark: SparkSession, rows_of: Callable[..., DataFrame], tmp_path: Path
) -> None:
    from restow.pipeline.jobs.hours import by_hour, hours, hours_of_week, reached
    from restow.pipeline.jobs.leadership import leadership
    from restow.pipeline.jobs.model import model, model_of_hours
    from restow.pipeline.jobs.rates import Windows
    from restow.pipeline.load_files import Loads, write_load

    rates = rates_of(
        spark,
        [
            {"at": 0, "bytes_in": 30.0, "bytes_out": 60.0},
            {"at": 168, "bytes_in": 30.0, "bytes_out": 60.0},
            {"at": 1, "bytes_in": 10.0},
            # Sampled in one of the hours only: it says nothing about the other.
            {"at": 1, "bytes_in": 100.0, "partition": 1},
            {"at": 5, "topic": "idle", "bytes_in": 0.0},
        ],
    )
    assignment = rows_of(
        "assignment",
        [{"at": 0}, {"at": 0, "partition": 1}, {"at": 0, "topic": "idle"}],
    )
    most = reached(rates, leadership(assignment), Windows())
    at_once = Loads(model=model(rates, assignment), hours=hours(rates), reached=most)
    kept = by_hour(rates)
    by_way_of_hours = Loads(model=model_of_hours(kept, assignment), hours=hours_of_week(kept), reached=most)
    for loads, statistic, usual in (
        (at_once, "mean", 20.0),
        (at_once, "peak", 30.0),
        (by_way_of_hours, "mean", 20.0),
    ):
        [path] = write_load(loads, str(tmp_path / statistic), made_ms=7, statistic=statistic)
        found = read(Path(path)).resources
        shares = found["bytes_in"].hours
        assert set(shares) == {"t"}
        whole = (usual + 100) / 120
        assert shares["t"][[0, 1]].tolist() == pytest.approx([30 / 20 / whole, 110 / 120 / whole])
        assert sum(map(isnan, shares["t"])) == 166
        assert found["bytes_out"].hours["t"][0] == pytest.approx(1.0)
        assert (found["bytes_in"].reached, found["bytes_out"].reached) == (110.0, 60.0)


def test_windows_in_which_the_leader_changed_do_not_count_as_carried(
    spark: SparkSession, rows_of: Callable[..., DataFrame]
) -> None:
    from restow.pipeline.jobs.hours import reached
    from restow.pipeline.jobs.leadership import leadership
    from restow.pipeline.jobs.rates import Windows

    rates = rates_of(spark, [{"at": 0, "bytes_in": 7.0}, {"at": 1, "bytes_in": 90.0}])
    assignment = rows_of("assignment", [{"at": 0}, {"at": 3700, "leader": 2}])
    [row] = reached(rates, leadership(assignment), Windows()).collect()
    assert row["bytes_in"] == 7.0
