"""The tests of the pipeline on other Sparks: the oldest release, and a Connect server.

The oldest release also has runtimes for lakes of Iceberg and Delta tables, which the newest lacks.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.java import java
from harness.spark_releases import OLDEST, need_connect, pyspark_folder
from tests.conftest import needs_kafka

pytestmark = [pytest.mark.spark, pytest.mark.classic]

ROOT = Path(__file__).parents[2]
ALL = ("tests/spark", "-m", "not full")
LAKE = ("tests/spark/test_spark_lake.py", "-k", "compaction_leaves or killed_compaction or failed_write")
TABLES = ("tests/spark/test_spark_lake_formats.py", "-k", "arrive_meanwhile")
PATIENCE_S = 3 * 3600


@pytest.mark.timeout(PATIENCE_S)
@pytest.mark.parametrize(
    ("release", "mode", "tests"),
    [
        pytest.param(None, "connect", LAKE, id="connect-quick"),
        pytest.param(OLDEST, "classic", TABLES, id="oldest-quick"),
        pytest.param(None, "connect", ALL, id="connect", marks=pytest.mark.full),
        pytest.param(OLDEST, "classic", ALL, id="oldest", marks=pytest.mark.full),
        pytest.param(OLDEST, "connect", ALL, id="oldest-connect", marks=pytest.mark.full),
    ],
)
def test_pipeline_passes_its_tests_on(release: str | None, mode: str, tests: tuple[str, ...]) -> None:
    with needs_kafka():
        java()
        if mode == "connect":
            need_connect()
        before = [] if release is None else [str(pyspark_folder(release))]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment.pop("RESTOW_CASES", None)
    environment["PYTHONPATH"] = os.pathsep.join([*before, str(ROOT / "src"), str(ROOT)])
    environment["RESTOW_SPARK"] = mode
    itself = str(Path(__file__).relative_to(ROOT))
    options = ["-q", "-p", "no:cacheprovider", "--deselect", itself]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
    assert " passed" in done.stdout
