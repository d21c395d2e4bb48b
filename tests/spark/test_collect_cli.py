"""`restow collect` as a process: killed, started again, stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psutil
import pytest

from restow.client import ConnectionSettings, NewTopic, ask_cluster
from restow.pipeline.lake import Lake
from restow.pipeline.schemas import SAMPLED
from tests.clients.embedded import Running, embedded
from tests.spark.patience import PATIENCE_S, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.classic, pytest.mark.usefixtures("patient")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(2, racks=("a", "b")) as running:
        new = NewTopic(name="orders", partitions=4, replication_factor=2)
        ask_cluster(ConnectionSettings(bootstrap=running.bootstrap), lambda admin: admin.create_topics([new]))
        yield running


class Process:
    """A running command, and the documents that it has printed so far."""

    def __init__(self, complaints: Path, *arguments: str) -> None:
        self.documents: list[dict[str, Any]] = []
        self._complaints = complaints
        with complaints.open("w") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "restow", *arguments, "--json", "--master", "local[1]"],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self.documents.append(json.loads(line))

    @property
    def samples(self) -> list[dict[str, Any]]:
        return [each for each in self.documents if "sample" in each]

    def wait_for_samples(self, number: int) -> None:
        wait_for(lambda: len(self.samples) >= number or self._process.poll() is not None, f"{number} samples")
        assert self._process.poll() is None, self.end()

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Wait until the process is gone; return its exit code and its stderr."""
        code = self._process.wait(PATIENCE_S)
        self._reader.join()
        return code, self._complaints.read_text()

    def kill(self) -> None:
        """Send kill -9, and wait until its child processes are gone."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        self.end()
        _, alive = psutil.wait_procs(children, PATIENCE_S)
        assert not alive, alive


@contextmanager
def collecting(cluster: Running, lake: Path, *arguments: str) -> Iterator[Process]:
    """Return the command, with temporary files beside the lake, so that a kill leaves none elsewhere."""
    own = ("--conf", f"spark.local.dir={lake.parent / 'local'}")
    own += ("--conf", "spark.python.authenticate.socketTimeout=300s")
    complaints = lake.parent / f"stderr-{uuid4().hex}"
    process = Process(complaints, "collect", "--lake", str(lake), "-b", cluster.bootstrap, *own, *arguments)
    try:
        yield process
    finally:
        process._process.kill()
        process.end()


@pytest.mark.full  # without Spark it is killed in tests/clients/test_collect_process.py
def test_killed_collector_continues_and_every_sample_is_there_once(
    spark: SparkSession, cluster: Running, tmp_path: Path
) -> None:
    """Every sample is whole, and the second process continues the numbers of the first."""
    lake = tmp_path / "lake"
    with collecting(cluster, lake, "--every", "500ms") as first:
        first.wait_for_samples(2)
        first.kill()
    with collecting(cluster, lake, "--every", "500ms") as second:
        second.wait_for_samples(2)
        second.send(signal.SIGTERM)
        code, said = second.end()
    assert (code, said) == (0, "")
    last = second.documents[-1]
    assert last["samples"] == len(second.samples)
    numbers = [each["sample"] for each in first.samples + second.samples]
    assert sorted(set(numbers)) == list(range(numbers[-1] + 1))
    assert len(numbers) - len(set(numbers)) <= 1, "only the one in work when it was killed may come again"
    told = {each["sample"]: each["rows"] for each in first.samples + second.samples}
    assert len({json.dumps(rows) for rows in told.values()}) == 1, "nothing changes in this cluster"
    rows = told[0]
    table = Lake(spark, str(lake))
    for name in (each.name for each in SAMPLED):
        found = table.read(name)
        assert found.count() == len(told) * rows[name], name
        assert found.drop("at", "usable").distinct().count() == rows[name], name
    moments = table.read("disks").groupBy("broker").count().collect()
    assert {row.broker: row["count"] for row in moments} == {0: len(told), 1: len(told)}


@pytest.mark.full
def test_second_collector_fails_and_ctrl_c_ends_the_first_in_order(cluster: Running, tmp_path: Path) -> None:
    """The second one uses the checkpoint of the first."""
    with collecting(cluster, tmp_path / "lake", "--every", "1h") as first:
        first.wait_for_samples(1)
        with collecting(cluster, tmp_path / "lake", "--once") as second:
            code, said = second.end()
        assert code == 1
        assert "another process goes on from" in said
        first.send(signal.SIGINT)
        assert first.end() == (0, "")
    assert [each["sample"] for each in first.samples] == [0]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "where to?"),
        (["--lake", "l", "--to-topic", "t"], "where to?"),
        (["--lake", "l", "--every", "soon"], "--every: 'soon' is not a duration"),
        (["--lake", "l", "--once", "--samples", "2"], "exclude each other"),
        (["--to-topic", "nowhere"], "make it with `restow topics create nowhere"),
    ],
)
def test_collect_refuses_wrong_flags(
    cluster: Running, arguments: list[str], complaint: str, capsys: Any
) -> None:
    from restow.cli import run

    assert run(["collect", *arguments, "-b", cluster.bootstrap]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.full
def test_samples_go_to_a_topic_and_from_there_into_the_lake(
    spark: SparkSession, cluster: Running, tmp_path: Path
) -> None:
    new = NewTopic(name="samples", partitions=2, replication_factor=2)
    ask_cluster(ConnectionSettings(bootstrap=cluster.bootstrap), lambda admin: admin.create_topics([new]))
    lake = tmp_path / "lake"
    shared = ("--once", "-b", cluster.bootstrap, "--conf", f"spark.jars={spark.conf.get('spark.jars')}")
    for command in (
        ("collect", "--to-topic", "samples", "--checkpoint", str(tmp_path / "checkpoint")),
        ("pipeline", "stream", "--from-topic", "samples", "--lake", str(lake)),
    ):
        process = Process(tmp_path / "stderr", *command, *shared)
        assert process.end() == (0, "")
    [batch] = [each for each in process.documents if "batch" in each]
    assert batch["refused"] == 0
    found = {each.name: Lake(spark, str(lake)).read(each.name).count() for each in SAMPLED}
    assert found == batch["rows"]
    assert found["disks"] == 2
