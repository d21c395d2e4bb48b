"""The lake: each sample once, after repeated, concurrent and unfinished writes.

Each kind of lake is tested that the pyspark in use has a runtime for; `test_spark_elsewhere.py` uses others.
"""

from __future__ import annotations

import shutil
from datetime import timedelta
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from restow.errors import InvalidDocument, InvalidInput, LakeFailed
from restow.pipeline.address import ICEBERG, PARQUET
from tests.spark.conftest import KINDS, START, lake_of_kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from restow.pipeline.lake import Lake

pytestmark = pytest.mark.spark

DAY = 86_400


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, kind: str) -> Lake:
    from restow.pipeline.lake import Lake

    return Lake(spark, lake_of_kind(kind, tmp_path))


@pytest.fixture
def folders(spark: SparkSession, tmp_path: Path) -> Lake:
    """Return a lake of Parquet folders."""
    from restow.pipeline.lake import Lake

    return Lake(spark, lake_of_kind(PARQUET, tmp_path))


def samples(*times: int, **others: Any) -> list[dict[str, Any]]:
    return [{"at": at, "size": at, **others} for at in times]


def sizes(rows: DataFrame) -> list[int]:
    return sorted(row.size for row in rows.select("size").collect())


def test_missing_lake_is_empty(lake: Lake) -> None:
    assert lake.read("replicas").isEmpty()
    with pytest.raises(InvalidInput, match="restow collect"):
        lake.describe()
    with pytest.raises(InvalidInput, match="no table 'replica' in a lake: there are replicas"):
        lake.read("replica")


def test_lake_returns_each_sample_once_and_unchanged(
    lake: Lake, rows_of: Callable[..., DataFrame], kind: str
) -> None:
    given = rows_of("replicas", samples(0, 60, DAY, broker=7, topic_id="x"))
    lake.write(given, "replicas")
    lake.write(given.union(given), "replicas")
    late = rows_of("replicas", samples(-DAY, cluster="other/cluster"))
    lake.write(late, "replicas")
    read = lake.read("replicas", clusters=["c"])
    assert sorted(read.collect()) == sorted(given.collect())
    assert sizes(lake.read("replicas", since=START, until=START + timedelta(days=1))) == [0, 60]
    assert sizes(lake.read("replicas", until=START)) == [-DAY]
    told = {row.cluster: row for row in lake.describe().collect()}
    stored = 9 if kind == PARQUET else 3
    assert {name: row.rows for name, row in told.items()} == {"c": stored, "other/cluster": 1}
    assert told["c"].first == START.replace(tzinfo=None)
    assert told["c"].bytes > 0


def test_rows_without_a_part_of_their_key_count_once(lake: Lake, rows_of: Callable[..., DataFrame]) -> None:
    idle = rows_of("groups", [{"at": 0, "topic": None, "partition": None, "member_id": "m"}])
    for _ in range(2):
        lake.write(idle, "groups")
    assert sorted(lake.read("groups").collect()) == sorted(idle.collect())


def test_samples_are_in_folders_by_cluster_and_day(
    folders: Lake, rows_of: Callable[..., DataFrame], tmp_path: Path
) -> None:
    folders.write(rows_of("replicas", samples(0, DAY)), "replicas")
    folder = tmp_path / "lake" / "replicas" / "v1"
    assert {path.name for path in (folder / "cluster=c").iterdir()} == {"day=2024-09-02", "day=2024-09-03"}


def test_compaction_leaves_one_file_per_day_and_loses_nothing(
    lake: Lake, rows_of: Callable[..., DataFrame]
) -> None:
    for times in ((0, 60, DAY), (60, 120, DAY), (180,)):
        lake.write(rows_of("replicas", samples(*times)), "replicas")
    [before] = lake.describe().collect()
    assert lake.compact("replicas", clusters=["another"]) == 0
    assert lake.compact("replicas") == before.files - 2
    assert [row.files for row in lake.describe().collect()] == [2]
    assert sizes(lake.read("replicas", distinct=False)) == [0, 60, 120, 180, DAY]
    assert lake.compact("replicas") == 0
    with pytest.raises(InvalidInput, match="made anew"):
        lake.compact("model")


