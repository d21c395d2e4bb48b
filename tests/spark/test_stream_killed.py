"""`restow pipeline stream` as a process, killed at random moments: its tables equal those of one run."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psutil
import pytest
from kafka import KafkaProducer

from harness.arrivals import arrive, parts_of
from harness.jars import spark_kafka_jars
from harness.lakes import write_faulty_lake
from harness.spark_connect import connect_server
from harness.spark_releases import need_connect
from restow.client import ConnectionSettings, NewTopic, ask_cluster
from tests.clients.embedded import Running, embedded
from tests.conftest import INTERPRETED, needs_kafka
from tests.often import IS_FULL, of_many
from tests.spark.kept_tables import WINDOW, assert_as_in_one_run
from tests.spark.patience import PATIENCE_S, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from harness.arrivals import Part

pytestmark = [pytest.mark.spark, pytest.mark.classic, pytest.mark.usefixtures("patient")]

PARTS = of_many(3, often=2)
MOST_CHANGES = 25
"""More changes of the lake are seen while one part is worked on."""
FROM_TOPIC = [pytest.param(seed, marks=pytest.mark.full) for seed in range(10)]
FROM_LAKE = [pytest.param(seed, marks=[] if seed == 0 else pytest.mark.full) for seed in range(40)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(1) as running:
        yield running


class Streaming:
    """The command at work on a lake, with Spark in its own process or on a Connect server."""

    def __init__(self, lake: Path, *arguments: str, server: str | None = None) -> None:
        self._lake = lake
        self._complaints = lake.parent / f"stderr-{uuid4().hex}"
        command = [sys.executable, "-m", "restow", "pipeline", "stream", "--lake", str(lake), "--json"]
        command += ["--load", str(lake.parent / "loads"), "--window", WINDOW]
        if server is None:
            command += ["--master", "local[1]"]
            command += [word for each in self._settings() for word in ("--conf", each)]
        else:
            command += ["--master", server]
        with self._complaints.open("w") as stderr:
            self._process = subprocess.Popen(
                [*command, *arguments], stdout=subprocess.PIPE, stderr=stderr, text=True
            )

    def _settings(self) -> list[str]:
        jars = ",".join(map(str, spark_kafka_jars()))
        quick = {} if IS_FULL else INTERPRETED
        return [
            f"spark.jars={jars}",
            f"spark.local.dir={self._lake.parent / 'local'}",
            "spark.python.authenticate.socketTimeout=300s",
            "spark.sql.shuffle.partitions=2",
            "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            *(f"{name}={value}" for name, value in quick.items()),
        ]

    def kill_after(self, changes: int) -> None:
        """Send kill -9 when the files of the lake have changed so often, or when the command has ended."""
        seen, last = 0, self._files()

        def time_to_die() -> bool:
            nonlocal seen, last
            now = self._files()
            seen, last = seen + (now != last), now
            return seen > changes or self._process.poll() is not None

        wait_for(time_to_die, f"{changes} changes of the lake; {self._complaints.read_text()}")
        if self._process.poll() is not None:
            return
        children = psutil.Process(self._process.pid).children(recursive=True)
        self.stop()
        _, alive = psutil.wait_procs(children, PATIENCE_S)
        assert not alive, alive

    def stop(self) -> None:
        """Send kill -9, unless the command has ended."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def end(self) -> list[dict[str, Any]]:
        """Wait for the end, and return what the command printed."""
        said, _ = self._process.communicate(timeout=PATIENCE_S)
        assert self._process.returncode == 0, self._complaints.read_text()
        return [json.loads(line) for line in said.splitlines()]

    def _files(self) -> frozenset[str]:
        found = set()
        for path in (self._lake, self._lake.parent / "loads"):
            try:
                found |= {str(each) for each in path.rglob("*") if "_stream" not in each.parts}
            except OSError:  # something is just moving
                continue
        return frozenset(found)


@contextmanager
def streaming(lake: Path, *arguments: str, server: str | None = None) -> Iterator[Streaming]:
    running = Streaming(lake, *arguments, server=server)
    try:
        yield running
    finally:
        running.stop()


