"""Unknown values are gaps and never zeros, from rates to the report; forecasts give the reason."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.conftest import START

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

EVERY = 30
TIMES = range(0, 10 * EVERY, EVERY)
SILENT_UNTIL = 2 * EVERY


@pytest.fixture(scope="module")
def tables(rows_of: Callable[..., DataFrame]) -> dict[str, DataFrame]:
    """Return tables of a constant load, 1,500 B/s in and 4,500 B/s out. One broker is silent at first."""
    replicas, offsets, groups, assignment = [], [], [], []
    for at in TIMES:
        for partition, rate in ((0, 1000), (1, 500)):
            own: dict[str, Any] = {"partition": partition, "broker": partition + 1}
            assignment.append({"partition": partition, "at": at + 1, "leader": partition + 1})
            groups.append({"partition": partition, "at": at + 3, "committed": 10 * at})
            if partition == 0 or at >= SILENT_UNTIL:
                replicas.append(own | {"at": at + 2, "size": rate * (at + EVERY)})
                offsets.append(own | {"at": at + 2, "latest": 10 * (at + EVERY)})
    disks = [{"at": at + 2, "broker": broker} for at in TIMES for broker in (1, 2, 3)]
    found = {
        "replicas": replicas,
        "offsets": offsets,
        "groups": groups,
        "assignment": assignment,
        "disks": disks,
    }
    return {name: rows_of(name, rows) for name, rows in found.items()}


@pytest.fixture(scope="module")
def rates_of_it(tables: dict[str, DataFrame]) -> DataFrame:
    from restow.pipeline.jobs.rates import Windows, rates

    made = rates(
        tables["replicas"],
        tables["assignment"],
        tables["offsets"],
        tables["groups"],
        Windows(seconds=EVERY),
    )
    return made.cache()


def test_rates_of_a_constant_load_are_constant_or_null(rates_of_it: DataFrame) -> None:
    rows = rates_of_it.collect()
    for partition, rate in ((0, 1000.0), (1, 500.0)):
        own = sorted((row for row in rows if row.partition == partition), key=lambda row: row.at)
        for name, expected in (("bytes_in", rate), ("bytes_consumed", rate), ("bytes_out", 3 * rate)):
            found = [getattr(row, name) for row in own]
            known = [value for value in found if value is not None]
            assert found[0] is None, name
            assert known == pytest.approx([expected] * len(known)), (partition, name, found)
            assert len(known) >= 7


def test_bytes_out_is_null_where_commits_are_unknown(
    tables: dict[str, DataFrame], rows_of: Callable[..., DataFrame]
) -> None:
    """The coordinator is silent for a while; before the first commit consumers fetch nothing."""
    from restow.pipeline.jobs.rates import Windows, rates

    told = [4 * EVERY, 5 * EVERY, 8 * EVERY, 9 * EVERY]
    groups = rows_of("groups", [{"at": at + 3, "committed": 10 * at} for at in told])
    made = rates(tables["replicas"], tables["assignment"], tables["offsets"], groups, Windows(seconds=EVERY))
    own = sorted((row for row in made.collect() if row.partition == 0), key=lambda row: row.at)
    out = [row.bytes_out for row in own]
    assert out[0] is None
    assert out[1:4] == pytest.approx([2000.0] * 3), "followers only"
    assert out[4] is None, "the first commit is no rate yet"
    assert out[5] == pytest.approx(3000.0)
    assert out[6:8] == [None, None], "nobody knows what was read meanwhile"
    assert out[8:] == pytest.approx([3000.0] * 2)


def test_report_draws_a_constant_load_as_a_level_line(
    tables: dict[str, DataFrame], rates_of_it: DataFrame
) -> None:
    from restow.pipeline.report import traffic_of

    rows = traffic_of(rates_of_it, tables["assignment"]).orderBy("at").collect()
    assert len(rows) == len(TIMES)
    for name, expected in (("bytes_in", 1500.0), ("bytes_out", 4500.0)):
        values = [row[name] for row in rows]
        assert values[:3] == [None, None, None], "nothing, then one of two brokers, then its first sample"
        assert values[3:] == pytest.approx([expected] * (len(TIMES) - 3)), name


def test_skew_counts_unknown_partitions_and_not_as_zero(
    spark: SparkSession, tables: dict[str, DataFrame], rates_of_it: DataFrame
) -> None:
    from restow.pipeline.jobs.model import TABLE, model
    from restow.pipeline.jobs.skew import skew

    known = model(rates_of_it, tables["assignment"])
    told = tables["replicas"], tables["assignment"], tables["disks"]
    rows = {
        (row.measure, row.member): row for row in skew(*told, known).where("dimension = 'leader'").collect()
    }
    assert rows["bytes_in", "1"].total == pytest.approx(1000.0)
    assert (rows["bytes_in", "3"].total, rows["bytes_in", "3"].unknown) == (0.0, 0), "it leads nothing"
    nothing = spark.createDataFrame([], TABLE.schema)
    rows = {
        (row.measure, row.member): row for row in skew(*told, nothing).where("dimension = 'leader'").collect()
    }
    assert (rows["bytes_in", "1"].total, rows["bytes_in", "1"].share) == (None, None)
    assert rows["bytes_in", "1"].unknown == 1
    assert rows["leaders", "1"].total == 1.0


@pytest.fixture(scope="module")
def reasons(rows_of: Callable[..., DataFrame]) -> dict[int, Any]:
    """Return one log dir per broker, each with another reason for a missing date."""
    from restow.pipeline.jobs.forecast import forecast

    hour = 3600
    disks: list[dict[str, Any]] = []
    for at in range(4):
        disks += [
            {"at": hour * at, "broker": 1, "usable": 900},
            {"at": hour * at, "broker": 2, "usable": 500 + at},
            {"at": hour * at, "broker": 3, "total": None, "usable": None},
            {"at": hour * at, "broker": 4, "log_dir": None, "total": None, "error": "it did not answer"},
            {"at": hour * at, "broker": 5, "total": 10**15, "usable": 10**15 - at},
            {"at": hour * at, "broker": 8, "usable": 900 - 100 * (at % 2) - at},
        ]
    disks += [{"at": 0, "broker": 6, "usable": 900}, {"at": 60, "broker": 6, "usable": 800}]
    disks += [{"at": hour * at, "broker": 7, "usable": 900 - at} for at in range(2)]
    disks += [{"at": 0, "broker": 8, "log_dir": None, "total": None, "error": "it was away once"}]
    nothing = rows_of("assignment", [])
    made = forecast(rows_of("disks", disks), nothing, nothing).collect()
    assert len(made) == 8
    return {row.broker: row for row in made}


@pytest.mark.parametrize(
    ("broker", "why"),
    [
        (1, "it does not grow"),
        (2, "it shrinks"),
        (3, "its broker does not tell the size of the disk, as Kafka does from 3.3 on"),
        (4, "it did not answer"),
        (5, "more than a century away"),
        (6, "seen in 1 of 2 hours needed"),
    ],
)
def test_forecast_without_a_date_gives_the_reason(reasons: dict[int, Any], broker: int, why: str) -> None:
    from restow.pipeline.findings import note

    row = reasons[broker]
    assert (row.passes, row.why) == (None, why)
    assert note(row.asDict()) == why


def test_forecast_from_two_hours_has_no_band_and_gives_the_reason(reasons: dict[int, Any]) -> None:
    from restow.pipeline.findings import note

    row = reasons[7]
    assert (row.why, row.soonest, row.latest) == (None, None, None)
    assert row.passes > START.replace(tzinfo=None) + timedelta(days=1)
    assert note(row.asDict()) == "no band: seen in 2 of 3 hours needed"


def test_forecast_without_a_latest_date_gives_the_reason(reasons: dict[int, Any]) -> None:
    from restow.pipeline.findings import note

    row = reasons[8]
    assert row.soonest < row.passes
    assert (row.latest, row.why_latest, row.why_soonest) == (None, "it shrinks", None)
    assert note(row.asDict()) == "no latest: it shrinks at that end of the band"
