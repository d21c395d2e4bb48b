"""Rates and models of lakes with every fault, computed from the same rows as DuckDB's, without Spark."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from harness.duck import opened
from harness.lakes import write_faulty_lake
from restow.pipeline.jobs.side_by_side import rates_of
from restow.pipeline.jobs.weeks import hours_of, weeks_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from typing import Any

READINGS = """
    select cluster, topic, "partition", kind::int kind, who as name, t as at_us, v as value,
           (hash(guard) >> 1)::bigint guard, low as floor, epoch, followers::int followers
    from readings union all by name select * from (
        select cluster, topic, "partition", kind::int kind, who as name, t as at_us, v as value,
               (hash(guard) >> 1)::bigint guard, low as floor, epoch, followers::int followers
        from readings using sample 10 percent (bernoulli, 7))
"""
COLUMNS = """cluster, topic, "partition", epoch_us(moment) as "at", seconds, samples, size, messages_in,
             bytes_in, bytes_consumed, bytes_replicated, bytes_out"""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rates_equal_those_of_duckdb_from_the_same_readings(tmp_path: Path, seed: int) -> None:
    """Some readings are repeated; the order is DuckDB's own."""
    write_faulty_lake(tmp_path, seed=seed)
    with opened(tmp_path) as db:
        made = rates_of(db.sql(READINGS).to_arrow_table(), 7200.0, 300)
        theirs = {row[:4]: row[4:] for row in db.execute(f"select {COLUMNS} from rates").fetchall()}  # noqa: S608
    made["at"] = made["at"].cast("int64")
    lists = {name: column.to_pylist() for name, column in made.items()}
    assert_same(lists, theirs, keys=4, at_least=500)


RATES = """cluster, topic, "partition", make_timestamptz(epoch_us(moment)) as "at",
           seconds::double as "seconds", samples, size, messages_in, bytes_in, bytes_out"""
WEEKS = """cluster, topic, "partition", size, growth, messages_in_mean, bytes_in_mean, bytes_in_p95,
           bytes_in_peak, bytes_out_mean, bytes_out_p95, bytes_out_peak, samples, hours,
           epoch_us("first") as "first", epoch_us("last") as "last", confidence"""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_weeks_equal_those_of_duckdb_from_the_same_rates(tmp_path: Path, seed: int) -> None:
    """Rates come in any order. A partition that is gone is in our weeks, and in no model of DuckDB's."""
    write_faulty_lake(tmp_path, seed=seed)
    with opened(tmp_path) as db:
        rates = db.sql(f"select {RATES} from rates order by hash(size, moment)").to_arrow_table()  # noqa: S608
        hours = hours_of(rates)
        made = weeks_of(shuffled(pa.table(hours), seed))
        theirs = {row[:3]: row[3:] for row in db.execute(f"select {WEEKS} from model").fetchall()}  # noqa: S608
    made |= {name: made[name].cast("int64") for name in ("first", "last")}
    names = [name.split('"')[1] if '"' in name else name for name in WEEKS.replace("\n", " ").split(", ")]
    known = {key: values for key, values in theirs.items() if values[9]}
    lists = {name.strip(): made[name.strip()].to_pylist() for name in names}
    assert_same(lists, known, keys=3, at_least=20)


def shuffled(rows: pa.Table, seed: int) -> pa.Table:
    order = [*range(rows.num_rows)]
    random.Random(seed).shuffle(order)
    return rows.take(order)


def assert_same(
    lists: dict[str, Sequence[Any]], theirs: dict[Any, Iterable[Any]], *, keys: int, at_least: int
) -> None:
    """Compare our columns with their rows by key; the rounding of a slope is relative to the height."""
    names = list(lists)[keys:]
    rows = list(zip(*lists.values(), strict=True))
    ours = {row[:keys]: row[keys:] for row in rows}
    assert len(ours) == len(rows) >= at_least
    assert ours.keys() == theirs.keys()
    for key, values in ours.items():
        size = dict(zip(names, values, strict=True))["size"] or 0
        for name, mine, other in zip(names, values, theirs[key], strict=True):
            last = max(1e-6, 1e-9 * size) if name == "growth" else 1e-6
            if mine is None or other is None:
                assert mine is other, (key, name, mine, other)
            else:
                assert math.isclose(mine, other, rel_tol=1e-6, abs_tol=last), (key, name, mine, other)
