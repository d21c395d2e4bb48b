"""The tables as a declarative pipeline, which Spark's own `spark-pipelines` runs, equal those of a batch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from harness.jars import pyspark_jar
from harness.lakes import write_faulty_lake
from restow.cli import run
from restow.sizes import milliseconds
from tests.spark.kept_tables import TABLES, WINDOW, assert_equal_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.classic, pytest.mark.full]


def test_declared_tables_equal_those_of_a_batch(
    spark: SparkSession,
    tmp_path: Path,
    rows_of: Callable[..., DataFrame],
    capsys: pytest.CaptureFixture[str],
) -> None:
    from restow.pipeline.jobs.forecast import ForecastLimits
    from restow.pipeline.jobs.rates import Windows
    from restow.pipeline.lake import Lake
    from restow.pipeline.schemas import table
    from restow.pipeline.work import Work

    lake = tmp_path / "lake"
    write_faulty_lake(lake, seed=1, clusters=2, topics=2, samples=24, every_s=3000)
    Lake(spark, str(lake)).write(rows_of("replicas", [{"at": 0, "size": -1}]), "replicas")
    made = spark_pipelines(tmp_path, lake, capsys)
    work = Work(Lake(spark, str(lake)))
    limits = ForecastLimits(rates={"bytes_in": 1e6, "bytes_out": 5e6})
    assert [*work.run(Windows(seconds=milliseconds(WINDOW, "") // 1000), limits)] == [*TABLES]
    for name in TABLES:
        about = table(name)
        declared = spark.read.parquet(str(made / name)).select(*about.names)
        assert assert_equal_rows(declared, work.made(name), about.key), name
    found = spark.read.parquet(str(made / "checks")).collect()
    kept = {row["table"]: row["rows"] for row in found if row["left_out_because"] is None}
    assert kept.keys() == {"replicas", "offsets", "assignment", "groups", "disks", *TABLES}
    dropped = {(row["table"], row["left_out_because"]): row["rows"] for row in found}
    assert {place: rows for place, rows in dropped.items() if place[1]} == {
        ("replicas", "a size is negative"): 1
    }
    assert {each.table: each.rows - sum(each.dropped.values()) for each in work.checked} == kept


def spark_pipelines(folder: Path, lake: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Declare and run a pipeline, and return the folder of its tables."""
    tables = folder / "tables"
    settings = {"spark.sql.warehouse.dir": str(tables), "spark.sql.shuffle.partitions": "2"}
    conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    asked = ["pipeline", "declare", str(folder / "declared"), "--lake", str(lake), "--window", WINDOW]
    asked += ["--limit", "bytes_in=1MB/s", "--limit", "bytes_out=5MB/s", "--json"]
    capsys.readouterr()
    assert run([*asked, *conf]) == 0
    script, *words = json.loads(capsys.readouterr().out)["run"]
    home = pyspark_jar("spark-core*.jar").parents[1]
    command = [str(home / "bin" / script)]
    for setting in ("spark.driver.host=127.0.0.1", "spark.ui.enabled=false", f"spark.local.dir={folder}"):
        command += ["--conf", setting]
    environment = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [*command, *words],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-10_000:]
    return tables
