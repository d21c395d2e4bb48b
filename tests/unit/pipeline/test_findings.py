"""What the jobs have found, read without Spark: hand-worked tables, and lakes with something wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from restow.errors import LakeFailed
from restow.pipeline.findings import read_findings, stamps

if TYPE_CHECKING:
    from pathlib import Path

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
RATES = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("at", TIME),
        ("seconds", pa.float64()),
        ("bytes_in", pa.float64()),
        ("bytes_out", pa.float64()),
    ]
)
MODEL = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("last", TIME),
        ("bytes_in_mean", pa.float64()),
        ("bytes_out_mean", pa.float64()),
    ]
)
FORECAST = pa.schema(
    [
        ("measure", pa.string()),
        ("broker", pa.int32()),
        ("log_dir", pa.string()),
        ("limit", pa.float64()),
        ("now", pa.float64()),
        *((name, TIME) for name in ("last", "passes", "soonest", "latest")),
    ]
)


def write(
    lake: Path, name: str, rows: list[dict[str, Any]], schema: pa.Schema, cluster: str = "c%3A1"
) -> None:
    folder = lake / name / "v1" / f"cluster={cluster}"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "part-0.parquet")


def rate(hour: int, partition: int, comes: float | None, seconds: float = 300.0) -> dict[str, Any]:
    at = MONDAY + timedelta(hours=hour)
    return {"topic": "t", "partition": partition, "at": at, "seconds": seconds, "bytes_in": comes}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two partitions, the second one sampled in one hour only; cluster `c:1`, as folders escape it."""
    mean = {"topic": "t", "last": MONDAY}
    model = [
        {**mean, "partition": 0, "bytes_in_mean": 20.0},
        {**mean, "partition": 1, "bytes_in_mean": 100.0},
    ]
    write(tmp_path, "model", model, MODEL)
    rates = [rate(0, 0, 30.0), rate(168, 0, 30.0), rate(1, 0, 10.0), rate(1, 1, 100.0), rate(25, 0, None)]
    write(tmp_path, "rates", rates, RATES)
    return tmp_path


def test_hours_compare_the_partitions_that_were_sampled_with_their_means(lake: Path) -> None:
    week = read_findings(str(lake), "c:1").week
    assert set(week) == {"bytes_in"}  # no partition's bytes out are known
    hours = {hour: value for hour, value in enumerate(week["bytes_in"]) if value is not None}
    # 30 of 20 is 1.5 times what is usual; all partitions have 120. In the other hour, 110 of 120.
    assert hours == {0: pytest.approx(180.0), 1: pytest.approx(110.0)}


def test_load_is_the_mean_of_the_model(lake: Path) -> None:
    load = read_findings(str(lake), "c:1").load
    assert load is not None
    assert (load.cluster_id, list(map(str, load.partitions))) == ("c:1", ["t-0", "t-1"])
    assert load.resources["bytes_in"].following.tolist() == [20.0, 100.0]
    assert load.resources["bytes_out"].leading.tolist() == [0.0, 0.0]


def test_forecast_has_the_soonest_first(lake: Path) -> None:
    never: dict[str, Any] = {"measure": "disk", "log_dir": "/d", "last": MONDAY, "limit": 10.0}
    rows = [
        {**never, "broker": 1, "now": 2.0},
        {**never, "broker": 2, "now": 8.0},
        {**never, "broker": 3, "now": 9.0, "passes": MONDAY + timedelta(days=2)},
        {**never, "broker": 4, "now": 9.0, "passes": MONDAY + timedelta(days=1)},
    ]
    write(lake, "forecast", rows, FORECAST)
    found = read_findings(str(lake), "c:1").forecast
    assert [each["broker"] for each in found] == [4, 3, 2, 1]
    assert found[0]["passes"] == int((MONDAY + timedelta(days=1)).timestamp() * 1000)


def test_lake_that_is_missing_empty_damaged_or_of_another_cluster_says_so(lake: Path, tmp_path: Path) -> None:
    for path, cluster, words in (
        (lake, "other", r"is of other clusters \(c:1\), not of other"),
        (tmp_path / "nowhere", "c:1", "there is no lake at"),
        (tmp_path / "rates" / "v1", "c:1", "has no samples"),
    ):
        with pytest.raises(LakeFailed, match=words):
            read_findings(str(path), cluster)
    (tmp_path / "model" / "v1" / "cluster=c%3A1" / "part-0.parquet").write_bytes(b"PAR1 junk PAR1")
    with pytest.raises(LakeFailed, match=r"part-0\.parquet cannot be read"):
        read_findings(str(lake), "c:1")


def test_stamps_change_with_the_tables(lake: Path) -> None:
    before = stamps(str(lake), "c:1")
    assert before
    assert stamps(str(lake), "c:1") == before
    write(lake, "forecast", [], FORECAST)
    assert stamps(str(lake), "c:1") != before
    assert stamps(str(lake), "other") == ()
