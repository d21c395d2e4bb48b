"""A writer into a lake of any kind, killed at random moments: readers see whole commits, and a repetition
adds what is missing."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from harness.lakes import SCHEMAS, write_faulty_lake
from restow.pipeline.address import DELTA, ICEBERG, PARQUET
from tests.spark.conftest import KINDS, lake_of_kind
from tests.spark.patience import PATIENCE_S, wait_for

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from restow.pipeline.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.classic, pytest.mark.full]

MOST_CHANGES = 60
"""More changes of the lake's files are seen while it is written."""
KILLS = 3


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", KINDS)
def test_killed_writer_leaves_whole_commits_and_is_repeated(
    spark: SparkSession, tmp_path: Path, kind: str, seed: int
) -> None:
    from restow.pipeline.lake import Lake

    write_faulty_lake(tmp_path / "source", seed=seed, clusters=2, topics=2, samples=24, every_s=3000)
    expected = {name: samples(Lake(spark, str(tmp_path / "source")), name) for name in SCHEMAS}
    place = lake_of_kind(kind, tmp_path)
    files = tmp_path / "lake"
    command = [sys.executable, "-m", "restow", "lake", "copy", "--lake", str(tmp_path / "source")]
    command += ["--to", place, "--master", "local[1]", "--json"]
    settings = {
        "spark.local.dir": str(tmp_path / "local"),
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    if kind == ICEBERG:
        settings |= catalog_of(spark)
        files = Path(settings["spark.sql.catalog.lakes.warehouse"]) / place.rpartition(".")[2]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    chance = random.Random(seed)
    for _ in range(KILLS):
        kill_after(command, files, chance.randrange(MOST_CHANGES), tmp_path / "stderr")
        lake = Lake(spark, place)
        for name, whole in expected.items():
            there = samples(lake, name)
            assert set(map(repr, there)) <= set(map(repr, whole)), name
            if kind in (DELTA, ICEBERG):
                assert len(there) in (0, len(whole)), name
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    lake = Lake(spark, place)
    for name, whole in expected.items():
        assert samples(lake, name) == whole, name
        if kind != PARQUET:
            assert lake.read(name, distinct=False).count() == len(whole), name


def samples(lake: Lake, name: str) -> list[Row]:
    """Return the samples that jobs see, in order."""
    from restow.pipeline.work import Work

    return sorted(Work(lake).samples(name).collect(), key=repr)


def catalog_of(spark: SparkSession) -> dict[str, str]:
    """Return the settings of the session's catalog of Iceberg tables."""
    names = ("", ".type", ".warehouse")
    return {name: str(spark.conf.get(name)) for name in (f"spark.sql.catalog.lakes{each}" for each in names)}


def kill_after(command: list[str], lake: Path, changes: int, complaints: Path) -> None:
    """Send kill -9 when the files of the lake have changed so often, or when the command has ended."""
    seen, last = 0, frozenset(map(str, lake.rglob("*")))
    with (
        complaints.open("w") as stderr,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr) as writer,
    ):

        def time_to_die() -> bool:
            nonlocal seen, last
            try:
                now = frozenset(map(str, lake.rglob("*")))
            except OSError:  # something is just moving
                return False
            seen, last = seen + (now != last), now
            return seen > changes or writer.poll() is not None

        try:
            wait_for(time_to_die, f"{changes} changes of the lake; {complaints.read_text()}")
        finally:
            children = psutil.Process(writer.pid).children(recursive=True) if writer.poll() is None else []
            writer.kill()
    assert writer.returncode in (0, -signal.SIGKILL), complaints.read_text()
    _, alive = psutil.wait_procs(children, PATIENCE_S)
    assert not alive, alive
