"""Collect into a lake and through a topic, with crashes in between, on an embedded cluster."""

from __future__ import annotations

from contextlib import closing
from queue import SimpleQueue
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from kafka import KafkaProducer

from harness.process import HOST, free_ports
from restow.client import ConnectionSettings, NewTopic, ask_cluster
from restow.pipeline.checkpoints import CheckpointTaken, Kept
from restow.pipeline.collect import collecting, into_lake
from restow.pipeline.lake import Lake
from restow.pipeline.schemas import SAMPLED, table
from restow.pipeline.topic import Arrived, connector_options, from_topic, into_topic
from tests.clients.embedded import Running, embedded
from tests.spark.patience import PATIENT, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from restow.pipeline.collect import Put
    from restow.pipeline.sampling.sample import Sample
    from restow.pipeline.stream import Stream

pytestmark = [pytest.mark.spark, pytest.mark.classic]

TABLES = [each.name for each in SAMPLED]


class Killed(Exception):
    """Simulates the end of the process."""


def dying(lake: Lake, writes: int) -> Put:
    """Write this many tables to the lake, then die, at the latest after the last table."""

    class Dying:
        left = writes

        def write(self, rows: DataFrame, name: str) -> None:
            if self.left == 0:
                raise Killed
            self.left -= 1
            lake.write(rows, name)

    bring = into_lake(Dying())  # type: ignore[arg-type]

    def put(rows: DataFrame, counts: Mapping[str, int]) -> None:
        bring(rows, counts)
        raise Killed

    return put


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(2, racks=("a", "b")) as running:
        new = [NewTopic(name=name, partitions=4, replication_factor=2) for name in ("orders", "samples")]
        ask_cluster(ConnectionSettings(bootstrap=running.bootstrap), lambda admin: admin.create_topics(new))
        yield running


def collect(spark: SparkSession, cluster: Running, checkpoint: Path, put: Put) -> Sample:
    """Take one sample, or finish an unfinished one."""
    samples: SimpleQueue[Sample] = SimpleQueue()
    stream = _collecting(spark, cluster, checkpoint, put, samples)
    finish(stream)
    return samples.get_nowait()


def _collecting(
    spark: SparkSession, cluster: Running, checkpoint: Path, put: Put, samples: SimpleQueue[Sample]
) -> Stream:
    options = PATIENT | {"bootstrap.servers": cluster.bootstrap}
    return collecting(spark, options, put, samples.put, every_ms=None, checkpoint=str(checkpoint))


def finish(stream: Stream) -> None:
    with stream:
        wait_for(lambda: stream.ended, "the stream to end")


def kept(spark: SparkSession, checkpoint: Path, number: int) -> dict[str, list[Any]]:
    """Return a kept sample: the rows of each table."""
    found: dict[str, list[Any]] = {name: [] for name in TABLES}
    for row in spark.read.parquet(str(checkpoint / "samples" / str(number))).collect():
        found[row.table].append(tuple(row[name] for name in table(row.table).schema.fieldNames()))
    return found


def assert_holds(lake: Lake, *samples: dict[str, list[Any]]) -> None:
    """Assert that the lake has every row of these samples once, and no other."""
    for name in TABLES:
        there = [tuple(row) for row in lake.read(name).collect()]
        expected = [row for sample in samples for row in sample[name]]
        assert sorted(there, key=repr) == sorted(expected, key=repr), name


@pytest.mark.parametrize("writes", [2, *(pytest.param(each, marks=pytest.mark.full) for each in (0, 5))])
def test_sample_is_in_the_lake_once_wherever_the_process_died(
    spark: SparkSession, cluster: Running, tmp_path: Path, writes: int
) -> None:
    """The process dies before the first table, before the third, or after all but before the commit."""
    lake, checkpoint = Lake(spark, str(tmp_path / "lake")), tmp_path / "checkpoint"
    with pytest.raises(Killed):
        collect(spark, cluster, checkpoint, dying(lake, writes))
    taken = kept(spark, checkpoint, 0)
    sample = collect(spark, cluster, checkpoint, into_lake(lake))
    assert (sample.number, sample.gap_count) == (0, 0)
    assert dict(sample.rows) == {name: len(rows) for name, rows in taken.items()}
    assert_holds(lake, taken)