def killed_and_ended(
    lake: Path,
    parts: list[Part],
    bring: Callable[[int], None],
    seed: int,
    *arguments: str,
    server: str | None = None,
) -> list[dict[str, Any]]:
    """Kill the command once while a part is at work, let it do all of them, and return its last words."""
    chance = random.Random(seed)
    doomed = chance.randrange(len(parts))
    for number in range(len(parts)):
        bring(number)
        if number == doomed:
            with streaming(lake, "--once", *arguments, server=server) as running:
                running.kill_after(chance.randrange(MOST_CHANGES))
    with streaming(lake, "--once", *arguments, server=server) as running:
        return running.end()


@pytest.mark.parametrize("seed", FROM_LAKE)
def test_stream_from_a_lake_ends_with_the_tables_of_one_run_wherever_it_was_killed(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    parts = faulty_parts(tmp_path, seed)
    lake = tmp_path / "lake"
    killed_and_ended(lake, parts, lambda number: arrive(lake, [parts[number]], seed + number), seed)
    assert_as_in_one_run(spark, lake, tmp_path / "loads", parts, tmp_path / "batch")


@pytest.mark.parametrize("seed", FROM_TOPIC)
def test_stream_from_a_topic_ends_with_the_tables_of_one_run_wherever_it_was_killed(
    spark: SparkSession, cluster: Running, tmp_path: Path, seed: int
) -> None:
    """The topic is deleted and created again before the last part comes."""
    killed_while_reading_a_topic(spark, cluster, tmp_path, seed)


@pytest.mark.full
def test_stream_on_a_connect_server_ends_with_the_tables_of_one_run(
    spark: SparkSession, cluster: Running, tmp_path: Path
) -> None:
    """What a killed command has asked for, the server may still do when the next one comes."""
    with needs_kafka():
        need_connect()
        with connect_server(tmp_path / "server") as server:
            killed_while_reading_a_topic(spark, cluster, tmp_path, 100, server=server)


def killed_while_reading_a_topic(
    spark: SparkSession, cluster: Running, tmp_path: Path, seed: int, *, server: str | None = None
) -> None:
    parts = faulty_parts(tmp_path, seed)
    name = f"samples-{seed}"
    make_topic(cluster, name)
    arguments = ("--from-topic", name, "-b", cluster.bootstrap)

    def bring(number: int) -> None:
        if number == len(parts) - 1:
            with streaming(tmp_path / "lake", "--once", *arguments, server=server) as running:
                running.end()
            settings = ConnectionSettings(bootstrap=cluster.bootstrap)
            ask_cluster(settings, lambda admin: admin.delete_topics([name]))
            make_topic(cluster, name)
        publish(cluster, name, parts[number])

    *_, last = killed_and_ended(tmp_path / "lake", parts, bring, seed, *arguments, server=server)
    assert last["rows"] >= 0
    assert_as_in_one_run(spark, tmp_path / "lake", tmp_path / "loads", parts, tmp_path / "batch")


def faulty_parts(folder: Path, seed: int) -> list[Part]:
    clusters = of_many(2, often=1)
    write_faulty_lake(folder / "source", seed=seed, clusters=clusters, topics=1, samples=24, every_s=3000)
    return parts_of(folder / "source", seed=seed, parts=PARTS)


def make_topic(cluster: Running, name: str) -> None:
    new = NewTopic(name=name, partitions=2, replication_factor=1)
    ask_cluster(ConnectionSettings(bootstrap=cluster.bootstrap), lambda admin: admin.create_topics([new]))
    cluster.wait_until_known(name, 2)


def publish(cluster: Running, topic: str, part: Part) -> None:
    """Publish samples as `restow collect --to-topic` does."""
    with closing(KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all")) as producer:
        for place, rows in part.items():
            table, _, rest = place.partition("/v1/")
            about = {"restow_sample": 1, "table": table, "cluster": rest.split("/")[0].partition("=")[2]}
            for row in rows.to_pylist():
                given = {key: value for key, value in row.items() if value is not None}
                given["at"] = given["at"].strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
                producer.send(topic, json.dumps(about | given).encode())
        producer.flush()
