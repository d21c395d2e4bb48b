"""Collecting without Spark writes the same rows and schemas as with Spark."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from restow.client import ConnectionSettings, NewTopic, ask_cluster, connected
from restow.errors import LakeFailed
from restow.pipeline.checkpoints import Kept
from restow.pipeline.collect import into_lake
from restow.pipeline.lake import Lake
from restow.pipeline.sampling.batches import GAPS, SAMPLES, TABLE, batches
from restow.pipeline.sampling.questions import Gap, Part, ask_over
from restow.pipeline.sampling.sample_files import SampleFiles
from restow.pipeline.sampling.shares import Share, shares_of
from restow.pipeline.schemas import SAMPLED, arrow_schema
from restow.pipeline.spark_types import struct_of
from restow.runtime.clock import SystemClock
from tests.clients.embedded import Running, embedded
from tests.unit.pipeline.collected import NOON_MS, answers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    Answers = Sequence[tuple[Share, Sequence[Part | Gap]]]

pytestmark = pytest.mark.spark

NAMES = [each.name for each in SAMPLED]
HOSTILE = (
    "../../../ESCAPED",
    "..",
    "a/b",
    "a%2Fb",
    "day=1/x",
    "two\nlines",
    "_hidden",
    ".hidden",
    "*?[x]{y}^",
    "esc\x1b[2J",
    "ü } ,",
    "xx_QRmc8TMCsbfhhHy7MOg",
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(2, racks=("a", "b"), log_dirs=2) as running:
        new = NewTopic(name="orders", partitions=4, replication_factor=2)
        ask_cluster(ConnectionSettings(bootstrap=running.bootstrap), lambda admin: admin.create_topics([new]))
        running.wait_until_known("orders", 4)
        yield running


def taken_of(cluster: Running) -> Answers:
    async def main() -> Answers:
        async with connected(ConnectionSettings(bootstrap=cluster.bootstrap)) as admin:
            shares = shares_of(await admin.describe_cluster(), await admin.describe_topics())
            return [(share, await ask_over(admin, share, NAMES, SystemClock())) for share in shares]

    return asyncio.run(main())


def by_spark(spark: SparkSession, folder: Path, answers: Answers) -> Lake:
    """Write a sample with Spark: keep one frame with all tables, then write each table."""
    rows = [batch for share, told in answers for batch in batches(share, told, SAMPLES)]
    whole = pa.Table.from_batches(rows, arrow_schema(SAMPLES))
    frame = spark.createDataFrame(whole.to_pylist(), struct_of(SAMPLES))
    counts = {name: sum(batch[TABLE][0].as_py() == name for batch in rows) for name in (*NAMES, GAPS)}
    counts.pop(GAPS)
    lake = Lake(spark, str(folder))
    into_lake(lake)(Kept(spark, str(folder / "_collect")).take(frame, 0), counts)
    return lake


def without_spark(folder: Path, answers: Answers) -> None:
    files = SampleFiles(folder, "me")
    files.stage(0, answers)
    files.land(0)
    files.forget(0)
    files.close()


def rows_of(lake: Lake, name: str) -> list[Any]:
    return sorted((row.asDict() for row in lake.read(name, distinct=False).collect()), key=repr)


def schemas(folder: Path, name: str) -> set[str]:
    found = (pq.ParquetFile(path).schema for path in (folder / name).rglob("[!.]*.parquet"))
    return {str(each).partition("\n")[2].partition("\n")[2] for each in found}


def test_rows_and_schemas_equal_those_of_spark(spark: SparkSession, cluster: Running, tmp_path: Path) -> None:
    """The rows are of a real cluster, groups with members, gaps, and nulls in every nullable column."""
    every = [*taken_of(cluster), *answers(NOON_MS, "other/cluster")]
    theirs = by_spark(spark, tmp_path / "spark", every)
    without_spark(tmp_path / "direct", every)
    ours = Lake(spark, str(tmp_path / "direct"))
    for name in NAMES:
        expected = rows_of(theirs, name)
        assert expected, name
        assert rows_of(ours, name) == expected, name
        [schema] = schemas(tmp_path / "spark", name)
        assert schemas(tmp_path / "direct", name) == {schema}, name
    places = [
        {path.parent.relative_to(tmp_path / which) for path in (tmp_path / which).glob("*/v1/*/*/*.parquet")}
        for which in ("spark", "direct")
    ]
    assert places[0] == places[1]


def test_lake_keeps_clusters_with_hostile_ids_apart(spark: SparkSession, tmp_path: Path) -> None:
    """Lakes are written both ways, described, compacted and turned into loads."""
    from restow.pipeline.jobs.model import TABLE as MODEL
    from restow.pipeline.load_files import Loads, write_load

    folder = tmp_path / "lake"
    told = [each for name in HOSTILE for each in answers(NOON_MS, name)]
    lake = by_spark(spark, folder, told)
    without_spark(folder, [each for name in HOSTILE for each in answers(NOON_MS + 60_000, name)])
    assert {row.cluster for row in lake.read("offsets").collect()} == set(HOSTILE)
    assert lake.read("offsets", clusters=["a/b"]).count() == 2
    assert lake.compact("offsets") == len(HOSTILE)
    assert sorted(row.cluster for row in lake.read("offsets", distinct=False).collect()) == sorted(
        [*HOSTILE, *HOSTILE]
    )
    assert {row.cluster for row in lake.describe().collect()} == set(HOSTILE)
    for name in ("", "__HIVE_DEFAULT_PARTITION__", "x._COPYING_", "x" * 300):
        with pytest.raises(LakeFailed, match="a lake cannot have a folder for this cluster id"):
            by_spark(spark, tmp_path / "refused", answers(NOON_MS, name))
    shutil.rmtree(tmp_path / "refused")
    given = {"topic": "t", "partition": 0, "samples": 1, "hours": 1, "confidence": 0.5}
    rows = [tuple((given | {"cluster": name}).get(column) for column in MODEL.names) for name in HOSTILE]
    written = write_load(
        Loads(model=spark.createDataFrame(rows, MODEL.schema)), str(tmp_path / "loads"), made_ms=1
    )
    assert len(written) == len(HOSTILE)
    visible = [path.name for path in (tmp_path / "loads").iterdir() if not path.name.startswith(".")]
    assert len(visible) == len(HOSTILE)
    assert {path.name for path in tmp_path.iterdir()} == {"lake", "loads"}
    assert not any((folder / "ESCAPED").exists() for folder in tmp_path.parents)
