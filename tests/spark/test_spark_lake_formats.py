"""Lakes of Iceberg and Delta tables: what folders of Parquet files cannot do, and what is refused."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from harness.lakes import write_faulty_lake
from harness.table_formats import FORMATS
from restow.cli import run
from restow.client import ConnectionSettings, NewTopic, ask_cluster
from restow.errors import InvalidInput, LakeFailed
from restow.model.load_parquet import read as read_load
from restow.pipeline.address import DELTA, ICEBERG, lake_address
from restow.pipeline.schemas import Field, table
from tests.clients.embedded import embedded
from tests.spark.conftest import lake_of_kind
from tests.spark.test_spark_lake import DAY, samples, sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from restow.pipeline.lake import Lake

pytestmark = pytest.mark.spark


@pytest.fixture(params=FORMATS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return lake_of_kind(request.param, tmp_path)


@pytest.fixture
def lake(spark: SparkSession, place: str) -> Lake:
    from restow.pipeline.lake import Lake

    return Lake(spark, place)


def test_lake_is_read_as_it_was(
    lake: Lake, place: str, spark: SparkSession, rows_of: Callable[..., DataFrame]
) -> None:
    from restow.pipeline.lake import Lake

    lake.write(rows_of("replicas", samples(0)), "replicas")
    lake.write(rows_of("replicas", samples(60)), "replicas")
    between = [each for name, each in lake.history() if name == "replicas"][-1]
    lake.write(rows_of("disks", [{"at": 0}]), "disks")
    lake.write(rows_of("replicas", samples(120)), "replicas")
    lake.compact("replicas")
    for as_of in (f"replicas@{between.number}", between.at, between.at.replace(tzinfo=None)):
        past = Lake(spark, place, as_of=as_of)
        assert sizes(past.read("replicas", distinct=False)) == [0, 60]
        assert past.read("disks").isEmpty()
    assert sizes(lake.read("replicas", distinct=False)) == [0, 60, 120]
    before = Lake(spark, place, as_of=between.at - timedelta(days=1))
    assert before.read("replicas").isEmpty()
    with pytest.raises(InvalidInput, match="nothing can be written there"):
        before.write(rows_of("replicas", samples(0)), "replicas")
    for wrong, said in (
        ("replicas@7", "has no snapshot 7: `restow lake describe --history` lists them"),
        ("replicas@", "has no snapshot without a number"),
        ("offsets@1", "offsets in .* has no snapshot 1"),
        ("replica@1", "no table 'replica' in a lake"),
    ):
        with pytest.raises(InvalidInput, match=said):
            Lake(spark, place, as_of=wrong)


def test_older_table_is_read_with_nulls_and_gets_the_column(
    lake: Lake, place: str, spark: SparkSession, rows_of: Callable[..., DataFrame]
) -> None:
    from restow.pipeline.stores import store_at

    now = table("replicas")
    older = replace(now, columns=tuple(each for each in now.columns if each.name != "topic_id"))
    store = store_at(spark, lake_address(place))
    dated = rows_of("replicas", samples(0)).selectExpr("*", "to_date(at) as day")
    store.add(older, dated.drop("topic_id"))
    assert [row.topic_id for row in lake.read("replicas").collect()] == [None]
    lake.write(rows_of("replicas", samples(60, topic_id="x")), "replicas")
    assert {row.size: row.topic_id for row in lake.read("replicas").collect()} == {0: None, 60: "x"}

    newer = replace(now, columns=(*now.columns, Field("tier", "string", True)))
    store.add(
        newer, rows_of("replicas", samples(120)).selectExpr("*", "to_date(at) as day", "'cold' as tier")
    )
    lake.write(rows_of("replicas", samples(180)), "replicas")
    lake.compact("replicas")
    assert lake.read("replicas").columns == [*now.names]
    told = {row.size: row.tier for row in store.rows(newer).collect()}
    assert told == {0: None, 60: None, 120: "cold", 180: None}


@pytest.fixture
def late(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> list[DataFrame]:
    """Return a list of samples; each compaction of a day that has begun lets the last of them arrive."""
    store: Any = type(lake._store)
    begin, waiting = store._to_merge, []

    def begun(self: Any, about: Any) -> tuple[DataFrame, Mapping[str, str]]:
        found: tuple[DataFrame, Mapping[str, str]] = begin(self, about)
        if waiting:
            lake.write(waiting.pop(), "replicas")
        return found

    monkeypatch.setattr(store, "_to_merge", begun)
    return waiting


def test_compaction_keeps_samples_that_arrive_meanwhile(
    lake: Lake, late: list[DataFrame], rows_of: Callable[..., DataFrame]
) -> None:
    for time in (0, 60):
        lake.write(rows_of("replicas", samples(time)), "replicas")
    late.append(rows_of("replicas", samples(120)))
    lake.compact("replicas")
    assert not late
    assert sizes(lake.read("replicas", distinct=False)) == [0, 60, 120]


def test_compaction_gives_up_a_day_of_iceberg_that_others_write_to(
    spark: SparkSession, late: list[DataFrame], lake: Lake, rows_of: Callable[..., DataFrame]
) -> None:
    for time in (0, 60):
        lake.write(rows_of("replicas", samples(time)), "replicas")
    late += [rows_of("replicas", samples(time)) for time in (240, 180, 120)]
    if lake.path.startswith(DELTA):  # reads and writes in one transaction
        lake.compact("replicas")
        assert sizes(lake.read("replicas", distinct=False)) == [0, 60, 120]
        return
    with pytest.raises(
        LakeFailed, match=r"replicas of 2024-09-02 in .* still receives samples: compact it later"
    ):
        lake.compact("replicas")
    assert sizes(lake.read("replicas", distinct=False)) == [0, 60, 120, 180, 240]


def test_forgotten_snapshots_cannot_be_read(
    lake: Lake,
    place: str,
    spark: SparkSession,
    rows_of: Callable[..., DataFrame],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from restow.pipeline.lake import Lake

    for time in (0, 60, 120):
        lake.write(rows_of("replicas", samples(time)), "replicas")
    before = list(lake.history())
    lake.forget("replicas", 30 * DAY)
    assert list(lake.history())[: len(before)] == before, "all are younger"
    assert sizes(lake.read("replicas")) == [0, 60, 120]
    kept = [each for _, each in before][-2:]
    monkeypatch.setattr(type(lake._store), "history", lambda *_: kept)
    assert sizes(Lake(spark, place, as_of=kept[0].at).read("replicas")) == [0, 60]
    with pytest.raises(InvalidInput, match=r"replicas in .* remembers only what was since"):
        Lake(spark, place, as_of=kept[0].at - timedelta(microseconds=1)).read("replicas")


@pytest.mark.classic
@pytest.mark.usefixtures("patient")
def test_collector_writes_into_tables(
    place: str,
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from restow.pipeline.lake import Lake

    @contextmanager
    def given(*about: object, **more: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("restow.cli.pipeline.collect.spark_for", given)
    with embedded(1) as cluster:
        new = NewTopic(name="orders", partitions=4, replication_factor=1)
        ask_cluster(ConnectionSettings(bootstrap=cluster.bootstrap), lambda admin: admin.create_topics([new]))
        command = ["collect", "--samples", "2", "--every", "1s", "--lake", place, "-b", cluster.bootstrap]
        assert run([*command, "--checkpoint", str(tmp_path / "checkpoint"), "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    taken = [each["rows"]["replicas"] for each in told if "sample" in each]
    assert len(taken) == 2
    rows = Lake(spark, place).read("replicas", distinct=False)
    assert rows.count() == sum(taken)
    assert rows.where("topic = 'orders'").count() == 8


def test_pipeline_gives_the_same_on_every_kind(
    same_session: None, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "folder"
    write_faulty_lake(folder, clusters=2, topics=3, samples=12)

    def told(*arguments: str) -> Any:
        capsys.readouterr()
        assert run([*arguments, "--json"]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    def loads(lake: str, name: str, *more: str) -> list[Any]:
        made = told("pipeline", "run", "--lake", lake, "--load", str(tmp_path / name), *more)["loads"]
        models = [read_load(tmp_path / name / each.rpartition("/")[2]) for each in sorted(made)]
        return [
            (
                each.cluster_id,
                each.partitions,
                {key: value.leading.round(6).tolist() for key, value in each.resources.items()},
            )
            for each in models
        ]

    wanted = loads(str(folder), "wanted")
    assert "replicas" in told("lake", "copy", "--lake", str(folder), "--to", place)["tables"]
    assert loads(place, "found") == wanted
    snapshots = told("lake", "describe", "--lake", place, "--history")["snapshots"]
    [*_, copied] = [each["as_of"] for each in snapshots if each["as_of"].startswith("model@")]
    assert loads(place, "again", "--as-of", copied) == wanted
    assert told("lake", "describe", "--lake", place, "--history")["snapshots"] == snapshots
    told("lake", "copy", "--lake", place, "--to", str(tmp_path / "back"))
    assert loads(str(tmp_path / "back"), "back") == wanted


def test_other_kinds_in_a_folder_are_refused(
    spark: SparkSession, rows_of: Callable[..., DataFrame], tmp_path: Path
) -> None:
    from restow.pipeline.lake import Lake

    rows = rows_of("disks", [{"at": 0}])
    folders, tables = str(tmp_path / "folders"), str(tmp_path / "tables")
    Lake(spark, folders).write(rows, "disks")
    Lake(spark, f"{DELTA}:{tables}").write(rows, "disks")
    for lake, said in (
        (tables, "disks is a Delta table, not a folder of files: --lake delta:"),
        (f"{DELTA}:{folders}", "disks is a folder of Parquet files, not a Delta table: --lake /"),
    ):
        with pytest.raises(InvalidInput, match=said):
            Lake(spark, lake).read("disks")
        with pytest.raises(InvalidInput, match=said):
            Lake(spark, lake).write(rows, "disks")


def test_unknown_catalog_is_refused_with_its_settings(spark: SparkSession) -> None:
    from restow.pipeline.lake import Lake

    with pytest.raises(
        InvalidInput, match=r"no catalog 'nowhere'. Give --conf spark.sql.catalog.nowhere=org"
    ):
        Lake(spark, f"{ICEBERG}:nowhere.kafka")


@pytest.mark.classic
def test_session_without_delta_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    from restow.pipeline.lake import SETTINGS, Lake

    other = spark.newSession()
    for name, value in (SETTINGS | {"spark.sql.catalog.spark_catalog": "builtin"}).items():
        other.conf.set(name, value)
    with pytest.raises(
        InvalidInput, match=r"does not know Delta. Start it with Delta's jars, spark\.sql\.ext"
    ):
        Lake(other, f"{DELTA}:{tmp_path}")


def test_copy_onto_itself_is_refused(lake: Lake, place: str, spark: SparkSession) -> None:
    from restow.pipeline.copying import copied
    from restow.pipeline.lake import Lake
    from restow.pipeline.work import Scope

    with pytest.raises(InvalidInput, match="is the lake itself"):
        list(copied(lake, Lake(spark, place), Scope()))
