"""Collect from Apache Kafka 4.3.1 with TLS and a login: no file keeps the password."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from restow.client import ConnectionSettings, NewTopic, ask_cluster
from restow.pipeline.lake import Lake
from tests.apache.secured_cluster import LISTENERS, WORD, Secured, login, property_file, secured_kafka
from tests.conftest import needs_kafka
from tests.spark.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.apache, pytest.mark.full, pytest.mark.classic]

PART = WORD[:6]
"""Of the password: all of it may be there escaped."""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with ExitStack() as stack:
        with needs_kafka():
            made = stack.enter_context(secured_kafka(tmp_path_factory.mktemp("secured")))
        new = NewTopic(name="orders", partitions=3, replication_factor=1)
        ask_cluster(
            ConnectionSettings(bootstrap=made.cluster.at["PLAINTEXT"]),
            lambda admin: admin.create_topics([new]),
        )
        yield made


def test_collect_takes_a_sample_through_tls_and_scram(
    spark: SparkSession, secured: Secured, tmp_path: Path
) -> None:
    (tmp_path / "secrets").mkdir()
    properties = login("root", "SCRAM-SHA-512", LISTENERS["LOGIN"]) | secured.trust()
    config = property_file(tmp_path / "secrets", properties)
    work = tmp_path / "work"
    work.mkdir()
    command = [sys.executable, "-m", "restow", "collect", "--once", "--lake", str(work / "lake")]
    command += ["-b", secured.cluster.at["LOGIN"], "--command-config", config, "--json"]
    command += ["--master", "local[1]", "--spark-log", str(work / "spark.log")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    [sample] = [each for each in map(json.loads, done.stdout.splitlines()) if "sample" in each]
    assert sample["rows"]["assignment"] == 3
    assert Lake(spark, str(work / "lake")).read("assignment").count() == 3
    left = [path for path in work.rglob("*") if path.is_file()]
    assert work / "spark.log" in left
    assert not [path for path in left if PART.encode() in path.read_bytes()]
    assert PART not in done.stdout + done.stderr
