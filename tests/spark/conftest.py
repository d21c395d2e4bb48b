"""Small tables for the Spark session of the tests, and lakes of all kinds."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from harness.spark_releases import OLDEST
from harness.table_formats import CATALOG, FORMATS
from restow.pipeline.address import DELTA, PARQUET
from restow.pipeline.jars import spark_release
from tests.spark.patience import PATIENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

KINDS = (PARQUET, *FORMATS)
"""The kinds of lakes that the pyspark in use can have."""
collect_ignore = [] if FORMATS else ["test_spark_lake_formats.py"]
if spark_release() == OLDEST:
    collect_ignore += ["test_spark_declared.py"]

START = datetime(2024, 9, 2, tzinfo=UTC)
"""Midnight on a Monday in the past."""


def lake_of_kind(kind: str, folder: Path) -> str:
    """Return the place of a lake that does not exist yet."""
    if kind == PARQUET:
        return str(folder / "lake")
    return f"{kind}:{folder / 'lake'}" if kind == DELTA else f"{kind}:{CATALOG}.lake_{uuid4().hex}"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the timeouts, so that a busy machine causes no gap."""
    for name, value in PATIENT.items():
        monkeypatch.setenv(f"RESTOW_CLIENT_{name.upper().replace('.', '_')}", value)


@pytest.fixture(scope="module")
def same_session(spark: SparkSession) -> Iterator[None]:
    """Let commands use the test's session instead of starting one each."""

    @contextmanager
    def given(*about: object, **more: object) -> Iterator[SparkSession]:
        yield spark

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("restow.cli.pipeline.options.spark_for", given)
        yield


@pytest.fixture(scope="module")
def rows_of(spark: SparkSession) -> Callable[..., DataFrame]:
    """Return a function that makes a sampled table; missing columns get the values of a healthy cluster."""
    from restow.pipeline.schemas import table

    usual: dict[str, dict[str, Any]] = {
        "replicas": {"broker": 1, "log_dir": "/d", "offset_lag": 0, "is_future": False},
        "offsets": {"broker": 1, "leader_epoch": 0, "earliest": 0},
        "assignment": {"leader": 1, "replicas": [1, 2, 3], "isr": [1, 2, 3]},
        "groups": {"group": "g", "state": "Stable"},
        "disks": {"broker": 1, "log_dir": "/d", "total": 1000},
    }

    def made(name: str, rows: list[dict[str, Any]]) -> DataFrame:
        """`at` is in seconds after the start."""
        schema = table(name).schema
        partition = {} if name == "disks" else {"topic": "t", "partition": 0}
        whole = []
        for row in rows:
            given = {"cluster": "c", **partition, **usual[name], **row}
            given["at"] = START + timedelta(seconds=given["at"])
            whole.append(tuple(given.get(column) for column in schema.fieldNames()))
        return spark.createDataFrame(whole, schema)

    return made
