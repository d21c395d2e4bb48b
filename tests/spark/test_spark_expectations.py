"""Alerts, and what is checked in each run: by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.conftest import START

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from restow.pipeline.schemas import Table

pytestmark = pytest.mark.spark

HOUR = 3600


def frame(spark: SparkSession, about: Table, *rows: dict[str, Any]) -> DataFrame:
    return spark.createDataFrame([tuple(row.get(name) for name in about.names) for row in rows], about.schema)


def test_rows_that_cannot_be_are_left_out_and_counted(spark: SparkSession, tmp_path: Path) -> None:
    from restow.pipeline.expectations import REPEATED
    from restow.pipeline.jobs.model import TABLE
    from restow.pipeline.lake import Lake
    from restow.pipeline.work import Work

    good = {"cluster": "c", "topic": "t", "samples": 1, "hours": 1, "confidence": 0.5}
    known = {"bytes_in_mean": 1.0, "bytes_out_mean": 1.0}
    rows = frame(
        spark,
        TABLE,
        {"partition": 0} | good | known,
        {"partition": 1} | good,
        {"partition": 1} | good,
        {"partition": 2} | good | {"bytes_in_mean": -1.0},
        {"partition": 3} | good | {"confidence": 1.5},
    )
    work = Work(Lake(spark, str(tmp_path)))
    kept = work.keep("model", rows)
    assert sorted(row.partition for row in kept.collect()) == [0, 1]
    (checked,) = work.checked
    reasons = {"a rate is negative": 1, "the confidence is not between 0 and 1": 1, REPEATED: 1}
    assert checked.dropped == reasons
    assert checked.document() == {"table": "model", "rows": 5, "unknown_share": 0.8, "dropped": reasons}


def test_table_without_rows_is_checked_too(spark: SparkSession, tmp_path: Path) -> None:
    from restow.pipeline.lake import Lake
    from restow.pipeline.work import Work

    work = Work(Lake(spark, str(tmp_path)))
    assert work.keep("forecast", work.forecast()).isEmpty()
    (checked,) = work.checked
    assert checked.document() == {"table": "forecast", "rows": 0, "unknown_share": 0.0, "dropped": {}}


def test_samples_that_cannot_be_stay_in_the_lake_and_no_job_sees_them(
    spark: SparkSession, tmp_path: Path, rows_of: Callable[..., DataFrame]
) -> None:
    from restow.pipeline.lake import Lake
    from restow.pipeline.work import Work

    lake = Lake(spark, str(tmp_path))
    lake.write(rows_of("replicas", [{"at": 0, "size": 5}, {"at": 60, "size": -1}]), "replicas")
    lake.write(
        rows_of("offsets", [{"at": 0, "earliest": 5, "latest": 4}, {"at": 60, "latest": 9}]), "offsets"
    )
    work = Work(lake)
    assert [row["size"] for row in work.samples("replicas").collect()] == [5]
    assert [row["latest"] for row in work.samples("offsets").collect()] == [9]
    work.check_samples()
    dropped = {each.table: dict(each.dropped) for each in work.checked if each.dropped}
    assert dropped == {
        "replicas": {"a size is negative": 1},
        "offsets": {"the log ends before it begins": 1},
    }
    assert lake.read("replicas").count() == 2


def test_alerts_name_what_is_wrong_now_or_soon(
    spark: SparkSession, rows_of: Callable[..., DataFrame]
) -> None:
    from datetime import timedelta

    from restow.pipeline.jobs import forecast, model, skew
    from restow.pipeline.jobs.alerts import CRITICAL, WARNING, alerts, most_severe_first

    assignment = rows_of(
        "assignment",
        [
            {"at": 0, "partition": 0, "leader": -1, "isr": []},
            {"at": 0, "partition": 1, "isr": [1, 2]},
            {"at": 0, "partition": 2},
        ],
    )
    disks = rows_of(
        "disks",
        [
            {"at": 0, "usable": 500},
            {"at": 0, "broker": 2, "log_dir": None, "total": None, "error": "it did not answer"},
        ],
    )
    line = {"cluster": "c", "measure": "disk", "broker": 1, "limit": 900.0, "hours": 9, "last": START}
    days = [timedelta(days=number) for number in (0, 6, 8)]
    forecasts = frame(
        spark,
        forecast.TABLE,
        line | {"log_dir": "/full", "now": 950.0, "passes": START + days[0]},
        line | {"log_dir": "/soon", "now": 500.0, "passes": START + days[1]},
        line | {"log_dir": "/later", "now": 500.0, "passes": START + days[2]},
        line | {"log_dir": "/never", "now": 500.0},
    )
    share = {"cluster": "c", "dimension": "broker", "measure": "size", "unknown": 0, "causes": []}
    skews = frame(
        spark,
        skew.TABLE,
        share | {"member": "1", "share": 1.8},
        share | {"member": "2", "share": 0.2},
        share | {"member": "t", "share": 3.0, "dimension": "topic"},
    )
    load = {"cluster": "c", "topic": "t", "samples": 1, "hours": 1, "confidence": 0.5, "bytes_in_mean": 1.0}
    models = frame(
        spark, model.TABLE, load | {"partition": 0}, load | {"partition": 1, "bytes_out_mean": 1.0}
    )
    rows = most_severe_first(alerts(assignment, disks, models, skews, forecasts)).collect()
    assert [(row["severity"], row["kind"], row["subject"]) for row in rows] == [
        (CRITICAL, "limit passed", "1:/full"),
        (CRITICAL, "broker silent", "2"),
        (CRITICAL, "partitions offline", "t"),
        (WARNING, "limit near", "1:/soon"),
        (WARNING, "load unknown", "t"),
        (WARNING, "out of band", "1"),
        (WARNING, "partitions under-replicated", "t"),
    ]
    says = {row["kind"]: row["says"] for row in rows}
    assert says["limit near"] == "/soon of broker 1 passes its limit on 2024-09-08 00:00"
    assert says["broker silent"] == "broker 2 did not describe its log dirs: it did not answer"
    assert says["load unknown"] == "the load of 1 of 2 partitions of t is not known"
    assert says["out of band"] == "broker 1 has 1.80 × its share of size"
