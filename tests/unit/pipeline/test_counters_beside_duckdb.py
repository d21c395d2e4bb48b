"""Rates of lakes with every fault, computed from the same readings as DuckDB's, without Spark."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from harness.duck import opened
from harness.lakes import write_faulty_lake
from restow.pipeline.jobs.side_by_side import rates_of

if TYPE_CHECKING:
    from pathlib import Path

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
    lists = {name: column.to_pylist() for name, column in made.items()}
    lists["at"] = made["at"].cast("int64").to_pylist()
    rows = list(zip(*lists.values(), strict=True))
    ours = {row[:4]: row[4:] for row in rows}
    assert len(ours) == len(rows) > 500
    assert ours.keys() == theirs.keys()
    for key, values in ours.items():
        for name, mine, other in zip(list(lists)[4:], values, theirs[key], strict=True):
            if mine is None or other is None:
                assert mine is other, (key, name, mine, other)
            else:
                assert math.isclose(mine, other, rel_tol=1e-6, abs_tol=1e-6), (key, name, mine, other)
