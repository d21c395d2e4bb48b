"""Collect without Spark: files are whole and samples are there once, also after kills."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import tracemalloc
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from restow.errors import InvalidDocument, InvalidInput, LakeFailed
from restow.pipeline.checkpoints import CheckpointTaken, local_path
from restow.pipeline.sampling import collector, sample_files
from restow.pipeline.sampling.batches import SAMPLES
from restow.pipeline.sampling.collector import Collector
from restow.pipeline.sampling.questions import Part
from restow.pipeline.sampling.shares import Share
from restow.pipeline.sampling.where import Where
from restow.pipeline.schemas import SAMPLED, arrow_schema, table
from restow.pipeline.spark_types import struct_of
from restow.runtime.disk import SystemDisk
from tests.clock import SleepingClock
from tests.unit.pipeline.collected import NOON_MS, answers, left_over, rows_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.pipeline.sampling.sample import Sample

DAY_MS = 86_400_000
NAMES = [each.name for each in SAMPLED]


class Killed(BaseException):
    """Simulates kill -9: nothing that the process does afterwards has an effect."""


@pytest.fixture(autouse=True)
def _no_waiting_for_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip fsync, which is slow on a busy disk: these tests do not cut the power."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def tells(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], Any]], None]:
    """Let a function of the sample's number give the cluster's answers."""

    def given(made: Callable[[int], Any]) -> None:
        asked = iter(range(10_000))

        async def ask(_: object) -> Any:
            return made(next(asked))

        monkeypatch.setattr(collector._Cluster, "ask", ask)

    given(lambda number: answers(NOON_MS + 1000 * number))
    return given


def collect(folder: Path, most: int | None = 1, **places: Path) -> list[Sample]:
    where = Where({"bootstrap.servers": "b:1", "every": "1s", "cluster": "c"}, NAMES, "test")
    said: list[Sample] = []
    at = places.get("checkpoint", folder / "lake" / "_collect" / "c")
    runner = Collector(where, str(folder / "lake"), str(at), SleepingClock(NOON_MS / 1000))
    asyncio.run(runner.run(said.append, asyncio.Event(), most))
    return said


@pytest.mark.usefixtures("tells")
def test_collector_writes_every_value_to_the_lake(tmp_path: Path) -> None:
    said = collect(tmp_path, 2)
    assert [each.number for each in said] == [0, 1]
    assert dict(said[0].rows) == {"replicas": 2, "offsets": 1, "assignment": 2, "groups": 2, "disks": 2}
    assert (said[0].brokers, said[0].gap_count, said[0].gaps[0].reason) == (1, 1, "disks, replicas: asleep")
    assert said[0].at == "2024-09-02T12:00:00.001+00:00"
    lake = tmp_path / "lake"
    assert len(rows_in(lake, "replicas")) == 4
    first = rows_in(lake, "replicas")[1]
    at = first.pop("at")
    assert at.isoformat() == "2024-09-02T12:00:00+00:00"
    assert first == {
        "cluster": "c",
        "broker": 1,
        "log_dir": "/d",
        "topic": "t",
        "topic_id": None,
        "partition": 1,
        "size": 7,
        "offset_lag": 0,
        "is_future": True,
    }
    silent = [row for row in rows_in(lake, "disks") if row["broker"] == 2]
    assert [(row["error"], row["log_dir"]) for row in silent] == [("asleep", None)] * 2
    assert [row["replicas"] for row in rows_in(lake, "assignment")][:2] == [[1, 2], [2]]
    assert left_over(lake) == []


def test_collector_continues_the_numbers_of_the_last_one(tmp_path: Path, tells: Any) -> None:
    assert [each.number for each in collect(tmp_path, 2)] == [0, 1]
    tells(lambda number: answers(NOON_MS + DAY_MS + 1000 * number))
    assert [each.number for each in collect(tmp_path, 1)] == [2]
    assert len(rows_in(tmp_path / "lake", "offsets")) == 3


def test_sample_over_midnight_goes_to_the_folders_of_two_days(tmp_path: Path, tells: Any) -> None:
    before = NOON_MS + DAY_MS // 2 - 1
    tells(lambda _: answers(before))
    collect(tmp_path)
    days = {path.name for path in (tmp_path / "lake" / "disks" / "v1" / "cluster=c").iterdir()}
    assert days == {"day=2024-09-02", "day=2024-09-03"}


def test_cluster_id_that_is_a_path_stays_in_the_lake(tmp_path: Path, tells: Any) -> None:
    names = ["../../../ESCAPED", "..", "a/b", "a%2Fb", "day=1", "two\nlines", "_x", ".x", "\x1b[2J", "ü }"]
    told = iter(names)
    tells(lambda number: answers(NOON_MS + number, next(told)))
    collect(tmp_path, len(names))
    assert {row["cluster"] for row in rows_in(tmp_path / "lake", "disks")} == set(names)
    assert [each.name for each in tmp_path.iterdir()] == ["lake"]
    assert not any((folder / "ESCAPED").exists() for folder in tmp_path.parents)


def test_collector_refuses_a_cluster_id_that_no_reader_would_find(tmp_path: Path, tells: Any) -> None:
    tells(lambda _: answers(NOON_MS, "x" * 300))
    with pytest.raises(InvalidInput, match="cannot have a folder"):
        collect(tmp_path)
    assert left_over(tmp_path / "lake") == []


def test_collector_refuses_a_missing_value_and_leaves_no_files(tmp_path: Path, tells: Any) -> None:
    part = Part(table="offsets", at_ms=NOON_MS, columns={name: [None] for name in table("offsets").names[3:]})
    tells(lambda _: [(Share(cluster="c", broker=1), [part])])
    with pytest.raises(LakeFailed, match="offsets could not be written: a topic is missing"):
        collect(tmp_path)
    assert left_over(tmp_path / "lake") == []


def test_collector_fails_when_the_lake_cannot_be_written(tmp_path: Path, tells: Any) -> None:
    collect(tmp_path)
    tells(lambda _: answers(NOON_MS + 5000))
    shutil.rmtree(tmp_path / "lake" / "disks")
    (tmp_path / "lake" / "disks").write_text("in the way")
    with pytest.raises(LakeFailed, match=r"could not be written to .*: Not a directory"):
        collect(tmp_path)
    (tmp_path / "lake" / "disks").unlink()
    assert [each.number for each in collect(tmp_path)] == [1, 2], "the sample that was taken is not lost"


@pytest.mark.usefixtures("tells")
def test_collector_fails_when_the_checkpoint_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LakeFailed, match=r"the checkpoint .* cannot be used: Not a directory"):
        collect(tmp_path, checkpoint=tmp_path / "file" / "c")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"restow_collector": 2}', '{"restow_collector": 1}', "7"])
@pytest.mark.usefixtures("tells")
def test_collector_refuses_a_damaged_checkpoint(tmp_path: Path, text: str) -> None:
    collect(tmp_path)
    notes = tmp_path / "lake" / "_collect" / "c" / "collector.json"
    notes.write_text(text)
    with pytest.raises(InvalidDocument, match="is damaged: remove it"):
        collect(tmp_path)


def test_collector_refuses_a_checkpoint_that_names_a_folder_outside_the_lake(tmp_path: Path) -> None:
    folder = tmp_path / "lake" / "_collect" / "c"
    folder.mkdir(parents=True)
    (folder / "collector.json").write_text('{"restow_collector": 1, "name": "../../x", "next": 0}')
    with pytest.raises(InvalidDocument, match="is damaged"):
        collect(tmp_path)


@pytest.mark.usefixtures("tells")
def test_second_collector_fails_on_a_checkpoint_in_use(tmp_path: Path) -> None:
    disk = SystemDisk()
    folder = tmp_path / "lake" / "_collect" / "c"
    folder.mkdir(parents=True)
    lock = disk.lock(str(folder / "lock"))
    assert lock is not None
    with pytest.raises(CheckpointTaken, match="another process goes on from"):
        collect(tmp_path)
    lock.release()
    assert len(collect(tmp_path)) == 1


@pytest.mark.usefixtures("tells")
def test_two_collectors_with_two_checkpoints_share_a_lake(tmp_path: Path) -> None:
    for name in ("one", "two"):
        collect(tmp_path, checkpoint=tmp_path / name)
    assert len(rows_in(tmp_path / "lake", "offsets")) == 2, "the same answers, from two collectors"


class Mortal:
    """Allows this many changes of the file system, and then none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, changes: int) -> None:
        self._left = changes
        for owner, name in (
            (Path, "mkdir"),
            (Path, "rename"),
            (Path, "rmdir"),
            (Path, "write_text"),
            (shutil, "rmtree"),
            (os, "fsync"),
            (SystemDisk, "write_atomically"),
            (pq, "write_table"),
        ):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            if self._left <= 0:
                raise Killed
            self._left -= 1
            return change(*given, **named)

        return counted

    @property
    def died(self) -> bool:
        return self._left <= 0


