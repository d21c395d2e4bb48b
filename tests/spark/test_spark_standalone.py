"""A real Spark cluster, a master and two workers, makes the same tables as local mode."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import restow
from harness.jars import pyspark_jar
from harness.lakes import write_faulty_lake
from harness.spark_cluster import spark_cluster
from tests.conftest import needs_kafka

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.classic]

TABLES = ("rates", "model", "skew", "forecast", "alerts", "fleet", "lab")
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
SMALL = {"spark.executor.memory": "500m", "spark.sql.shuffle.partitions": "4", "spark.driver.memory": "700m"}
WORK = """
import sys
from pathlib import Path
from restow.pipeline.lake import Lake
from restow.pipeline.planning import FleetRequest
from restow.pipeline.session import conf_from, session
from restow.pipeline.work import Work
lake, master, log, *conf = sys.argv[1:]
with session("test", master=master, conf=conf_from(conf), log=Path(log)) as spark:
    work = Work(Lake(spark, lake))
    assert list(work.run()) == ["rates", "model", "skew", "forecast", "alerts"]
    work.lake.write(work.fleet(FleetRequest(seconds=600)), "fleet")
    work.lake.write(work.lab(["range", "sticky"]), "lab")
"""


def work_on(lake: Path, master: str, log: Path) -> None:
    conf = [f"{name}={value}" for name, value in (LOOPBACK | SMALL).items()]
    done = subprocess.run(
        [sys.executable, "-c", WORK, str(lake), master, str(log), *conf],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]


def rows_of(lake: Path, name: str) -> list[Any]:
    """Return all rows, sorted and rounded: sums of floats may differ in their last digits."""
    table = pq.read_table(lake / name / "v1")
    rows = [{key: _rounded(value) for key, value in row.items()} for row in table.to_pylist()]
    return sorted(rows, key=lambda row: json.dumps(row, default=str, sort_keys=True))


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return value


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_standalone_cluster_makes_the_same_tables(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    write_faulty_lake(here, clusters=3, topics=3, samples=20)
    shutil.copytree(here, there)
    with needs_kafka():
        work_on(here, "local[2]", tmp_path / "local.log")
        with spark_cluster(tmp_path / "cluster") as master:
            work_on(there, master, tmp_path / "standalone.log")
            _submit(tmp_path / "there", master)
    for name in TABLES:
        mine = rows_of(here, name)
        assert len(mine) > 2, name
        assert rows_of(there, name) == mine, name


def _submit(lake: Path, master: str) -> None:
    """Run the package's program with spark-submit, which sets the master."""
    submit = pyspark_jar("spark-core*.jar").parents[1] / "bin" / "spark-submit"
    conf = [word for name, value in (LOOPBACK | SMALL).items() for word in ("--conf", f"{name}={value}")]
    program = str(Path(restow.__path__[0]) / "__main__.py")
    done = subprocess.run(
        [str(submit), "--master", master, *conf, program, "pipeline", "skew", "--lake", str(lake), "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1])["skew"]