def test_killed_compaction_leaves_samples_twice_that_count_once(
    folders: Lake, rows_of: Callable[..., DataFrame], tmp_path: Path
) -> None:
    for times in ((0, 60), (60, 120)):
        folders.write(rows_of("replicas", samples(*times)), "replicas")
    folder = tmp_path / "lake" / "replicas" / "v1"
    before = [path.relative_to(folder) for path in folder.rglob("*.parquet")]
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    folders.compact("replicas")
    for path in before:  # as if it had been killed before it removed the files that it had read
        shutil.copy(copy / path, folder / path)
    assert sizes(folders.read("replicas")) == [0, 60, 120]
    folders.compact("replicas")
    assert sizes(folders.read("replicas", distinct=False)) == [0, 60, 120]


def test_files_of_a_killed_writer_are_invisible_and_removed(
    folders: Lake, rows_of: Callable[..., DataFrame], tmp_path: Path
) -> None:
    given = rows_of("replicas", samples(0, 60))
    folders.write(given, "replicas")
    folder = tmp_path / "lake" / "replicas" / "v1"
    (done,) = folder.rglob("*.parquet")
    left = folder / "_staging" / "killed" / "cluster=c" / "day=2024-09-02"
    left.mkdir(parents=True)
    shutil.copy(done, left / "part.parquet")
    (left / "half.parquet").write_bytes(b"PAR1")
    assert sizes(folders.read("replicas", distinct=False)) == [0, 60]
    folders.tidy("replicas")
    assert left.exists()
    folders.tidy("replicas", older_than_s=-1)
    assert not left.exists()


def test_two_concurrent_writers_lose_nothing(lake: Lake, rows_of: Callable[..., DataFrame]) -> None:
    given = [rows_of("replicas", samples(*range(part, 60, 2))) for part in (0, 1, 0)]
    writers = [Thread(target=lake.write, args=(rows, "replicas")) for rows in given]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sizes(lake.read("replicas")) == list(range(60))


def test_write_refuses_rows_of_another_schema_and_writes_nothing(
    lake: Lake, spark: SparkSession, rows_of: Callable[..., DataFrame]
) -> None:
    good = rows_of("disks", [{"at": 0, "usable": 1}])
    with pytest.raises(InvalidInput, match="disks needs broker, rack: there are only"):
        lake.write(good.drop("broker", "rack"), "disks")
    with pytest.raises(InvalidInput, match=r"disks.broker is string, but it must be int"):
        lake.write(good.withColumn("broker", good.broker.cast("string")), "disks")
    with pytest.raises(LakeFailed, match="a cluster is missing"):
        lake.write(good.selectExpr("if(broker = 1, null, cluster) as cluster", *good.columns[1:]), "disks")
    assert lake.read("disks").isEmpty()


def test_write_replaces_the_earlier_result_of_a_job(lake: Lake, spark: SparkSession) -> None:
    from restow.pipeline.jobs.model import TABLE

    def model(*clusters: str) -> DataFrame:
        names = TABLE.schema.fieldNames()
        given = {"topic": "t", "partition": 0, "samples": 1, "hours": 1, "confidence": 0.5}
        rows = [tuple((given | {"cluster": cluster}).get(name) for name in names) for cluster in clusters]
        return spark.createDataFrame(rows, TABLE.schema)

    lake.write(model("a", "b"), "model")
    lake.write(model("b", "c"), "model")
    assert sorted(row.cluster for row in lake.read("model").collect()) == ["b", "c"]


