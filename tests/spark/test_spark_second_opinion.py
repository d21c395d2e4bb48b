"""Rates and load models of lakes with every fault, compared with DuckDB on the same files."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import pytest

from harness.duck import opened
from harness.lakes import write_faulty_lake

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SLOPES = ["cluster", "topic", "partition", "growth", "size"]
BY_REGRESSION = """
    select cluster, topic, partition, regr_slope(size, epoch(moment) / 86400), arg_max(size, moment)
    from rates where size is not null group by all
"""
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 8))]


def by_key(columns: list[str], rows: Iterable[Any], keys: int) -> dict[tuple[Any, ...], dict[str, Any]]:
    found = {}
    for row in rows:
        values = [value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value for value in row]
        assert tuple(values[:keys]) not in found
        found[tuple(values[:keys])] = dict(zip(columns[keys:], values[keys:], strict=True))
    return found


def assert_same(ours: DataFrame, theirs: Any, columns: list[str], keys: int) -> int:
    """Compare row by row and column by column, apart from rounding. Return the number of rows.

    The rounding of a slope is relative to the height of the line, not to the slope.
    """
    mine = by_key(columns, ours.select(*columns).collect(), keys)
    other = by_key(columns, theirs.fetchall(), keys)
    assert mine.keys() == other.keys()
    for key, row in mine.items():
        for name, value in row.items():
            said = other[key][name]
            if isinstance(value, float) and said is not None:
                last = 1e-9 * (row.get("size") or 0) if name == "growth" else 0.0
                close = math.isclose(value, said, rel_tol=1e-6, abs_tol=max(last, 1e-6))
                assert close, (key, name, value, said)
            else:
                assert value == said, (key, name, value, said)
    return len(mine)


@pytest.mark.parametrize("seed", SEEDS)
def test_rates_and_models_equal_those_of_duckdb(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    from restow.pipeline.jobs.model import TABLE as MODEL
    from restow.pipeline.jobs.model import model, model_of_samples
    from restow.pipeline.jobs.rates import TABLE as RATES
    from restow.pipeline.jobs.rates import rates
    from restow.pipeline.lake import Lake

    write_faulty_lake(tmp_path, seed=seed)
    lake = Lake(spark, str(tmp_path))
    tables = [lake.read(name, distinct=False) for name in ("replicas", "assignment", "offsets", "groups")]
    made = rates(*tables).cache()
    columns = RATES.schema.fieldNames()
    with opened(tmp_path) as db:
        quoted = ", ".join("moment" if name == "at" else name for name in columns)
        theirs = db.execute(f"select {quoted} from rates")  # noqa: S608
        assert assert_same(made, theirs, columns, 4) > 500
        known = made.agg({"bytes_in": "count", "bytes_consumed": "count", "messages_in": "count"}).first()
        assert known is not None
        assert min(known) > 100
        columns = MODEL.schema.fieldNames()
        quoted = ", ".join(f'"{name}"' for name in columns)
        theirs = db.execute(f"select {quoted} from model")  # noqa: S608
        assert assert_same(model(made, tables[1]), theirs, columns, 3) == 30
        theirs = db.execute(f"select {quoted} from model")  # noqa: S608
        assert assert_same(model_of_samples(*tables), theirs, columns, 3) == 30
        theirs = db.execute(BY_REGRESSION)
        assert_same(model(made, tables[1]), theirs, SLOPES, 3)
    made.unpersist()


def test_readers_of_the_assignment_share_one_shuffle(spark: SparkSession, tmp_path: Path) -> None:
    """Four readers have one shuffle: leaders, those that change, partitions, and topics that are there."""
    from restow.pipeline.jobs.model import model_of_samples
    from restow.pipeline.lake import Lake

    write_faulty_lake(tmp_path, seed=1)
    lake = Lake(spark, str(tmp_path))
    names = ("replicas", "assignment", "offsets", "groups")
    made = model_of_samples(*(lake.read(name, distinct=False) for name in names))
    made.collect()
    plan = made._jdf.queryExecution().executedPlan().treeString()
    again = re.findall(r"ReusedExchange \[cluster#\d+, topic#\d+, partition#\d+, max#", plan)
    assert len(again) == 3, plan
