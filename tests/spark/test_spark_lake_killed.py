"""Writers of a lake that are killed at any moment, and go on where they were."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest

from harness.table_formats import CATALOG
from restow.pipeline.address import ICEBERG, PARQUET
from tests.spark.conftest import KINDS, lake_of_kind

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.classic, pytest.mark.full]

KILLS = 4
PARTITIONS = 40
WRITER = """
import sys

from restow.pipeline.lake import Lake
from restow.pipeline.schemas import table
from restow.pipeline.session import conf_from, session

place, first, partitions, *conf = sys.argv[1:]
with session("writer", master="local[2]", conf=conf_from(conf), lakes=[place]) as spark:
    lake = Lake(spark, place)
    print("ready", flush=True)
    for number in range(int(first), 10_000):
        rows = spark.range(0, int(partitions), 1, 4).selectExpr(
            "'c' as cluster", f"timestamp_seconds({number * 60}) as at", "1 as broker", "'/d' as log_dir",
            "'t' as topic", "null as topic_id", "cast(id as int) as partition",
            f"cast({number} as bigint) as size", "0L as offset_lag", "false as is_future",
        )
        schema = table("replicas").schema
        lake.write(rows.select(*(rows[each.name].cast(each.dataType) for each in schema)), "replicas")
        print(number, flush=True)
"""


def written(place: str, first: int, conf: dict[str, str], kill_after_s: float) -> int:
    """Write samples from this number on, kill the writer, and return the number that it had not yet told."""
    command = [sys.executable, "-c", WRITER, place, str(first), str(PARTITIONS)]
    command += [f"{name}={value}" for name, value in conf.items()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        told = [writer.stdout.readline(), writer.stdout.readline()]
        everybody = [*psutil.Process(writer.pid).children(recursive=True), psutil.Process(writer.pid)]
        with suppress(subprocess.TimeoutExpired):
            writer.wait(kill_after_s)
        for each in everybody:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        told += writer.stdout.readlines()
    assert told[0] == "ready\n"
    return max(int(line) for line in told[1:]) + 1


@pytest.mark.parametrize("kind", KINDS)
def test_samples_of_killed_writers_are_there_once(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    from restow.pipeline.lake import Lake

    place, chance = lake_of_kind(kind, tmp_path), random.Random(17)
    conf = {"spark.driver.memory": "768m"}
    if kind == ICEBERG:
        catalog = f"spark.sql.catalog.{CATALOG}"
        conf |= {
            name: str(spark.conf.get(name)) for name in (catalog, f"{catalog}.type", f"{catalog}.warehouse")
        }
    following = 0
    for _ in range(KILLS):
        following = written(place, following, conf, chance.uniform(0, 6))
        rows = Lake(spark, place).read("replicas", distinct=kind == PARQUET)
        counts = {row.size: row["count"] for row in rows.groupBy("size").count().collect()}
        assert {number: counts.get(number) for number in range(following)} == dict.fromkeys(
            range(following), PARTITIONS
        )
        assert following - 1 <= max(counts) <= following, "the last one may be there already"
        if kind != PARQUET:
            assert set(counts.values()) == {PARTITIONS}, "a commit is whole"