def test_lake_refuses_a_newer_version(
    lake: Lake, spark: SparkSession, rows_of: Callable[..., DataFrame], kind: str, tmp_path: Path
) -> None:
    lake.write(rows_of("disks", [{"at": 0}]), "disks")
    if kind == ICEBERG:
        spark.sql(f"CREATE TABLE {lake.path.partition(':')[2]}.disks_v10 (cluster string) USING iceberg")
    else:
        (tmp_path / "lake" / "disks" / "v10").mkdir()
    with pytest.raises(InvalidInput, match="has v10, but this restow knows v1"):
        lake.read("disks")


def test_failed_write_leaves_nothing_behind(lake: Lake, rows_of: Callable[..., DataFrame]) -> None:
    lake.write(rows_of("replicas", samples(0)), "replicas")
    given = rows_of("replicas", samples(*range(60, 6000, 60))).repartition(4)
    broken = given.selectExpr(
        *(f"if(size = 3000, null, {name}) as {name}" if name == "broker" else name for name in given.columns)
    )
    with pytest.raises(LakeFailed, match="a broker is missing"):
        lake.write(broken, "replicas")
    assert sizes(lake.read("replicas", distinct=False)) == [0]


def test_parquet_folders_keep_no_past(folders: Lake, spark: SparkSession, tmp_path: Path) -> None:
    from restow.pipeline.lake import Lake

    with pytest.raises(InvalidInput, match="Parquet folders, which keep no past: --as-of"):
        Lake(spark, str(tmp_path), as_of=START)
    with pytest.raises(InvalidInput, match="keep no past"):
        list(folders.history())
    with pytest.raises(InvalidInput, match="keep no past"):
        folders.forget("replicas", 1)


@pytest.mark.classic
def test_lake_refuses_a_session_with_other_time_settings(spark: SparkSession, tmp_path: Path) -> None:
    from restow.pipeline.lake import Lake

    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    with pytest.raises(InvalidInput, match=r"timeZone=UTC"):
        Lake(other, str(tmp_path))


def test_planner_reads_the_load_model_files(spark: SparkSession, tmp_path: Path) -> None:
    from restow.model.ids import TopicPartition
    from restow.model.load_parquet import read
    from restow.pipeline.jobs.model import TABLE
    from restow.pipeline.load_files import Loads, write_load

    names = TABLE.schema.fieldNames()
    known = {"bytes_in_mean": 10.0, "bytes_out_mean": 30.0, "bytes_in_p95": 20.0, "bytes_out_p95": 60.0}
    rows = [
        {"cluster": "a", "topic": "t", "partition": 1, "samples": 5, "hours": 1, "confidence": 0.1} | known,
        {"cluster": "a", "topic": "t", "partition": 0, "samples": 0, "hours": 0, "confidence": 0.0},
        {"cluster": "b", "topic": "u", "partition": 0, "samples": 5, "hours": 1, "confidence": 0.1} | known,
    ]
    model = spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], TABLE.schema)
    folder = tmp_path / "loads"
    write_load(Loads(model=model), str(folder), made_ms=5)
    written = write_load(Loads(model=model), str(folder), made_ms=7)
    assert written == [str(folder / "a.parquet"), str(folder / "b.parquet")]
    assert sorted(path.name for path in folder.glob("[!.]*")) == ["a.parquet", "b.parquet"]
    load = read(folder / "a.parquet")
    assert (load.cluster_id, load.made_ms) == ("a", 7)
    assert load.partitions == (TopicPartition("t", 0), TopicPartition("t", 1))
    assert load.resources["bytes_in"].leading.tolist() == [0.0, 10.0]
    assert load.resources["bytes_in"].following.tolist() == [0.0, 10.0]
    assert load.resources["bytes_out"].leading.tolist() == [0.0, 30.0]
    assert load.resources["bytes_out"].following.tolist() == [0.0, 0.0]
    with pytest.raises(InvalidDocument, match="models of a, b: give the file of one"):
        read(folder)
    with pytest.raises(InvalidInput, match="mean, p95, peak"):
        write_load(Loads(model=model), str(folder), made_ms=7, statistic="median")
