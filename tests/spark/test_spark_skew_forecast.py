"""Skew and forecasts: computed by hand, and compared with DuckDB on a lake with every fault."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from harness.duck import opened
from harness.lakes import write_faulty_lake
from tests.spark.conftest import START

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = pytest.mark.spark

DAY = 86_400


@pytest.fixture(scope="module")
def skewed(spark: SparkSession, rows_of: Callable[..., DataFrame]) -> dict[tuple[str, str, str], Row]:
    """Return tables: two partitions on brokers 1 and 2, the second one moved off 2; broker 3 is empty."""
    from restow.pipeline.jobs.model import TABLE
    from restow.pipeline.jobs.skew import skew

    replicas = [
        {"at": 0, "broker": 2, "partition": 1, "size": 999},
        {"at": 60, "broker": 1, "size": 100},
        {"at": 60, "broker": 1, "partition": 1, "size": 300, "log_dir": "/e"},
        {"at": 60, "broker": 2, "size": 100},
        {"at": 60, "broker": 2, "partition": 1, "size": 7, "is_future": True},
    ]
    assignment = [
        {"at": 60, "replicas": [1, 2]},
        {"at": 60, "partition": 1, "replicas": [1]},
        {"at": -900, "topic": "gone", "replicas": [1]},
    ]
    disks: list[dict[str, Any]] = [
        *({"at": 60, "broker": 1, "rack": "a", "log_dir": path} for path in ("/d", "/e")),
        {"at": 61, "broker": 2, "rack": "b"},
        {"at": 62, "broker": 3, "rack": "b"},
        {"at": -900, "broker": 9, "rack": "z"},
    ]
    model = [
        {
            "partition": 0,
            "bytes_in_mean": 10.0,
            "bytes_out_mean": 40.0,
            "samples": 1,
            "hours": 1,
            "confidence": 0.1,
        },
        {
            "partition": 1,
            "bytes_in_mean": 30.0,
            "bytes_out_mean": 0.0,
            "samples": 1,
            "hours": 1,
            "confidence": 0.1,
        },
    ]
    names = TABLE.schema.fieldNames()
    loads = [tuple(({"cluster": "c", "topic": "t"} | row).get(name) for name in names) for row in model]
    made = skew(
        rows_of("replicas", replicas),
        rows_of("assignment", assignment),
        rows_of("disks", disks),
        spark.createDataFrame(loads, TABLE.schema),
    )
    return {(row.dimension, row.measure, row.member): row for row in made.collect()}


def totals(skewed: dict[tuple[str, str, str], Row], dimension: str, measure: str) -> dict[str, float]:
    return {key[2]: row.total for key, row in skewed.items() if key[:2] == (dimension, measure)}


def test_skew_has_totals_of_every_dimension(skewed: dict[tuple[str, str, str], Row]) -> None:
    assert totals(skewed, "broker", "size") == {"1": 400.0, "2": 100.0, "3": 0.0}
    assert totals(skewed, "broker", "bytes_in") == {"1": 40.0, "2": 10.0, "3": 0.0}
    assert totals(skewed, "broker", "replicas") == {"1": 2.0, "2": 1.0, "3": 0.0}
    assert totals(skewed, "leader", "leaders") == {"1": 2.0, "2": 0.0, "3": 0.0}
    assert totals(skewed, "leader", "bytes_out") == {"1": 40.0, "2": 0.0, "3": 0.0}
    assert totals(skewed, "rack", "size") == {"a": 400.0, "b": 100.0}
    assert totals(skewed, "log_dir", "size") == {"1:/d": 100.0, "1:/e": 300.0, "2:/d": 100.0, "3:/d": 0.0}
    assert totals(skewed, "topic", "size") == {"t": 500.0}


def test_skew_compares_members_with_the_mean(skewed: dict[tuple[str, str, str], Row]) -> None:
    row = skewed["broker", "size", "1"]
    assert (row.mean, row.share, row.max_share) == (
        pytest.approx(500 / 3),
        pytest.approx(2.4),
        pytest.approx(2.4),
    )
    assert row.variation == pytest.approx(1.0198, rel=1e-4)
    assert skewed["broker", "size", "3"].share == 0.0


def test_skew_has_no_share_where_nobody_has_anything(skewed: dict[tuple[str, str, str], Row]) -> None:
    """Brokers 2 and 3 lead nothing, and what broker 1 takes in is not known."""
    rows = [skewed["broker", "messages_in", member] for member in "23"]
    assert [(row.total, row.share, row.variation) for row in rows] == [(0.0, None, 0.0)] * 2


def test_skew_is_shown_with_empty_brokers_before_those_near_their_share(spark: SparkSession) -> None:
    from restow.pipeline.jobs.skew import TABLE, furthest_first

    shares = {"1": 2.4, "2": 1.5, "3": 0.0, "4": None, "5": 0.9}
    rows = [("c", "broker", "size", who, 1.0, 0, 1.0, share, 2.4, 1.0, []) for who, share in shares.items()]
    found = furthest_first(spark.createDataFrame(rows, TABLE.schema)).collect()
    assert [row.member for row in found] == ["1", "3", "2", "5", "4"]


def test_skew_names_the_heaviest_partitions(skewed: dict[tuple[str, str, str], Row]) -> None:
    causes = skewed["broker", "size", "1"].causes
    assert [(each.topic, each.partition, each.value) for each in causes] == [("t", 1, 300.0), ("t", 0, 100.0)]
    assert skewed["broker", "size", "3"].causes == []


@pytest.fixture(scope="module")
def foreseen(rows_of: Callable[..., DataFrame]) -> dict[tuple[str, int], Row]:
    from restow.pipeline.jobs.forecast import ForecastLimits, forecast
    from restow.pipeline.jobs.rates import rates

    disks = []
    for day in range(5):
        for broker, used in ((1, 100 * day), (2, 500 - 10 * day), (3, 100 * day + 40 * (day % 2)), (4, 950)):
            disks.append({"at": DAY * day, "broker": broker, "usable": 1000 - used})
    disks.append({"at": DAY, "broker": 5, "log_dir": None, "total": None, "error": "it did not answer"})
    # 10 B/s in the first hour, one more in each hour that follows.
    sizes = [sum(range(10, 10 + hour)) * 3600 for hour in range(6)]
    replicas = rows_of(
        "replicas", [{"at": 3599 + 3600 * hour, "size": size} for hour, size in enumerate(sizes)]
    )
    assignment = rows_of("assignment", [{"at": 3600 * 6, "replicas": [1, 2]}])
    limits = ForecastLimits(fill=0.9, rates={"bytes_in": 38.0, "bytes_out": 38.0})
    made = forecast(rows_of("disks", disks), rates(replicas, assignment), assignment, limits)
    return {(row.measure, row.broker): row for row in made.collect()}


def test_forecast_of_steady_growth_is_exact(foreseen: dict[tuple[str, int], Row]) -> None:
    row = foreseen["disk", 1]
    assert (row.now, row.limit, row.hours) == (400.0, 900.0, 5)
    assert (row.growth, row.error) == (pytest.approx(100.0), pytest.approx(0.0, abs=1e-6))
    full = (START + timedelta(days=4 + 5)).replace(tzinfo=None)
    assert abs(row.passes - full) <= timedelta(seconds=1)
    assert abs(row.soonest - row.latest) <= timedelta(seconds=2)


def test_forecast_of_a_shrinking_log_dir_has_no_date(foreseen: dict[tuple[str, int], Row]) -> None:
    row = foreseen["disk", 2]
    assert (row.growth, row.passes, row.soonest) == (pytest.approx(-10), None, None)


def test_forecast_of_uneven_growth_has_a_band(foreseen: dict[tuple[str, int], Row]) -> None:
    row = foreseen["disk", 3]
    assert row.soonest < row.passes < row.latest


def test_forecast_of_a_passed_limit_is_the_last_sample(foreseen: dict[tuple[str, int], Row]) -> None:
    row = foreseen["disk", 4]
    assert row.passes == row.soonest == row.latest == row.last


def test_forecast_of_a_broker_that_never_answered_has_a_reason(
    foreseen: dict[tuple[str, int], Row],
) -> None:
    row = foreseen["disk", 5]
    assert (row.passes, row.now, row.why) == (None, None, "it did not answer")


def test_forecast_says_when_brokers_pass_a_rate_limit(foreseen: dict[tuple[str, int], Row]) -> None:
    row = foreseen["bytes_in", 2]
    assert (row.growth, row.now) == (pytest.approx(24.0), pytest.approx(14.0))
    assert abs(row.passes - row.last - timedelta(days=1)) <= timedelta(seconds=1)
    assert ("bytes_out", 2) not in foreseen
    assert foreseen["bytes_out", 1].now == pytest.approx(14.0)


FORECASTS = """
    with told as (select distinct * from disks where total is not null),
    hours as (select cluster, broker, log_dir, epoch(moment)::bigint // 3600 as h, avg(total - usable) v
              from told group by all),
    last as (select cluster, broker, log_dir, arg_max(total - usable, moment) as now from told group by all)
    select cluster, broker, log_dir, now, regr_slope(v, h / 24), count(*)
    from hours join last using (cluster, broker, log_dir) group by all"""
TOTALS = """
    with held as (
        select distinct cluster, topic, partition, leader, unnest(replicas) broker from assignment
        where (cluster, moment) in (select (cluster, max(moment)) from assignment group by cluster)),
    sizes as (
        select distinct cluster, topic, partition, broker, size from replicas
        where not is_future and (cluster, broker, moment) in (
            select (cluster, broker, max(moment)) from replicas where not is_future
            group by cluster, broker)),
    placed as (
        select *, leader = broker leads from held left join sizes using (cluster, topic, partition, broker))
    select cluster, broker::varchar, 'replicas', count(*) from placed group by all
    union all select cluster, broker::varchar, 'leaders', count(*) filter (leads) from placed group by all
    union all select cluster, broker::varchar, 'size', sum(coalesce(size, 0)) from placed group by all"""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faulty")
    write_faulty_lake(folder, seed=3, samples=40, every_s=900)
    return folder


def test_forecasts_equal_those_of_duckdb(spark: SparkSession, faulty: Path) -> None:
    from restow.pipeline.jobs.forecast import forecast
    from restow.pipeline.lake import Lake

    lake = Lake(spark, str(faulty))
    made = forecast(lake.read("disks"), lake.read("replicas"), lake.read("assignment")).where(
        "now is not null"
    )
    ours = {
        tuple(row[:3]): tuple(row[3:])
        for row in made.select("cluster", "broker", "log_dir", "now", "growth", "hours").collect()
    }
    with opened(faulty) as db:
        theirs = {row[:3]: row[3:] for row in db.execute(FORECASTS).fetchall()}
    assert ours.keys() == theirs.keys()
    assert len(ours) == 2 * 6 * 2
    for key, (now, growth, hours) in ours.items():
        assert (now, hours) == (theirs[key][0], theirs[key][2])
        assert growth == pytest.approx(theirs[key][1], rel=1e-6)


def test_skew_totals_equal_those_of_duckdb(spark: SparkSession, faulty: Path) -> None:
    from restow.pipeline.jobs.model import TABLE
    from restow.pipeline.jobs.skew import skew
    from restow.pipeline.lake import Lake

    lake = Lake(spark, str(faulty))
    tables = (lake.read(name) for name in ("replicas", "assignment", "disks"))
    made = skew(*tables, spark.createDataFrame([], TABLE.schema)).where("dimension = 'broker' and total > 0")
    ours = {tuple(row[:3]): row[3] for row in made.select("cluster", "member", "measure", "total").collect()}
    with opened(faulty) as db:
        theirs = {row[:3]: row[3] for row in db.execute(TOTALS).fetchall() if row[3] > 0}
    assert ours == theirs
    assert len(ours) > 20


def test_what_is_there_now_is_found_in_the_newest_looks(
    spark: SparkSession,
    rows_of: Callable[..., DataFrame],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Broker 2 is silent since the second day, and its replicas are still known. What came before, and on the
    third day, tells nothing new."""
    from restow.pipeline.jobs.leadership import newest
    from restow.pipeline.jobs.model import TABLE
    from restow.pipeline.lake import Lake
    from restow.pipeline.work import Work

    lake = Lake(spark, str(tmp_path))
    days = [DAY * day for day in range(5)]
    there = {broker: days if broker == 1 else days[:2] for broker in (1, 2)}
    answers = [{"at": at, "broker": broker} for broker, times in there.items() for at in times]
    lake.write(
        rows_of("replicas", [each | {"size": each["at"] + each["broker"]} for each in answers]), "replicas"
    )
    lake.write(rows_of("disks", [each | {"usable": 500, "rack": "a"} for each in answers]), "disks")
    lake.write(
        rows_of("assignment", [{"at": at, "replicas": [1, 2], "isr": [1], "leader": 1} for at in days]),
        "assignment",
    )
    lake.write(spark.createDataFrame([], TABLE.schema), "model")

    def found(*, all_days: bool) -> list[list[Row]]:
        monkeypatch.setattr("restow.pipeline.work.is_small", lambda _: all_days)
        work = Work(lake)
        read = work.newest("replicas").select("at").distinct().collect()
        assert len(read) == (5 if all_days else 3)
        skewed = work.skew().collect()
        silent = newest(work.newest("disks"), "broker").where("broker = 2").collect()
        assert len(silent) == 1
        return [sorted(rows, key=str) for rows in (skewed, silent)]

    assert found(all_days=False) == found(all_days=True)
