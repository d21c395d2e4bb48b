"""The pipeline's rates and load model in DuckDB's SQL: a second implementation to compare with.

Written from what the tables mean, not from how the jobs compute them.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

_SQL = Path(__file__).with_name("duck.sql")
_NOTHING = {
    "offsets": "null::varchar cluster, null::timestamp moment, null::int broker, null::varchar topic, "
    "null::int partition, null::int leader_epoch, null::bigint earliest, null::bigint latest",
    "groups": 'null::varchar cluster, null::timestamp moment, null::varchar "group", null::varchar topic, '
    "null::int partition, null::bigint committed",
}


def opened(lake: Path, *, window_s: int = 300, gap_s: float = 7200.0) -> duckdb.DuckDBPyConnection:
    """Return a connection with the sampled tables of a lake and the views `rates` and `model`.

    `at` is called `moment` there, because it is a DuckDB keyword.
    """
    db = duckdb.connect()
    db.execute("set timezone = 'UTC'")
    for table in ("replicas", "offsets", "assignment", "groups", "disks"):
        files = lake / table / "v1"
        if files.exists():
            where = f"read_parquet('{files}/cluster=*/day=*/*.parquet', hive_partitioning = true)"
            source = f'select * rename ("at" as moment) from {where}'  # noqa: S608 (a folder of ours)
            db.execute(f"create temp view {table} as {source}")
        elif table in _NOTHING:
            db.execute(f"create temp view {table} as select {_NOTHING[table]} limit 0")
    db.execute(f"set variable gap_us = {int(gap_s * 1e6)}; set variable window_us = {window_s * 1_000_000}")
    db.execute(_SQL.read_text())
    return db
