"""A Spark session with Restow's sources for each file of tests, and small tables for it.

Each file has its own session, because other folders start sessions too, and a process can have only one.
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from harness.spark import spark_session
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

START = datetime(2024, 9, 2, tzinfo=UTC)
"""Midnight on a Monday in the past."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start a session in local mode, on two cores."""
    from restow.pipeline.lake import SETTINGS
    from restow.pipeline.sources import register

    with ExitStack() as stack:
        with needs_kafka():
            session = stack.enter_context(spark_session(tmp_path_factory.mktemp("spark")))
        for name, value in SETTINGS.items():
            session.conf.set(name, value)
        register(session)
        yield session


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