def test_collect_continues_with_the_next_sample_after_each_restart(
    spark: SparkSession, cluster: Running, tmp_path: Path
) -> None:
    """The stream ends after each sample and does not repeat it."""
    taken: list[dict[str, int]] = []
    for number in range(2):
        sample = collect(spark, cluster, tmp_path, lambda rows, counts: taken.append(dict(counts)))
        assert sample.number == number
    assert [counts["disks"] for counts in taken] == [2, 2]


def test_half_kept_sample_is_taken_again(spark: SparkSession, tmp_path: Path) -> None:
    keeper = Kept(spark, str(tmp_path))
    spark.range(5).write.parquet(str(tmp_path / "samples" / "7"))
    (tmp_path / "samples" / "7" / "_SUCCESS").unlink()
    assert not keeper.has(7)
    assert keeper.take(spark.range(3), 7).count() == 3
    assert keeper.has(7)
    assert keeper.take(spark.range(9), 7).count() == 3
    keeper.take(spark.range(1), 8)
    keeper.forget_before(8)
    assert not keeper.has(7)
    assert keeper.has(8)


def test_two_collectors_write_whole_samples_and_need_two_checkpoints(
    spark: SparkSession, cluster: Running, tmp_path: Path
) -> None:
    """Both samples are whole; a checkpoint serves only one collector."""
    lake = Lake(spark, str(tmp_path / "lake"))
    samples: SimpleQueue[Sample] = SimpleQueue()
    one, two = (
        _collecting(spark, cluster, tmp_path / name, into_lake(lake), samples) for name in ("one", "two")
    )
    with one, two:
        with pytest.raises(CheckpointTaken, match="another process goes on from"):
            finish(_collecting(spark, cluster, tmp_path / "one", into_lake(lake), samples))
        wait_for(lambda: one.ended and two.ended, "both to end")
    assert_holds(lake, *(kept(spark, tmp_path / name, 0) for name in ("one", "two")))


def test_unreachable_cluster_is_a_gap_and_no_failure(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, str(tmp_path / "lake"))
    with free_ports(1) as [port]:
        gone = cast("Running", SimpleNamespace(bootstrap=f"{HOST}:{port}"))
        sample = collect(spark, gone, tmp_path / "checkpoint", into_lake(lake))
    assert not any(sample.rows.values())
    assert (sample.brokers, sample.gap_count) == (0, 1)
    assert sample.gaps[0].broker == -1
    assert "does not answer" in sample.gaps[0].reason


def test_samples_through_a_topic_are_in_the_lake_once(
    spark: SparkSession, cluster: Running, tmp_path: Path
) -> None:
    """They are published twice, among records that are no samples, and read twice."""
    options = connector_options(cluster.bootstrap, {})
    publish = into_topic("samples", options)

    def twice(rows: DataFrame, counts: Mapping[str, int]) -> None:
        publish(rows, counts)
        publish(rows, counts)

    sample = collect(spark, cluster, tmp_path / "collecting", twice)
    useless = (
        b"",
        b"{",
        b"[1]",
        b'{"restow_sample": 1, "table": "offsets", "cluster": "c"}',
        b'{"table": "disks"}',
    )
    with closing(KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all")) as producer:
        for value in useless:
            producer.send("samples", value)
        producer.flush()
    lake = Lake(spark, str(tmp_path / "lake"))
    for checkpoint in ("one", "another"):
        batches: SimpleQueue[Arrived] = SimpleQueue()
        finish(
            from_topic(
                spark,
                "samples",
                options,
                lake,
                batches.put,
                every_ms=1000,
                checkpoint=str(tmp_path / checkpoint),
                all_there_is=True,
            )
        )
        arrived = batches.get_nowait()
        assert arrived.refused == len(useless)
        assert dict(arrived.rows) == {name: 2 * count for name, count in sample.rows.items()}
    assert_holds(lake, kept(spark, tmp_path / "collecting", 0))