def test_kill_at_any_moment_loses_only_the_unfinished_sample(tmp_path: Path, tells: Any) -> None:
    """The test kills after each change of the file system in turn, then starts another collector."""
    made = iter(range(100_000))
    tells(lambda _: answers(NOON_MS + 1000 * next(made)))
    changes = 0
    survived = False
    while not survived:
        folder = tmp_path / str(changes)
        (folder / "lake").mkdir(parents=True)
        with pytest.MonkeyPatch.context() as patch:
            mortal = Mortal(patch, changes)
            try:
                collect(folder, 2)
                survived = not mortal.died
            except Killed:
                pass
        after = collect(folder, 1)
        lake = folder / "lake"
        found = {name: rows_in(lake, name) for name in NAMES}
        counts = {name: len(rows) for name, rows in found.items()}
        whole = {len({row["at"] for row in found[name]}) for name in NAMES if name != "disks"}
        assert len(whole) == 1, f"a sample is there in part, after {changes} changes: {counts}"
        [samples] = whole
        assert counts == {
            "replicas": 2 * samples,
            "offsets": samples,
            "assignment": 2 * samples,
            "groups": 2 * samples,
            "disks": 2 * samples,
        }
        assert samples == after[-1].number + 1, "numbers have no gaps and none comes twice"
        assert left_over(lake) == []
        changes += 1
    assert changes > 30


def test_collector_memory_does_not_grow_with_samples(tmp_path: Path, tells: Any) -> None:
    marks: list[tuple[int, int]] = []

    def made(number: int) -> Any:
        if number in (20, 80):
            gc.collect()
            marks.append((tracemalloc.get_traced_memory()[0], pa.total_allocated_bytes()))
        return answers(NOON_MS + 1000 * number)

    tells(made)
    where = Where({"bootstrap.servers": "b:1", "every": "1s", "cluster": "c"}, NAMES, "test")
    runner = Collector(where, str(tmp_path / "lake"), str(tmp_path / "c"), SleepingClock(NOON_MS / 1000))
    tracemalloc.start()
    try:
        asyncio.run(runner.run(lambda _: None, asyncio.Event(), 81))
    finally:
        tracemalloc.stop()
    (python, arrow), (python_later, arrow_later) = marks
    assert python_later - python < 60 * 500, "less than half a kilobyte a sample"
    assert arrow_later <= arrow


def test_stop_abandons_the_unfinished_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector does not wait for a cluster that hangs."""

    async def main() -> list[Sample]:
        told, asked = asyncio.Event(), asyncio.Event()
        said: list[Sample] = []

        async def ask(_: object) -> Any:
            asked.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(collector._Cluster, "ask", ask)
        where = Where({"bootstrap.servers": "b:1", "cluster": "c"}, NAMES, "test")
        at = str(tmp_path / "lake" / "_collect" / "c")
        runner = Collector(where, str(tmp_path / "lake"), at, SleepingClock(NOON_MS / 1000))
        running = asyncio.create_task(runner.run(said.append, told))
        await asked.wait()
        told.set()
        await running
        return said

    assert asyncio.run(main()) == []
    assert left_over(tmp_path / "lake") == []
    lock = SystemDisk().lock(str(tmp_path / "lake" / "_collect" / "c" / "lock"))
    assert lock is not None
    lock.release()


def test_arrow_schemas_equal_those_of_spark() -> None:
    """From 4.2 on Spark wants to be told the time zone of a session."""
    convert: Any = to_arrow_schema
    zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    for columns in (SAMPLES, *(each.columns for each in SAMPLED)):
        assert arrow_schema(columns).equals(convert(struct_of(columns), **zone))


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("lake", "lake"),
        ("/a/lake", "/a/lake"),
        ("file:/a/lake", "/a/lake"),
        ("file:///a/lake", "/a/lake"),
        ("s3a://bucket/lake", None),
        ("hdfs:/lake", None),
        ("a:b", "a:b"),
    ],
)
def test_local_path_tells_folders_from_addresses(address: str, path: str | None) -> None:
    assert local_path(address) == path


def test_collecting_imports_no_spark() -> None:
    """Starting Spark would cost more than an hour of samples."""
    import subprocess
    import sys

    modules = "restow.pipeline.sampling.collector, restow.cli.pipeline.collect"
    program = f"import sys, {modules}; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert sample_files.STAGING.startswith("_"), "readers look into no folder of this name"
